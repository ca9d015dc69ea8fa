#!/bin/sh
# Host programs under the checker: what is reported, and the exit status.
# usage: with_check.sh CLUSTERLAB PROGRAM
set -u
clusterlab=$1 program=$2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

# expect STATUS PATTERN OPTION... -- PROGRAM ARGUMENT...: the exit status, and a line of stderr.
expect() {
    wanted=$1 pattern=$2
    shift 2
    "$clusterlab" with-emulator "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    if [ "$got" -ne "$wanted" ] || ! grep -Eq "$pattern" "$scratch/err"; then
        echo "with-emulator $*: status $got, wanted $wanted and a line like $pattern" >&2
        cat "$scratch/err" >&2
        failed=1
    fi
}

expect 3 '^hazard  race-launches  in put' --check -- "$program" 1 2 3
expect 3 'put \(launch 1\)' --check -- "$program" 1 2 3
expect 0 '^clusterlab: 2 launches checked, 1 hazard$' --check -- "$program" 1 2 0
expect 1 'with-emulator --check --seed 5 -- ' --check-fails --seed 5 -- "$program" 1 2 0
expect 7 '1 hazard$' --check-fails -- "$program" 1 2 7
expect 0 '^clusterlab: 2 launches checked, no hazard$' --check-fails -- "$program" 1 1 0
echo 'race-launches kernel=put # two streams, on purpose' >"$scratch/list"
expect 0 'no hazard, 1 suppressed$' --check-fails --suppress "$scratch/list" -- "$program" 1 2 0
expect 143 'launches checked' --check -- sh -c 'kill -TERM $$'
expect 0 '4 launches checked, 1 hazard$' --check -- sh -c "'$program' 1 2 0; '$program' 2 2 0"
expect 127 'cannot run' --check -- "$scratch/nothing"
echo 'race-lunches # typing' >"$scratch/wrong"
expect 2 'no kind of hazard' --check --suppress "$scratch/wrong" -- true
expect 2 '^clusterlab: --seed' --check --seed x -- true
# Without --check: what ended the context, and why a launch was refused, is said all the same; `none` is silent.
expect 99 'stand-in driver: .*store of 4 bytes: null address' -- "$program" 1 null 0
expect 99 'cuLaunchKernel returns CUDA_ERROR_INVALID_VALUE: block 2048 x 1 x 1' -- "$program" 1 large 0
CLUSTERLAB_EMU_LOG=none "$clusterlab" with-emulator -- "$program" 1 null 0 2>"$scratch/err" >"$scratch/out"
if grep -q 'stand-in driver' "$scratch/err"; then
    echo "CLUSTERLAB_EMU_LOG=none is not silent" >&2
    failed=1
fi
exit $failed
