#!/bin/sh
# A Ray cluster on this machine alone, until Ctrl-C: a head, and nodes of two processors each, to try things out.
#   sh laptop.sh [NODES]    3 without a number
set -eu
nodes=${1:-3} port=${PORT:-6379}
here=$(cd "$(dirname "$0")" && pwd)
export PORT="$port"
pids=
trap 'kill $pids 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM

sh "$here/head.sh" >/dev/null &
pids=$!
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="${CORAL_CLUSTER:-$HOME/.coral-cluster}/token"
until ray status --address="127.0.0.1:$port" >/dev/null 2>&1; do
  kill -0 "$pids" || { echo "the head has ended: does something else use port $port?" >&2; exit 1; }
  sleep 1
done
sleep 1 # a head that finds its port taken ends, and another cluster has answered
kill -0 "$pids" || { echo "the head has ended: does something else use port $port?" >&2; exit 1; }
first=20000 asked=0
while [ "$asked" -lt "$nodes" ]; do
  # Each claims the memory of the whole machine if it is not told a share, and needs ports of its own.
  sh "$here/node.sh" "127.0.0.1:$port" --num-cpus=2 --memory=1000000000 --object-store-memory=100000000 \
    --min-worker-port="$first" --max-worker-port=$((first + 999)) >/dev/null &
  pids="$pids $!"
  first=$((first + 1000)) asked=$((asked + 1))
  # The next one begins when this one is there, beside the head.
  until [ "$(ray status --address="127.0.0.1:$port" 2>/dev/null | grep -c '^ [0-9]* node_')" -gt "$asked" ]; do
    kill -0 "${pids##* }" || { echo "node $asked has ended" >&2; exit 1; }
    sleep 1
  done
done
echo "the nodes have begun; Ctrl-C ends the cluster" >&2
wait
