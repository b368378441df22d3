# An agent that submits once per period and sleeps in between: paced.sh PERIOD AGENTS LEAD PYTHON. All agents together
# submit evenly over the period, the first after LEAD seconds. A moment that is past when it is launched is now.
echo up
due="$BENCH_NOTES/due-$CORAL_AGENT"
now=$(date +%s)
if [ -e "$due" ]; then read -r at <"$due"; else at=$((now + $3 + (${CORAL_AGENT#agent-} - 1) * $1 / $2)); fi
[ -e "$BENCH_NOTES/up-$CORAL_AGENT" ] || echo "$now" >"$BENCH_NOTES/up-$CORAL_AGENT"
[ "$at" -le "$now" ] || sleep $((at - now))
echo $((at + $1)) >"$due"
exec "$4" -P "${0%/*}/interrupted.py" 0
