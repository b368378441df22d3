# An agent that submits several times without waiting for the grades, and then sleeps: several.sh TIMES.
echo up
done="$BENCH_NOTES/submitted-$CORAL_AGENT"
[ -e "$done" ] || : >"$done"
while count=$(wc -l <"$done") && [ "$count" -lt "$1" ]; do
  echo "$CORAL_AGENT $count" >trial.txt
  coral eval --no-wait -m "trial $count" >/dev/null && echo "$count" >>"$done"
done
exec sleep 3600
