#!/usr/bin/env python3
"""Do the stand-in's exports equal those of a toolkit's stub libcuda? usage: exports.py LIBCUDA.  77: no toolkit, or no nm."""
import glob
import os
import shutil
import subprocess
import sys


def exported(path):
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[2].split("@")[0] for line in text.splitlines() if line.split()[1] in "TW"}


def main():
    places = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")] + sorted(glob.glob("/usr/local/cuda*"))
    stubs = [p + "/lib64/stubs/libcuda.so" for p in places if p and os.path.exists(p + "/lib64/stubs/libcuda.so")]
    if not stubs or not shutil.which("nm"):
        print("skipped: no stub libcuda of a toolkit, or no nm")
        return 77
    ours, theirs = exported(sys.argv[1]), exported(stubs[0])
    for name in sorted(theirs - ours):
        print("missing:", name)
    for name in sorted(ours - theirs):
        print("too many:", name)
    print(len(ours), "exported,", len(theirs), "wanted")
    return int(ours != theirs)


sys.exit(main())
