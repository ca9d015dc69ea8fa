#!/usr/bin/env python3
"""Do the stand-in's exports equal those of a toolkit's stub libcuda and, with them, the calls of cudaGL.h, cudaEGL.h and
cudaVDPAU.h, which a driver exports and the stub does not? Are the names that nothing is done for those of
data/not_emulated.txt? usage: exports.py LIBCUDA NOT_EMULATED.  77: no toolkit, or no nm."""
import glob
import os
import re
import shutil
import subprocess
import sys


GRAPHICS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../host/driver/cuda_graphics.def")


def exported(path, kinds="TW"):
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[2].split("@")[0] for line in text.splitlines() if line.split()[1] in kinds}


def check_stubs(library, listing):
    """Stubs are the weak names (host/emu/exports.c)."""
    stubs = exported(library, "W")
    listed = [line.strip() for line in open(listing) if line.strip() and not line.startswith("#")]
    for name in sorted(stubs - set(listed)):
        print("nothing is done for", name, "and data/not_emulated.txt does not say why")
    for name in sorted(set(listed) - stubs):
        print("in data/not_emulated.txt, but done, or no name at all:", name)
    if len(listed) != len(set(listed)):
        print("a name is in data/not_emulated.txt twice")
    print(len(stubs), "names that nothing is done for")
    return stubs == set(listed) and len(listed) == len(stubs)


def main():
    places = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")] + sorted(glob.glob("/usr/local/cuda*"))
    stubs = [p + "/lib64/stubs/libcuda.so" for p in places if p and os.path.exists(p + "/lib64/stubs/libcuda.so")]
    if not stubs or not shutil.which("nm"):
        print("skipped: no stub libcuda of a toolkit, or no nm")
        return 77
    if not check_stubs(sys.argv[1], sys.argv[2]):
        return 1
    graphics = set(re.findall(r"^CU_GRAPHICS(?:_PT)?\((\w+),", open(GRAPHICS).read(), re.M))
    ours, theirs = exported(sys.argv[1]), exported(stubs[0]) | graphics
    for name in sorted(theirs - ours):
        print("missing:", name)
    for name in sorted(ours - theirs):
        print("too many:", name)
    print(len(ours), "exported,", len(theirs), "wanted")
    return int(ours != theirs)


sys.exit(main())
