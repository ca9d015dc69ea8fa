#!/bin/sh
# Compiles real/*.cu with nvcc for three targets, with and without line information, and asks ptx_forms for statements
# that the parser refuses: there must be none. Skipped (status 77) without nvcc.
forms=$1
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || { echo "skipped: no nvcc"; exit 77; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0
check() {
    if ! "$nvcc" -std=c++17 -w -ptx "$@" -o "$work/out.ptx" 2>"$work/log"; then
        echo "nvcc $*:"; cat "$work/log"; status=1; return
    fi
    if ! "$forms" check "$work/out.ptx" >"$work/refused" || [ -s "$work/refused" ]; then
        echo "nvcc $*:"; head -5 "$work/refused"; status=1
    fi
}
for source in real/*.cu; do
    check -arch=compute_90 "$source"
    check -arch=compute_100a "$source"
done
check -arch=compute_120a real/instructions.cu
check -arch=compute_90 -lineinfo real/cluster.cu
check -arch=compute_100 -G real/cluster.cu
exit $status
