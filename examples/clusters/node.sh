#!/bin/sh
# Adds this machine to a Ray cluster, until Ctrl-C. The head's token lies here in the same place, see README.md.
#   sh node.sh HEAD:PORT [OPTION of `ray start` ...]    such as --num-gpus=2 or --resources='{"slot": 4}'
set -eu
head=${1:?the head of the cluster, host:port}
shift
folder=${CORAL_CLUSTER:-$HOME/.coral-cluster}
[ -s "$folder/token" ] || { echo "there is no token: copy $folder/token of the head to the same place here" >&2; exit 1; }
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$folder/token" RAY_USAGE_STATS_ENABLED=0
export RAY_gcs_rpc_server_reconnect_timeout_s="${RAY_gcs_rpc_server_reconnect_timeout_s:-3600}" # for which it waits for a head that is gone
export RAY_worker_niceness=0 # else Ray lowers the priority of grades
# No log monitor: it reads the logs of all workers ten times a second, for drivers that print them. Coral has none.
exec ray start --block --address="$head" --include-log-monitor=false "$@"
