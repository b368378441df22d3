#!/bin/sh
# Leads a Ray cluster from this machine, until Ctrl-C. The head itself runs no grade; its state survives a restart.
#   sh head.sh [ADDRESS]    by which other machines reach this one; without it, only this machine does
set -eu
address=${1:-127.0.0.1} port=${PORT:-6379}
folder=${CORAL_CLUSTER:-$HOME/.coral-cluster}

umask 077
mkdir -p "$folder"
[ -s "$folder/token" ] || head -c 32 /dev/urandom | base64 > "$folder/token"
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$folder/token" RAY_USAGE_STATS_ENABLED=0
# The head finds a lost node within seconds, and its own state again after a restart.
export RAY_health_check_period_ms=500 RAY_health_check_timeout_ms=500 RAY_health_check_failure_threshold=4
export RAY_gcs_rpc_server_reconnect_timeout_s=3600 # for which nodes wait for a head that is gone
export RAY_gcs_storage=rocksdb RAY_gcs_storage_path="$folder/head"

echo "the head is $address:$port. Where Coral runs:" >&2
echo "  export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$folder/token" >&2
# While a node of this machine waits for its head, Ray takes that for a head at the address in this file, and refuses to
# start one. A head that does run has the port, and must be refused: it would end.
! python3 -c "import socket; socket.create_server(('', $port))" 2>/dev/null ||
  rm -f "${RAY_TMPDIR:-${TMPDIR:-/tmp}}/ray/ray_current_cluster"
# No log monitor: it reads the logs of all workers ten times a second, for drivers that print them. Coral has none.
exec ray start --head --block --node-ip-address="$address" --port="$port" --num-cpus=0 --include-dashboard=false \
  --include-log-monitor=false
