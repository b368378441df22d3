# An agent that prints its first line, notes when, and stays.
echo up
date +%s%N >"$BENCH_NOTES/up-$CORAL_AGENT"
exec sleep 3600
