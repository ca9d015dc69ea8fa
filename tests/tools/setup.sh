#!/usr/bin/env bash
# tools/setup without network: what it does with a whole toolkit, one without NVRTC, none, and a wrong wheel.
set -euo pipefail
setup=$(cd "$(dirname "$0")/../.." && pwd)/tools/setup
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# No registry can be reached through these settings, whatever the machine's are.
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/wheels PIP_CONFIG_FILE=/dev/null PIP_NO_CACHE_DIR=1
export CLAB_SETUP_IGNORE_TOOLKIT=1 CLAB_TOOLKIT_DIR=$work/fetched
unset CUDA_HOME CUDA_PATH
mkdir "$work/wheels"
if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "pip is not installed, and without it setup would try to install it"
    exit 77
fi

# expect STATUS TEXT: runs setup; its messages contain TEXT ("": there are none).
expect() {
    local wanted_status=$1 wanted=$2 output status=0
    output=$("$setup" 2>&1) || status=$?
    if [[ $status == "$wanted_status" ]] && { [[ -n $wanted && $output == *"$wanted"* ]] || [[ -z $wanted$output ]]; }; then
        return
    fi
    printf 'wanted status %d and "%s", got status %d and:\n%s\n' "$wanted_status" "$wanted" "$status" "$output"
    failures=$((failures + 1))
}

expect_files() {
    local file
    for file in "$@"; do
        [[ -e $file ]] && continue
        echo "$file is missing"
        failures=$((failures + 1))
    done
}

# Nothing at all: one clear message, nothing left behind.
expect 1 "CUDA headers"
[[ ! -e $work/fetched ]] || expect_files "$work/fetched must not be there"

# Headers only: the build can go on, and what is lost is said; not tried again at once, but on demand.
export CUDA_HOME=$work/toolkit
mkdir -p "$CUDA_HOME"/{lib,bin} "$CUDA_HOME"/include/{crt,cccl/cuda/std}
touch "$CUDA_HOME"/include/{nvrtc.h,nvJitLink.h,cooperative_groups.h,crt/host_defines.h,cccl/cuda/std/version}
echo '#define CUDA_VERSION 13000' >"$CUDA_HOME/include/cuda.h"
expect 0 "variants in CUDA C++ (.cu) will be waived"
expect 0 "is not tried again now"
touch -d '2 hours ago' "$CLAB_TOOLKIT_DIR/.wheels/failed"
expect 0 "could not fetch everything"

# An older toolkit's headers do not count.
echo '#define CUDA_VERSION 12090' >"$CUDA_HOME/include/cuda.h"
expect 1 "CUDA headers"
echo '#define CUDA_VERSION 13000' >"$CUDA_HOME/include/cuda.h"
rm "$CLAB_TOOLKIT_DIR/.wheels/failed"

# A whole toolkit: nothing to say, nothing fetched.
touch "$CUDA_HOME"/lib/{libnvrtc.so.13,libnvrtc-builtins.so.13.0,libnvJitLink.so.13}
for tool in nvdisasm cuobjdump; do
    printf '#!/bin/sh\necho "Cuda compilation tools, release 13.0, V13.0.88"\n' >"$CUDA_HOME/bin/$tool"
    chmod +x "$CUDA_HOME/bin/$tool"
done
expect 0 ""

# A disassembler that is too old for Blackwell is fetched; a wheel of the right name with other content is refused.
printf '#!/bin/sh\necho "Cuda compilation tools, release 12.0, V12.0.140"\n' >"$CUDA_HOME/bin/nvdisasm"
python3 - "$work/wheels" <<'PYTHON'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1] + "/nvidia_cuda_nvdisasm-13.2.86-py3-none-any.whl", "w") as wheel:
    info = "nvidia_cuda_nvdisasm-13.2.86.dist-info/"
    wheel.writestr("nvidia/cu13/bin/nvdisasm", "#!/bin/sh\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: nvidia-cuda-nvdisasm\nVersion: 13.2.86\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
PYTHON
expect 0 "HASHES"
[[ ! -e $CLAB_TOOLKIT_DIR/bin/nvdisasm ]] || expect_files "$CLAB_TOOLKIT_DIR/bin/nvdisasm must not be there"

exit $((failures > 0))
