#!/usr/bin/env bash
# Everything that run.sh needs on another machine, in one archive: the fuzzers without debugging information (their traces
# are offsets: symbolise them with the programs that stay here), corpora, words.
#
# usage: portable.sh FUZZERS OUT.tgz [CORPORA]      FUZZERS: build/fuzz/tests/fuzz; CORPORA: default tests/fuzz/corpus
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
fuzzers=$1 out=$2 corpora=${3:-$here/corpus}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/fuzz/corpus"
for program in "$fuzzers"/fuzz_*; do
    [[ $program == */fuzz_replay_* && $program != */fuzz_replay_parse || $program == */fuzz_faults_* ]] || strip --strip-all -o "$work/fuzz/$(basename "$program")" "$program"
done
cp "$here/run.sh" "$work/fuzz"
cp "$corpora"/*.pack "$work/fuzz/corpus"
# Words of the instruction table, with their dots.
grep -oE '[.]?[a-z][a-z0-9_]+(::[a-z0-9_:]+)*' "$here/../../host/ptx/insn.def" | sort -u |
    awk 'length($0) < 60 { printf "\"%s\"\n", $0 }' >"$work/fuzz/corpus/parse.dict"
for name in run image; do cp "$work/fuzz/corpus/parse.dict" "$work/fuzz/corpus/$name.dict"; done
tar cf - -C "$work" fuzz | gzip -9 >"$out"
ls -l "$out"
