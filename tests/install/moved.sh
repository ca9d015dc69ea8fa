#!/usr/bin/env bash
# Installs the build into a scratch prefix, moves it, and runs it from another folder in an empty environment.
#
# usage: moved.sh CMAKE BUILD_FOLDER [CROSS_COMPILED]
set -euo pipefail
cmake=$1
build=$2
[[ ${3:-} != [Tt]* && ${3:-} != 1 ]] || { echo "skipped: built for another machine" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log" && exit 1; }
mkdir -p "$work/moved here" "$work/elsewhere"
prefix="$work/moved here/préfixe"
mv "$work/first" "$prefix"

failures=0
complain() {
    echo "$*"
    failures=$((failures + 1))
}
for file in bin/clusterlab lib/clusterlab/emu/libcuda.so.1 share/clusterlab/kernels/reduce.lua \
    share/clusterlab/ptx/reduce_mapa.ptx; do
    [[ -e $prefix/$file ]] || complain "$file was not installed"
done
[[ ! -f $build/../../README.md || -e $prefix/share/doc/clusterlab/README.md ]] || complain "no share/doc/clusterlab/README.md"
while IFS= read -r file; do
    case $file in
    bin/clusterlab | lib/clusterlab/emu/libcuda.so.1 | lib/clusterlab/emu/libnvJitLink.so.1[23] | lib/clusterlab/emu/libclusterlab-preload.so | share/clusterlab/kernels/* | share/clusterlab/ptx/*) ;;
    share/doc/clusterlab/*) ;;
    *) complain "$file: not meant to be installed" ;;
    esac
done < <(cd "$prefix" && find . -type f -o -type l | sed 's/^\.\///')
for file in bin/clusterlab lib/clusterlab/emu/libcuda.so.1; do
    if objdump -p "$prefix/$file" | grep -E 'RPATH|RUNPATH'; then
        complain "$file: looks for its libraries in a folder of the machine that built it"
    fi
done

# In an empty environment, from another folder: no HOME, no cache, no toolkit variable.
cd "$work/elsewhere"
clean() {
    env -i PATH=/usr/bin:/bin TMPDIR="$work" "$prefix/bin/clusterlab" "$@"
}
clean run reduce --device emu:sm_90 --variant mapa --set n=5000 --json "$work/rows.jsonl" >"$work/out" 2>"$work/err" ||
    complain "run: status $?"
grep -qE '^mapa +8 .* ok$' "$work/out" || complain "run: no verified row"
grep -q '"status":"ok"' "$work/rows.jsonl" || complain "run: no record"
clean list >"$work/list" 2>>"$work/err" || complain "list: status $?"
grep -qF "$prefix/share/clusterlab/kernels/reduce.lua" "$work/list" || complain "list: not the installed reduce.lua"
# (AddressSanitizer must come first in a process, so a stand-in driver built with it cannot be preloaded.)
# shellcheck disable=SC2016  # for the inner shell
grep -q __asan_init "$prefix/bin/clusterlab" || clean with-emulator -- sh -c 'case $LD_LIBRARY_PATH in */lib/clusterlab/emu*) ;; *) exit 9 ;; esac' \
    2>"$work/emulator" || complain "with-emulator: status $?"
[[ ! -s $work/emulator ]] || complain "with-emulator: $(cat "$work/emulator")"
if ((failures)); then
    cat "$work/out" "$work/err" "$work/list"
    exit 1
fi
