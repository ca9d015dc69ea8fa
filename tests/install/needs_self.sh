#!/usr/bin/env bash
# The firing cases of needs.sh, with a made-up objdump: a library too many, and a symbol of a newer glibc.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fake NEEDED VERSION: an objdump that reports them for every file.
fake() {
    cat >"$work/objdump" <<SCRIPT
#!/bin/sh
case \$1 in
-p) echo "  NEEDED               libc.so.6"; echo "  NEEDED               $1" ;;
-T) echo "0 DF *UND* 0 (GLIBC_2.17) f"; echo "0 DF *UND* 0 (GLIBC_$2) g" ;;
esac
SCRIPT
    chmod +x "$work/objdump"
}
# expect STATUS TEXT [argument...]
failures=0
expect() {
    local wanted=$1 text=$2 got=0 out
    shift 2
    out=$(PATH="$work:$PATH" "$here/needs.sh" "$work/objdump" a b "$@" 2>&1) || got=$?
    if [[ $got != "$wanted" || $out != *"$text"* ]]; then
        echo "wanted status $wanted and '$text', got $got and:"
        echo "$out"
        failures=$((failures + 1))
    fi
}
# shellcheck disable=SC2016  # for the script that is written
printf '#!/bin/sh\necho "glibc ${FAKE_GLIBC:-2.36}"\n' >"$work/getconf"
chmod +x "$work/getconf"

fake libm.so.6 2.36
expect 0 "glibc 2.36"
fake liblua5.4.so.0 2.36
expect 1 "a: needs liblua5.4.so.0"
expect 0 "not judged" --shared
fake libm.so.6 2.38
expect 1 "needs glibc 2.38, and the limit is 2.36"
export FAKE_GLIBC=2.39
expect 77 "built with glibc 2.39"
fake liblua5.4.so.0 2.38
expect 1 "a: needs liblua5.4.so.0"

exit $((failures > 0))
