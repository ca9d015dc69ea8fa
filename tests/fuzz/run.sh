#!/usr/bin/env bash
# Runs every fuzzer of a folder for a while, each in several processes that share their corpus.
#
# usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]
#   FUZZERS  the folder with fuzz_parse, fuzz_module, …       default: the folder of this script
#   CORPORA  the folder with parse.pack, module.pack, …       default: FUZZERS/corpus
#
# The time is that of the fuzzing; ending and minimising take at most 140 s more. FUZZERS needs the
# libFuzzer programs and one fuzz_replay_parse, which packs and unpacks for all. NAME.dict beside a pack holds words.
#
# OUT gets found.tgz (inputs that crashed, hung, leaked or took too much memory, with the log of each), NAME.pack.gz (new
# corpora, minimised by the edges that they reach) and summary.txt. Status 1 when something was found.
set -uo pipefail
seconds=${1:?usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]} out=${2:?}
here=$(cd "$(dirname "$0")" && pwd)
fuzzers=$(cd "${3:-$here}" && pwd)
corpora=$(cd "${4:-$fuzzers/corpus}" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
declare -A weight=([parse]=1 [image]=2 [calls]=3 [run]=3 [module]=4)
names=() total=0
for program in "$fuzzers"/fuzz_*; do
    name=$(basename "$program")
    [[ $name == fuzz_replay_* || ! -x $program ]] && continue
    names+=("${name#fuzz_}")
    total=$((total + ${weight[${name#fuzz_}]:-1}))
done
processes() {
    local n=$(($(nproc) * ${weight[$1]:-1} / total))
    echo $((n > 0 ? n : 1))
}
# One process, and the next when it dies: the whole of its last words is kept. (libFuzzer's own -fork keeps one line.)
one() {
    local name=$1 process=$2 end=$((SECONDS + seconds)) log n=0
    log=$work/$name/log$process
    cd "$work/$name" || return
    while ((SECONDS < end)); do
        timeout -k 5 $((end - SECONDS + 40)) "$fuzzers/fuzz_$name" corpus -reload=1 -timeout=60 -rss_limit_mb=4096 \
            -max_total_time=$((end - SECONDS)) -max_len=8192 -print_final_stats=1 "${@:3}" \
            -artifact_prefix="$work/$name/found/" >"$log" 2>&1 </dev/null && break
        n=$((n + 1))
        tail -c 20000 "$log" >"found/log$process.$n"
    done
    grep -a '^#' "$log" | tail -1 >>"$work/$name/last"
}
export CLUSTERLAB_EMU_LOG=none CLUSTERLAB_EMU_BUDGET=200000
# What was freed last is kept apart by AddressSanitizer, 256 MB of it unless told otherwise.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:handle_abort=1:quarantine_size_mb=32 UBSAN_OPTIONS=print_stacktrace=1

for name in "${names[@]}"; do
    mkdir -p "$work/$name/corpus" "$work/$name/found" "$work/$name/merged"
    [[ ! -f $corpora/$name.pack ]] || "$fuzzers/fuzz_replay_parse" --unpack "$corpora/$name.pack" "$work/$name/corpus" >"$work/$name/unpack.log"
    options=()
    [[ ! -f $corpora/$name.dict ]] || options+=("-dict=$corpora/$name.dict")
    [[ $name != module && $name != calls ]] || options+=(-len_control=0) # short inputs do nothing
    for ((process = 0; process < $(processes "$name"); process++)); do
        one "$name" "$process" "${options[@]}" &
    done
done
wait
# Each process minimises its share of the corpus; what was not done in time is kept whole.
for name in "${names[@]}"; do
    shares=$(processes "$name") next=0
    for input in "$work/$name"/corpus/*; do
        mkdir -p "$work/$name/share$((next % shares))"
        ln "$input" "$work/$name/share$((next++ % shares))/"
    done
    for ((share = 0; share < shares && share < next; share++)); do
        (cd "$work/$name" && mkdir -p "merged$share" || exit
         timeout 90 "$fuzzers/fuzz_$name" -merge=1 -use_counters=0 -rss_limit_mb=4096 -max_len=8192 "merged$share" \
             "share$share" >"merge$share.log" 2>&1 </dev/null || cp "share$share"/* "merged$share") &
    done
done
wait
for name in "${names[@]}"; do
    cp "$work/$name"/merged?*/* "$work/$name/merged/"
    (cd "$work/$name/merged" && "$fuzzers/fuzz_replay_parse" --pack "$work/$name.pack" ./*)
    gzip -9 <"$work/$name.pack" >"$out/$name.pack.gz"
done
for name in "${names[@]}"; do
    found=$(find "$work/$name/found" -type f ! -name 'log*' | wc -l)
    printf '%s: %s s, %s found, %s inputs run, %s in the corpus, minimised %s\n' "$name" "$seconds" "$found" \
        "$(sed -E 's/^#([0-9]+).*/\1/' "$work/$name/last" | awk '{ n += $1 } END { print n + 0 }')" \
        "$(find "$work/$name/corpus" -type f | wc -l)" "$(find "$work/$name/merged" -type f | wc -l)"
done | tee "$out/summary.txt"
(cd "$work" && tar czf "$out/found.tgz" ./*/found)
! grep -q ', [1-9][0-9]* found' "$out/summary.txt"
