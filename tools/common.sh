# Shared by the scripts of this folder (sourced, not run): where the tree is, messages, configure and build.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOL=$(basename "$0")

say() {
    printf '%s: %s\n' "$TOOL" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# The first comment of a script, as its --help.
usage_from_header() {
    sed -n '2,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p;}' "$1"
}

# configure PRESET [cmake argument...]: only when build/PRESET has not been configured; after that ninja itself sees
# whether a CMakeLists.txt has changed.
configure() {
    local preset=$1 arguments=("${@:2}") log
    [[ -f $ROOT/build/$preset/build.ninja ]] && return 0
    # Where setup had to fetch the headers, an older toolkit in CUDA_HOME is not to win.
    [[ -f $ROOT/.toolkit/include/cuda.h ]] && arguments+=("-DCUDA_INCLUDE_DIR=$ROOT/.toolkit/include")
    command -v ccache >/dev/null && arguments+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    say "configuring build/$preset"
    if ! log=$(cd "$ROOT" && cmake --preset "$preset" "${arguments[@]}" 2>&1); then
        printf '%s\n' "$log" >&2
        rm -f "$ROOT/build/$preset/CMakeCache.txt"
        die "configuring preset $preset failed"
    fi
}

# build PRESET [target...]: quiet when nothing is to be done.
build() {
    local preset=$1 targets=("${@:2}")
    if [[ $(ninja -C "$ROOT/build/$preset" -n "${targets[@]}" 2>/dev/null | tail -n 1) == "ninja: no work to do." ]]; then
        return 0
    fi
    say "building build/$preset"
    ninja -C "$ROOT/build/$preset" "${targets[@]}" >&2 || die "building preset $preset failed"
}
