#!/bin/sh
# A Ray cluster on this machine alone, until Ctrl-C: a head, and nodes of two processors each, to try things out.
#   sh laptop.sh [NODES]    3 without a number
set -eu
nodes=${1:-3} port=${PORT:-6379} folder=${CORAL_CLUSTER:-$HOME/.coral-cluster}
here=$(cd "$(dirname "$0")" && pwd)
export PORT="$port"
pids=
trap 'kill $pids 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM

# Says that a process has ended: name, file with what it has printed.
tell() {
  echo "$1 has ended:" >&2
  tail -n 5 "$2" >&2
}

# Ends the script if a process has ended: name, pid, file with what it has printed.
check() {
  kill -0 "$2" 2>/dev/null || { tell "$1" "$3"; exit 1; }
}

(umask 077 && mkdir -p "$folder")
sh "$here/head.sh" >"$folder/head.log" &
head=$! pids=$!
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$folder/token"
until ray status --address="127.0.0.1:$port" >/dev/null 2>&1; do
  check "the head" "$head" "$folder/head.log"
  sleep 1
done
export RAY_gcs_rpc_server_reconnect_timeout_s=5 # seconds after its head, a node ends too
sleep 1 # a head that finds its port taken ends, and another cluster has answered
check "the head" "$head" "$folder/head.log"
first=20000 asked=0 watched=
while [ "$asked" -lt "$nodes" ]; do
  asked=$((asked + 1))
  # Each claims the memory of the whole machine if it is not told a share, and needs ports and a folder of its own: in
  # a folder that they share two make the same environment of a grade at once, and fail.
  sh "$here/node.sh" "127.0.0.1:$port" --num-cpus=2 --memory=1000000000 --object-store-memory=100000000 \
    --min-worker-port="$first" --max-worker-port=$((first + 999)) \
    --temp-dir="${TMPDIR:-/tmp}/ray/$port-$asked" >"$folder/node-$asked.log" &
  pids="$pids $!" watched="$watched $asked:$!"
  first=$((first + 1000))
  # The next one begins when this one is there, beside the head.
  until [ "$(ray status --address="127.0.0.1:$port" 2>/dev/null | grep -c '^ [0-9]* node_')" -gt "$asked" ]; do
    for node in $watched; do check "node ${node%:*}" "${node#*:}" "$folder/node-${node%:*}.log"; done
    sleep 1
  done
done
echo "the nodes have begun; Ctrl-C ends the cluster" >&2
while check "the head" "$head" "$folder/head.log"; do
  running= alive=$head
  for node in $watched; do
    if kill -0 "${node#*:}" 2>/dev/null; then
      running="$running $node" alive="$alive ${node#*:}"
    else
      tell "node ${node%:*}" "$folder/node-${node%:*}.log" # the others go on
    fi
  done
  watched=$running pids=$alive
  sleep 1
done
