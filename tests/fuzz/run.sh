#!/usr/bin/env bash
# Runs every fuzzer of a folder for a while, each in several processes that share their corpus, and packs what came of it.
#
# usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]
#   FUZZERS  the folder with fuzz_parse, fuzz_module, …       default: the folder of this script
#   CORPORA  the folder with parse.pack, module.pack, …       default: FUZZERS/corpus
# environment:
#   FUZZ_PROCESSES  processes in all        default: two fewer than processors
#   FUZZ_TARGETS    names, with blanks, each with =N for so many processes     default: all
#   FUZZ_LEAKS      0: leaks are not looked for (that takes ptrace, which not every container has)     default: 1
#
# It ends at most 60 s after SECONDS, whatever hangs, and says twice a minute how far it is. FUZZERS needs the libFuzzer
# programs and one fuzz_replay_parse, which unpacks for all. NAME.dict beside a pack holds words.
#
# OUT gets, twice a minute anew and at the end, so that it is there too when this script is killed:
#   ends.tgz     summary.txt      per target: processes, ends that were not normal, inputs run
#                machine.txt      limits and memory of the machine, at the start and at each end that was not normal
#                ends/NAME-P-N/   of each such end: what the process wrote (log), its status (rc; 137: killed),
#                                 the inputs that it left (crash-…, oom-…, timeout-…, leak-…)
#                slow/NAME-P-N/   the same of processes that found an input slow, or did not end by themselves in time
# and at the end:
#   inputs.tgz   NAME/…           a sample of the new inputs of the corpora; fuzz_replay_NAME --least minimises them
# of at most 15 MB each. Traces name offsets in the programs: symbolise.sh reads them. Status 1 when there was an end that
# was not normal.
set -uo pipefail
seconds=${1:?usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]} out=${2:?}
here=$(cd "$(dirname "$0")" && pwd)
fuzzers=$(cd "${3:-$here}" && pwd)
corpora=$(cd "${4:-$fuzzers/corpus}" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
mkdir -p "$work/out/ends" "$work/out/slow"
children=()
trap '((${#children[@]} == 0)) || kill -KILL "${children[@]}" 2>/dev/null; timeout -s KILL 20 rm -rf "$work"' EXIT
declare -A weight=([parse]=1 [image]=2 [run]=3 [module]=4 [calls]=5)
names=() total=0
for program in "$fuzzers"/fuzz_*; do
    name=${program##*/fuzz_}
    [[ ! -x $program || $name == replay_* || $name == faults_* || $name == mutants ]] && continue
    [[ " ${FUZZ_TARGETS:-$name} " =~ \ $name(=[0-9]+)?\  ]] || continue
    names+=("$name")
    total=$((total + ${weight[$name]:-1}))
done
wanted=${FUZZ_PROCESSES:-$(($(nproc) - 2))}
declare -A processes=()
for name in "${names[@]}"; do
    processes[$name]=$((wanted * ${weight[$name]:-1} / total))
    [[ ! " ${FUZZ_TARGETS:-} " =~ \ $name=([0-9]+)\  ]] || processes[$name]=${BASH_REMATCH[1]}
    ((processes[$name] > 0)) || processes[$name]=1
done
memory() {
    printf '%s: load %s; ' "$1" "$(cut -d' ' -f1-4 /proc/loadavg)"
    awk '/^(MemFree|MemAvailable|Committed_AS|Shmem):/ { printf "%s %d MB; ", $1, $2 / 1024 }' /proc/meminfo
    for file in memory.current pids.current pids.max; do
        [[ ! -r /sys/fs/cgroup/$file ]] || printf '%s %s; ' "$file" "$(tr '\n' ' ' <"/sys/fs/cgroup/$file")"
    done
    timeout -s KILL 5 df -k /dev/shm "$work" 2>/dev/null | awk 'NR > 1 { printf "%s %d of %d MB free; ", $NF, $4 / 1024, $2 / 1024 }'
    echo
}
{
    uname -a
    nproc
    ulimit -a
    for file in vm/max_map_count vm/overcommit_memory vm/overcommit_ratio kernel/threads-max kernel/pid_max; do
        [[ ! -r /proc/sys/$file ]] || echo "$file $(<"/proc/sys/$file")"
    done
    [[ ! -r /sys/fs/cgroup/memory.max ]] || echo "memory.max $(</sys/fs/cgroup/memory.max)"
    memory start
} >"$work/out/machine.txt" 2>&1

# One process, and the next when it dies: the whole of what it wrote is kept, but for the middle of a very long log.
# (libFuzzer's own -fork keeps one line.) Each has a folder of its own: the driver's calls write files.
one() {
    local name=$1 process=$2 own=$work/$1/process$2 n=0 rc log kept
    cd "$own" || return
    log=$own/log
    while ((SECONDS < seconds)); do
        TMPDIR=$own timeout -s KILL $((seconds - SECONDS + 10)) "$fuzzers/fuzz_$name" "$work/$name/corpus" -reload=20 -timeout=60 \
            -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_total_time=$((seconds - SECONDS)) -max_len=8192 -detect_leaks="${FUZZ_LEAKS:-1}" \
            "${@:3}" -artifact_prefix="$own/found/" >"$log" 2>&1 </dev/null
        rc=$?
        grep -a '^#[0-9]' "$log" | tail -1 >>ran
        mv "$log" ended # what runs is counted by its log
        [[ $rc == 0 && -z $(ls found) ]] && continue
        n=$((n + 1))
        kept=$work/out/ends/$name-$process-$n
        # Nothing but slow inputs, or the clock came while inputs of others ran (libFuzzer looks at it after them).
        [[ $rc != 0 && ! ($rc == 137 && $SECONDS -ge $seconds && -z $(find found -type f ! -name 'slow-*')) ]] || kept=$work/out/slow/$name-$process-$n
        mkdir -p "$kept"
        echo "$rc" >"$kept/rc"
        if (($(stat -c %s ended) > 200000)); then
            { head -c 50000 ended; printf '\n[…]\n'; tail -c 150000 ended; } >"$kept/log"
        else
            cp ended "$kept/log"
        fi
        mv found/* "$kept/" 2>/dev/null
        memory "$name-$process-$n, status $rc" >>"$work/out/machine.txt"
        sleep 0.5 # one that cannot start at all
    done
}
# Inputs that the processes of a target have run: those that have ended, and the one that runs.
inputs_run() {
    for own in "$work/$1"/process*; do
        cat "$own/ran" 2>/dev/null
        grep -a '^#[0-9]' "$own/log" 2>/dev/null | tail -1
    done | sed -E 's/^#([0-9]+).*/\1/' | awk '{ n += $1 } END { print n + 0 }'
}
summary() {
    for name in "${names[@]}"; do
        printf '%s: %s processes, %s s, %s ends that were not normal, about %s inputs run\n' "$name" "${processes[$name]}" \
            "$SECONDS" "$(find "$work/out/ends" -maxdepth 1 -name "$name-*" | wc -l)" "$(inputs_run "$name")"
    done >"$work/out/summary.txt"
    cat "$work/out/summary.txt"
}
# A file that is complete or not there. Too much: the last ends are left out.
deliver() {
    tar cf - -C "$1" . | gzip -6 | head -c 15000000 >"$out/.$2" && mv "$out/.$2" "$out/$2"
}
ulimit -c 0
export CLUSTERLAB_EMU_LOG=none CLUSTERLAB_EMU_BUDGET=200000
# What was freed last is kept apart by AddressSanitizer, 256 MB of it unless told otherwise.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=${FUZZ_LEAKS:-1}:handle_abort=1:abort_on_error=0:print_legend=0:symbolize=0:quarantine_size_mb=32
export UBSAN_OPTIONS=print_stacktrace=1:symbolize=0

for name in "${names[@]}"; do
    mkdir -p "$work/$name/corpus"
    [[ ! -f $corpora/$name.pack ]] ||
        timeout -s KILL 20 "$fuzzers/fuzz_replay_parse" --unpack "$corpora/$name.pack" "$work/$name/corpus" >"$work/$name/unpack.log"
    options=()
    [[ ! -f $corpora/$name.dict ]] || options+=("-dict=$corpora/$name.dict")
    [[ $name != module && $name != calls ]] || options+=(-len_control=0) # short inputs do nothing
    for ((process = 0; process < processes[$name]; process++)); do
        mkdir -p "$work/$name/process$process/found"
        one "$name" "$process" "${options[@]}" &
        children+=($!)
    done
done
echo "started ${#children[@]} processes after $SECONDS s"
while ((SECONDS < seconds + 12)); do
    sleep $((seconds + 12 - SECONDS < 30 ? seconds + 12 - SECONDS : 30))
    export -f deliver
    summary
    out=$out timeout -s KILL 20 bash -c "deliver '$work/out' ends.tgz" || echo "ends.tgz: status $?"
    kill -0 "${children[@]}" 2>/dev/null || break # all have ended
done
kill -KILL "${children[@]}" 2>/dev/null
children=()
memory end >>"$work/out/machine.txt"
# New inputs have the names that libFuzzer gives; of those as many as there is room for.
mkdir -p "$work/inputs"
sample() {
    local room=2500000 # bytes; texts can be compressed
    [[ $1 != parse && $1 != run ]] || room=8000000
    mkdir -p "$work/inputs/$1"
    find "$work/$1/corpus" -type f -name '????????????????????????????????????????' -printf '%s %p\n' | shuf |
        awk -v room=$room '{ room -= $1; if (room < 0) exit; print $2 }' | xargs -r cp -t "$work/inputs/$1"
}
export -f sample
export work
samplers=()
for name in "${names[@]}"; do
    timeout -s KILL 15 bash -c "sample $name" &
    samplers+=($!)
done
wait "${samplers[@]}"
out=$out timeout -s KILL 15 bash -c "deliver '$work/inputs' inputs.tgz" || echo "inputs.tgz: status $?"
summary
out=$out timeout -s KILL 15 bash -c "deliver '$work/out' ends.tgz" || echo "ends.tgz: status $?"
echo "ended after $SECONDS s"
! grep -q ', [1-9][0-9]* ends' "$work/out/summary.txt"
