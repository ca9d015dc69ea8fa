#!/usr/bin/env bash
# Puts functions and lines into traces that name offsets only: "(/somewhere/fuzz_calls+0x1234)".
#
# usage: symbolise.sh FUZZERS <LOG      FUZZERS: the folder of the programs with their debugging information
set -euo pipefail
fuzzers=$1
symbolizer=$(command -v llvm-symbolizer || command -v llvm-symbolizer-14) || { echo "llvm-symbolizer is missing" >&2; exit 2; }
while IFS= read -r line; do
    if [[ $line =~ \((.*/)?(fuzz_[a-z_]+)\+(0x[0-9a-f]+)\) && -x $fuzzers/${BASH_REMATCH[2]} ]]; then
        printf '%s ' "${line%%(*}"
        "$symbolizer" --obj="$fuzzers/${BASH_REMATCH[2]}" --inlines --pretty-print "${BASH_REMATCH[3]}" |
            sed -E "s,$PWD/,,g; /^\$/d" | tr '\n' ' '
        echo
    else
        printf '%s\n' "$line"
    fi
done
