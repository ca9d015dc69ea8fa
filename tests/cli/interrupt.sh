#!/usr/bin/env bash
# Runs a command of clusterlab and sends signals while its worker is busy.
#
# usage: interrupt.sh SIGNAL[,SIGNAL]|worker[@TEXT] CLUSTERLAB FOLDER ARGUMENT...
#   worker: SIGKILL to the worker instead
#   @TEXT: as soon as FOLDER/r.jsonl holds TEXT, instead of when the worker is busy
#
# Busy: a worker (device or compile) has used 0.3 s of processor time. FOLDER takes the caches, so that nothing is found
# there. Prints the command's output, then how many workers are left two seconds after its end; the status is the
# command's.
set -u
signals=${1%%@*}
text=
[[ $1 != *@* ]] || text=${1#*@}
program=$2
folder=$3
shift 3

CLUSTERLAB_CACHE=$folder/cache "$program" "$@" &
pid=$!
ticks=$(getconf CLK_TCK)

# The worker: a child of the command with its program, which has worked for a while, or whose text is there.
busy_worker() {
    local child used
    for child in $(pgrep -P "$pid"); do
        read -r -a used < <(sed 's/.*) //' "/proc/$child/stat" 2>/dev/null) || continue
        if [[ -n $text ]]; then
            grep -qF -- "$text" "$folder/r.jsonl" 2>/dev/null || continue
            echo "$child"
            return 0
        fi
        if ((used[11] + used[12] > ticks * 3 / 10)) && tr '\0' ' ' <"/proc/$child/cmdline" | grep -q -- -worker; then
            echo "$child"
            return 0
        fi
    done
    return 1
}

worker=
for ((i = 0; i < 600; i++)); do
    worker=$(busy_worker) && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
done
if [[ -z $worker ]]; then
    echo "no worker was ever busy" >&2
fi
workers=$(pgrep -P "$pid")
if [[ $signals == worker ]]; then
    [[ -z $worker ]] || kill -KILL "$worker"
else
    for signal in ${signals//,/ }; do
        kill -"$signal" "$pid"
    done
fi
wait "$pid"
status=$?

left=0
for ((i = 0; i < 20; i++)); do
    left=0
    for worker in $workers; do
        state=$(sed 's/.*) \(.\).*/\1/' "/proc/$worker/stat" 2>/dev/null)
        [[ -z $state || $state == Z ]] || left=$((left + 1))
    done
    ((left)) || break
    sleep 0.1
done
echo "workers left: $left"
exit "$status"
