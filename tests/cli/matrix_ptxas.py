#!/usr/bin/env python3
"""Cells of `clusterlab matrix` against ptxas: every file of ptx/ for every target, accepted or refused.

usage: matrix_ptxas.py CLUSTERLAB PTX_FOLDER
Exit status 77 (skipped) without ptxas or nvJitLink, or when they are of different versions.
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys


def text_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main():
    clusterlab, folder = sys.argv[1:3]
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.access(ptxas, os.X_OK):
        print("skipped: ptxas is not here")
        sys.exit(77)
    version = re.search(r"release (\d+\.\d+)", text_of(ptxas, "--version")).group(1)
    linker = re.search(r"^nvJitLink\s+ok\s+.*?(\d+\.\d+)", text_of(clusterlab, "doctor"), re.MULTILINE | re.IGNORECASE)
    if not linker or linker.group(1) != version:
        print(f"skipped: ptxas is {version}, nvJitLink {linker.group(1) if linker else 'not here'}")
        sys.exit(77)
    done = subprocess.run([clusterlab, "matrix", *sorted(glob.glob(folder + "/*.ptx")), "--no-run", "--json", "-"],
                          capture_output=True, text=True, check=False)
    cells = [record for record in map(json.loads, done.stdout.splitlines()) if record["type"] == "matrix"]
    if len(cells) < 17 * 10:
        sys.exit(f"only {len(cells)} cells: {done.stderr}")

    def taken(cell):
        command = [ptxas, "-arch", cell["arch"], "-c", "-O0", os.path.join(folder, os.path.basename(cell["source"])), "-o", "/dev/null"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad = [f"{cell['kernel']} for {cell['arch']}: ptxas {answer}, matrix '{cell['letter']}' {cell['reason']}"
               for cell, answer in zip(cells, pool.map(taken, cells))
               if answer != (cell["stage"] in ("complete", "assembled"))]
    print("\n".join(bad) or f"{len(cells)} cells agree with ptxas {version}")
    sys.exit(1 if bad else 0)


main()
