#!/usr/bin/env bash
# Runs every fuzzer of a folder for a while, each in several processes that share their corpus, and packs what came of it.
#
# usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]
#   FUZZERS  the folder with fuzz_parse, fuzz_module, …       default: the folder of this script
#   CORPORA  the folder with parse.pack, module.pack, …       default: FUZZERS/corpus
# environment:
#   FUZZ_PROCESSES  processes in all        default: two fewer than processors
#   FUZZ_TARGETS    names, with blanks      default: all
#
# The time is that of the fuzzing; ending, minimising and packing take at most 100 s more. FUZZERS needs the libFuzzer
# programs and one fuzz_replay_parse, which packs and unpacks for all. NAME.dict beside a pack holds words.
#
# OUT gets one file, fuzz.tgz, of at most 15 MB:
#   summary.txt      per target: ends that were not normal, inputs run, corpus
#   machine.txt      limits and memory of the machine, at the start and at each end that was not normal
#   ends/NAME-P-N/   of each such end: what the process wrote (log), its status (rc; 124 and 137: stopped by the clock),
#                    the inputs that it left (crash-…, oom-…, timeout-…, leak-…)
#   slow/NAME-P-N/   the same of processes that found an input slow
#   NAME.pack        the grown corpora, minimised by the edges that they reach, sampled when that is still too much
# Traces name offsets in the programs: symbolise.sh reads them. Status 1 when there was an end that was not normal.
set -uo pipefail
seconds=${1:?usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]} out=${2:?}
here=$(cd "$(dirname "$0")" && pwd)
fuzzers=$(cd "${3:-$here}" && pwd)
corpora=$(cd "${4:-$fuzzers/corpus}" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
mkdir -p "$work/out/ends"
declare -A weight=([parse]=1 [image]=2 [run]=3 [module]=4 [calls]=5)
names=() total=0
for program in "$fuzzers"/fuzz_*; do
    name=$(basename "$program")
    name=${name#fuzz_}
    [[ $name == replay_* || $name == faults_* || ! -x $program || " ${FUZZ_TARGETS:-$name} " != *" $name "* ]] && continue
    names+=("$name")
    total=$((total + ${weight[$name]:-1}))
done
wanted=${FUZZ_PROCESSES:-$(($(nproc) - 2))}
processes() {
    local n=$((wanted * ${weight[$1]:-1} / total))
    echo $((n > 0 ? n : 1))
}
memory() {
    printf '%s: load %s; ' "$1" "$(cut -d' ' -f1-4 /proc/loadavg)"
    awk '/^(MemFree|MemAvailable|Committed_AS|Shmem):/ { printf "%s %d MB; ", $1, $2 / 1024 }' /proc/meminfo
    for file in memory.current memory.events pids.current pids.max; do
        [[ ! -r /sys/fs/cgroup/$file ]] || printf '%s %s; ' "$file" "$(tr '\n' ' ' <"/sys/fs/cgroup/$file")"
    done
    df -k /dev/shm "$work" 2>/dev/null | awk 'NR > 1 { printf "%s %d of %d MB free; ", $NF, $4 / 1024, $2 / 1024 }'
    echo
}
{
    uname -a
    nproc
    ulimit -a
    for file in vm/max_map_count vm/overcommit_memory vm/overcommit_ratio kernel/threads-max kernel/pid_max kernel/randomize_va_space; do
        [[ ! -r /proc/sys/$file ]] || echo "$file $(<"/proc/sys/$file")"
    done
    [[ ! -r /sys/fs/cgroup/memory.max ]] || echo "memory.max $(</sys/fs/cgroup/memory.max)"
    memory start
} >"$work/out/machine.txt" 2>&1

# One process, and the next when it dies: the whole of what it wrote is kept, but for the middle of a very long log.
# (libFuzzer's own -fork keeps one line.) Each has a folder of its own: the driver's calls write files.
one() {
    local name=$1 process=$2 end=$((SECONDS + seconds)) own=$work/$1/process$2 n=0 rc log kept
    mkdir -p "$own/found"
    cd "$own" || return
    log=$own/log
    while ((SECONDS < end)); do
        TMPDIR=$own timeout -k 5 $((end - SECONDS + 30)) "$fuzzers/fuzz_$name" "$work/$name/corpus" -reload=1 -timeout=60 \
            -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_total_time=$((end - SECONDS)) -max_len=8192 -print_final_stats=1 \
            "${@:3}" -artifact_prefix="$own/found/" >"$log" 2>&1 </dev/null
        rc=$?
        grep -a '^#[0-9]' "$log" | tail -1 >>"$work/$name/last"
        [[ $rc == 0 && -z $(ls found) ]] && continue
        n=$((n + 1))
        kept=$work/out/ends/$name-$process-$n
        [[ $rc != 0 ]] || kept=$work/out/slow/$name-$process-$n
        mkdir -p "$kept"
        echo "$rc" >"$kept/rc"
        if (($(stat -c %s "$log") > 400000)); then
            { head -c 100000 "$log"; printf '\n[…]\n'; tail -c 300000 "$log"; } >"$kept/log"
        else
            cp "$log" "$kept/log"
        fi
        mv found/* "$kept/" 2>/dev/null
        memory "$name-$process-$n, status $rc" >>"$work/out/machine.txt"
        sleep 0.2 # one that cannot start at all
    done
}
ulimit -c 0
export CLUSTERLAB_EMU_LOG=none CLUSTERLAB_EMU_BUDGET=200000
# What was freed last is kept apart by AddressSanitizer, 256 MB of it unless told otherwise.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:handle_abort=1:abort_on_error=0:print_legend=0:symbolize=0:quarantine_size_mb=32
export UBSAN_OPTIONS=print_stacktrace=1:symbolize=0

for name in "${names[@]}"; do
    mkdir -p "$work/$name/corpus"
    [[ ! -f $corpora/$name.pack ]] || "$fuzzers/fuzz_replay_parse" --unpack "$corpora/$name.pack" "$work/$name/corpus" >"$work/$name/unpack.log"
    options=()
    [[ ! -f $corpora/$name.dict ]] || options+=("-dict=$corpora/$name.dict")
    [[ $name != module && $name != calls ]] || options+=(-len_control=0) # short inputs do nothing
    for ((process = 0; process < $(processes "$name"); process++)); do
        one "$name" "$process" "${options[@]}" &
    done
done
wait
memory end >>"$work/out/machine.txt"
# Each process minimises its share of the corpus; what was not done in time is kept whole.
for name in "${names[@]}"; do
    shares=$(processes "$name") next=0
    for input in "$work/$name"/corpus/*; do
        mkdir -p "$work/$name/share$((next % shares))"
        ln "$input" "$work/$name/share$((next++ % shares))/"
    done
    for ((share = 0; share < shares && share < next; share++)); do
        (mkdir -p "$work/$name/merged$share" && cd "$work/$name/process$share" || exit
         timeout -k 5 50 "$fuzzers/fuzz_$name" -merge=1 -use_counters=0 -rss_limit_mb=4096 -max_len=8192 "../merged$share" \
             "../share$share" >"../merge$share.log" 2>&1 </dev/null || cp "../share$share"/* "../merged$share") &
    done
done
wait
for name in "${names[@]}"; do
    room=2000000 # bytes; texts can be compressed
    [[ $name != parse && $name != run ]] || room=6000000
    mkdir -p "$work/$name/sample"
    find "$work/$name"/merged* -type f -printf '%s %p\n' | shuf |
        while read -r bytes input && (((room -= bytes) > 0)); do ln -f "$input" "$work/$name/sample/"; done
    (cd "$work/$name/sample" && "$fuzzers/fuzz_replay_parse" --pack "$work/out/$name.pack" ./*)
    printf '%s: %s processes, %s s, %s ends that were not normal, %s inputs run, %s in the corpus, minimised %s, kept %s\n' \
        "$name" "$(processes "$name")" "$seconds" "$(find "$work/out/ends" -maxdepth 1 -name "$name-*" | wc -l)" \
        "$(sed -E 's/^#([0-9]+).*/\1/' "$work/$name/last" | awk '{ n += $1 } END { print n + 0 }')" \
        "$(find "$work/$name/corpus" -type f | wc -l)" "$(find "$work/$name"/merged* -type f | wc -l)" \
        "$(find "$work/$name/sample" -type f | wc -l)"
done | tee "$work/out/summary.txt"
(cd "$work/out" && tar cf - . | gzip -9 >"$out/fuzz.tgz")
if (($(stat -c %s "$out/fuzz.tgz") > 15000000)); then # the ends are what counts
    (cd "$work/out" && rm -f ./*.pack && tar cf - . | gzip -9 | head -c 15000000 >"$out/fuzz.tgz")
fi
! grep -q ', [1-9][0-9]* ends' "$work/out/summary.txt"
