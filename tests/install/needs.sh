#!/usr/bin/env bash
# Reads with objdump what the binaries of a build need: no glibc symbol newer than Debian 12's, and no library but libc,
# libm, libdl and libpthread (NVIDIA's are loaded at run time; Lua, jansson, zstd and LZ4 are linked in).
#
# usage: needs.sh OBJDUMP CLUSTERLAB LIBCUDA [--shared | --sanitize]
#
# Sanitizer builds and builds with shared libraries need more; then only the versions are read. A machine with a newer
# glibc builds for itself, not for others: its versions are printed, status 77.
set -euo pipefail

LIMIT=2.36
objdump=$1
files=("$2" "$3")
mode=${4:-}
status=0

# newest FILE: the newest GLIBC_x.y that the dynamic symbols of FILE ask for.
newest() {
    "$objdump" -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1
}
# older_or_equal A B
older_or_equal() {
    [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1) == "$2" ]]
}

for file in "${files[@]}"; do
    mapfile -t needed < <("$objdump" -p "$file" | awk '$1 == "NEEDED" { print $2 }')
    echo "$file: needs ${needed[*]}, glibc $(newest "$file")"
    ((${#needed[@]})) || { echo "$file: no NEEDED entry was read" && status=1; }
    if [[ -z $mode ]]; then
        for library in "${needed[@]}"; do
            case $library in
            libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | ld-linux-*.so.* | librt.so.1) ;;
            *) echo "$file: needs $library, which a bare machine may lack" && status=1 ;;
            esac
        done
    fi
    if ! older_or_equal "$(newest "$file")" "$LIMIT"; then
        here=$(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{ print $2 }')
        if [[ -n $here ]] && ! older_or_equal "$here" "$LIMIT"; then
            echo "$file: built with glibc $here; releases, for glibc $LIMIT, are built on Debian 12"
            ((status)) || status=77
        else
            echo "$file: needs glibc $(newest "$file"), and the limit is $LIMIT:"
            "$objdump" -T "$file" | grep "GLIBC_$(newest "$file")" || true
            status=1
        fi
    fi
done
[[ -z $mode ]] || echo "libraries not judged in this build ($mode)"
exit $status
