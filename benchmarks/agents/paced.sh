# An agent that submits once per period and sleeps in between: paced.sh PERIOD AGENTS PYTHON, the period in
# milliseconds. All agents together submit evenly over the period. A moment that is past when it is launched is now.
echo up
now=$(($(date +%s%N) / 1000000))
due="$BENCH_NOTES/due-$CORAL_AGENT"
if [ -e "$due" ]; then
  read -r at <"$due"
else
  # Whoever comes first says when all of it began.
  echo "$now" >"$BENCH_NOTES/first-$CORAL_AGENT"
  ln "$BENCH_NOTES/first-$CORAL_AGENT" "$BENCH_NOTES/began" 2>/dev/null
  read -r began <"$BENCH_NOTES/began"
  at=$((began + (${CORAL_AGENT#agent-} - 1) * $1 / $2))
fi
[ "$at" -gt "$now" ] || at=$now
echo $((at + $1)) >"$due"
: >"$BENCH_NOTES/up-$CORAL_AGENT"
[ "$at" = "$now" ] || sleep "$(((at - now) / 1000)).$(printf %03d $(((at - now) % 1000)))"
exec "$3" -P "${0%/*}/interrupted.py" 0
