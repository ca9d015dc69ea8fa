#!/usr/bin/env bash
# tools/check-layout accepts a well-formed tree and reports each kind of violation, alone.
set -euo pipefail
check=$(cd "$(dirname "$0")/../.." && pwd)/tools/check-layout
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fresh_tree() {
    rm -rf "$work/tree"
    mkdir -p "$work"/tree/{host/base,kernels,ptx,tests,tools,build/junk}
    touch "$work"/tree/{CMakeLists.txt,CMakePresets.json,README.md,build/junk/Any_Thing.c}
    printf '/* one */\n' >"$work/tree/host/base/one.c"
}

# expect TEXT: check-layout prints exactly one line, which contains TEXT; with "" none.
expect() {
    local wanted=$1 output status=0
    output=$("$check" "$work/tree") || status=$?
    if [[ -z $wanted && -z $output && $status == 0 ]]; then
        return
    fi
    if [[ -n $wanted && $status == 1 && $output == *"$wanted"* && $(wc -l <<<"$output") == 1 ]]; then
        return
    fi
    printf 'wanted "%s", got status %d and:\n%s\n' "$wanted" "$status" "$output"
    failures=$((failures + 1))
}

fresh_tree
expect ""

fresh_tree
touch "$work/tree/notes.txt"
expect "notes.txt: does not belong at the top level"

fresh_tree
rm -r "$work/tree/ptx"
expect "ptx: missing at the top level"

fresh_tree
touch "$work"/tree/tests/{a,b,c,d,e}
expect ""
touch "$work/tree/tests/f"
expect "tests: 6 files and no README.md"
touch "$work/tree/tests/README.md"
expect ""

fresh_tree
printf '/* two */\n' >"$work/tree/host/base/two.c"
# shellcheck disable=SC2016  # backticks of markdown
printf '| `one.c` |\n' >"$work/tree/host/base/README.md"
expect "host/base/README.md: does not name two.c"
# shellcheck disable=SC2016
printf '| `one.c`, `tw*.c` |\n' >"$work/tree/host/base/README.md"
expect ""

fresh_tree
{ echo '/* long */' && yes '' | head -n 1499; } >"$work/tree/host/base/one.c" || true
expect ""
echo >>"$work/tree/host/base/one.c"
expect "host/base/one.c: 1501 lines"
mv "$work/tree/host/base/one.c" "$work/tree/host/base/one.def"
expect ""

fresh_tree
printf '/* x */\n' >"$work/tree/host/base/one-two.c"
expect "host/base/one-two.c: C files are named"

fresh_tree
touch "$work/tree/tests/Data.txt"
expect "tests/Data.txt: names are of"

fresh_tree
printf '#include <x.h>\n' >"$work/tree/host/base/one.c"
expect "host/base/one.c: does not open with a comment"

exit $((failures > 0))
