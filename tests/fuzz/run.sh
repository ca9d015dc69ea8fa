#!/usr/bin/env bash
# Runs every fuzzer of a folder for a while, each in several processes that share their corpus.
#
# usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]
#   FUZZERS  the folder with fuzz_parse, fuzz_module, …       default: the folder of this script
#   CORPORA  the folder with parse.pack, module.pack, …       default: FUZZERS/corpus
#
# The time is that of the fuzzing; minimising the corpora afterwards takes at most 90 s more. FUZZERS needs the libFuzzer
# programs and one fuzz_replay_parse, which packs and unpacks for all.
#
# OUT gets found.tar (inputs that crashed, hung, leaked or took too much memory, with the log of each), corpora.tar (new
# corpora, minimised) and summary.txt. Status 1 when something was found.
set -uo pipefail
seconds=${1:?usage: run.sh SECONDS OUT [FUZZERS] [CORPORA]} out=${2:?}
here=$(cd "$(dirname "$0")" && pwd)
fuzzers=$(cd "${3:-$here}" && pwd)
corpora=$(cd "${4:-$fuzzers/corpus}" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
names=()
for program in "$fuzzers"/fuzz_*; do
    name=$(basename "$program")
    [[ $name == fuzz_replay_* || ! -x $program ]] || names+=("${name#fuzz_}")
done
each=$(($(nproc) / ${#names[@]}))
((each > 0)) || each=1
export CLUSTERLAB_EMU_LOG=none CLUSTERLAB_EMU_BUDGET=200000
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:handle_abort=1 UBSAN_OPTIONS=print_stacktrace=1

for name in "${names[@]}"; do
    mkdir -p "$work/$name/corpus" "$work/$name/found" "$work/$name/merged"
    [[ ! -f $corpora/$name.pack ]] || "$fuzzers/fuzz_replay_parse" --unpack "$corpora/$name.pack" "$work/$name/corpus" >"$work/$name/unpack.log"
    dictionary=()
    [[ ! -f $corpora/$name.dict ]] || dictionary=("-dict=$corpora/$name.dict")
    (cd "$work/$name" && exec "$fuzzers/fuzz_$name" corpus -fork="$each" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 \
        -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -max_len=4096 "${dictionary[@]}" \
        -artifact_prefix="$work/$name/found/" >"$work/$name/log" 2>&1) &
done
wait
for name in "${names[@]}"; do
    (cd "$work/$name" || exit
     timeout 90 "$fuzzers/fuzz_$name" -merge=1 -rss_limit_mb=2048 -max_len=4096 merged corpus >merge.log 2>&1 ||
         cp corpus/* merged/
     find merged -type f -print0 | sort -z | xargs -0 "$fuzzers/fuzz_replay_parse" --pack "$work/$name.pack") &
done
wait
status=0
for name in "${names[@]}"; do
    found=$(find "$work/$name/found" -type f | wc -l)
    ((found == 0)) || status=1
    printf '%s: %s processes, %s s, %s found, %s inputs in the corpus, last line: %s\n' "$name" "$each" "$seconds" "$found" \
        "$(find "$work/$name/merged" -type f | wc -l)" "$(grep '^#' "$work/$name/log" | tail -1)"
done | tee "$out/summary.txt"
for name in "${names[@]}"; do
    [[ -z $(find "$work/$name/found" -type f) ]] || status=1
    tail -c 4000000 "$work/$name/log" >"$work/$name/found/log"
done
(cd "$work" && tar cf "$out/found.tar" ./*/found && tar cf "$out/corpora.tar" ./*.pack)
exit $status
