# Grades anything with 1. Its first and its last act are to note the time; the last is also its end.
date +%s%N >"$BENCH_NOTES/began-$CORAL_ATTEMPT"
echo 1 >"$CORAL_RESULT"
exec date +%s%N >"$BENCH_NOTES/ended-$CORAL_ATTEMPT"
