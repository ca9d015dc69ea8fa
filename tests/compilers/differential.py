#!/usr/bin/env python3
"""Random programs through real compilers: what the stand-in driver makes of their PTX against the host's own machine code.

usage: differential.py CLUSTERLAB [--kinds K,...] [--first SEED] [--count N] [--compilers C,...] [--keep DIR] [--list DIR]
                       [--jobs N] [--budget SECONDS]

Kinds: threads, whole, floats (csmith_program.py), atomics, print (atomic_program.py), half, half_undivided, half_loose
(half_program.py; the last one only for the stand-in: a GPU may fuse), flow, warp, ptx (files of these names). A program is one C++
source on runtime.h. What it computes is known from the host (g++ -O0 -fwrapv), of warp and ptx from the generator itself;
NVRTC and clang make PTX of it, which the stand-in driver runs, and every word must agree. What a compiler refuses, or what
runs too long on the host, counts as left out. A difference is printed with the line that repeats it; --keep keeps the source
and the PTX. --list writes every program with its words, for run_ptx.py on a GPU.

Exit status: 0 all agree, 1 some differ, or nothing of a kind could be compared; 77 a tool is missing.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import atomic_program
import csmith_program
import flow_program
import half_program
import ptx_program
import warp_program

HERE = os.path.dirname(os.path.abspath(__file__))
CUDA = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
INCLUDES = ["-I", HERE, "-I", "/usr/include/csmith", "-I", CUDA]
# What C leaves open when a number does not fit an integer ends the program: it is left out.
HOST = ["g++", "-w", "-fpermissive", "-O0", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fsanitize=float-cast-overflow",
        "-fsanitize-undefined-trap-on-error"]  # fmt: skip
CLANG = ["-x", "c++", "-target", "nvptx64-nvidia-cuda", "-S", "-nocudalib", "-std=c++17", "-w", "-Wno-c++11-narrowing", "-ffp-contract=off",
         "-fwrapv", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti"]  # fmt: skip
CLANG_ENTRY = """
.visible .entry start(.param .b64 out, .param .b32 seed)
{
    .reg .b64 %at;
    .reg .b32 %from;
    ld.param.b64 %at, [out];
    ld.param.b32 %from, [seed];
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %at; st.param.b32 [b], %from; call.uni run, (a, b); }
    ret;
}
"""


class Kind:
    """`make` gives (text, words or None); `by` is what the compilers' names begin with that can compile it."""

    def __init__(self, make, threads=64, by=("nvrtc", "clang"), needs=("g++",)):
        self.make, self.threads, self.by, self.needs = make, threads, by, needs


KINDS = {
    "threads": Kind(lambda seed: (csmith_program.program(seed, "threads"), None), needs=("g++", "csmith")),
    "whole": Kind(lambda seed: (csmith_program.program(seed, "whole"), None), threads=1, needs=("g++", "csmith")),
    "floats": Kind(lambda seed: (csmith_program.program(seed, "threads", floats=True), None), needs=("g++", "csmith")),
    "flow": Kind(lambda seed: (flow_program.program(seed), None)),
    "half": Kind(lambda seed: (half_program.program(seed), None), by=("nvrtc",), needs=("g++", "cuda_fp16.h")),
    "half_undivided": Kind(lambda seed: (half_program.program(seed, division=False), None), by=("nvrtc",), needs=("g++", "cuda_fp16.h")),
    "half_loose": Kind(lambda seed: (half_program.program(seed, loose=True), None), by=("nvrtc",), needs=("g++", "cuda_fp16.h")),
    "atomics": Kind(lambda seed: (atomic_program.program(seed), None), by=("nvrtc",)),
    "print": Kind(lambda seed: (atomic_program.printing(seed), None), threads=1, by=("nvrtc",)),
    "warp": Kind(warp_program.program, by=("nvrtc",), needs=()),
    "ptx": Kind(ptx_program.program, by=("none",), needs=()),
}


class Refused(Exception):
    pass


def command(line, seconds, **more):
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=seconds, errors="replace", **more)
    except subprocess.TimeoutExpired:
        raise Refused("time") from None
    if done.returncode:
        raise Refused(" ".join((done.stderr or done.stdout).split()[:60]) or f"status {done.returncode}")
    return done.stdout


def on_host(source, threads, folder):
    main = os.path.join(folder, "host.cpp")
    with open(main, "w", encoding="ascii") as file:
        file.write(f'#include "{source}"\nextern "C" int printf(const char *, ...);\n')
        file.write(f"static unsigned out[{2 * threads}];\nint main()\n{{\n")
        file.write(f"    for (host_thread = 0; host_thread < {threads}; host_thread++)\n        run(out, 0);\n")
        file.write(f'    for (int i = 0; i < {2 * threads}; i++)\n        printf("%u ", out[i]);\n}}\n')
    program = os.path.join(folder, "host")
    command([*HOST, *INCLUDES, main, "-o", program], 120)
    return command([program], 2).split()


def by_nvrtc(arch, *options):
    def compile_to(tool, source, folder):
        line = [tool, "compile", source, "--arch", arch, "--emit", "ptx", "-o", folder, *INCLUDES]
        for option in ("-default-device", "--device-int128", "--fmad=false", "-w", *options):
            line += ["--option", option]
        command(line, 300)
        stem = os.path.splitext(os.path.basename(source))[0]
        return os.path.join(folder, f"{stem}.{arch}.ptx"), "run"

    return compile_to


def by_clang(clang, level, chip, version):
    def compile_to(_tool, source, folder):
        out = os.path.join(folder, "clang.ptx")
        target = ["-Xclang", "-target-cpu", "-Xclang", chip, "-Xclang", "-target-feature", "-Xclang", "+" + version]
        command([clang, *CLANG, level, *target, *INCLUDES, source, "-o", out], 300)
        with open(out, "a", encoding="ascii") as file:
            file.write(CLANG_ENTRY)
        return out, "start"

    return compile_to


def by_nobody(_tool, source, _folder):
    return source, "run"


COMPILERS = {
    "none": by_nobody,
    "nvrtc": by_nvrtc("sm_90"),
    "nvrtc-G": by_nvrtc("sm_90", "-G"),
    "nvrtc-100": by_nvrtc("sm_100"),
    "clang-O0": by_clang("clang", "-O0", "sm_70", "ptx64"),
    "clang-O1": by_clang("clang", "-O1", "sm_70", "ptx64"),
    "clang-O3": by_clang("clang", "-O3", "sm_80", "ptx75"),
    "clang19-O0": by_clang("clang-19", "-O0", "sm_90", "ptx80"),
    "clang19-O2": by_clang("clang-19", "-O2", "sm_90", "ptx80"),
}


def on_emulator(driver, ptx, entry, threads, words, arch):
    line = [sys.executable, os.path.join(HERE, "run_ptx.py"), driver, ptx, entry, str(threads), str(words)]
    return command(line, 300, env={**os.environ, "CLUSTERLAB_EMU_ARCH": arch}).split()


def keep_for_gpu(folder, name, ptx, entry, threads, words):
    os.makedirs(folder, exist_ok=True)
    shutil.copy(ptx, os.path.join(folder, name + ".ptx"))
    with open(os.path.join(folder, name + ".words"), "w", encoding="ascii") as file:
        file.write(" ".join(words) + "\n")
    with open(os.path.join(folder, "list"), "a", encoding="ascii") as file:
        file.write(f"{name}.ptx {entry} {threads} {name}.words\n")


def compare(args, driver, kind, seed, name, source, wanted, folder):
    try:
        ptx, entry = COMPILERS[name](args.tool, source, folder)
    except Refused as refusal:
        return f"left out: {refusal}"
    threads = KINDS[kind].threads
    try:
        got = on_emulator(driver, ptx, entry, threads, 2 * threads, "sm_100" if name == "nvrtc-100" else "sm_90")
        where = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b] or ([len(wanted)] if len(got) != len(wanted) else [])
        verdict = f"differs: {len(where)} of {len(wanted)} words, the first is {where[0]}" if where else "same"
    except (Refused, OSError) as refusal:
        verdict = f"differs: {refusal}"
    if verdict != "same" and args.keep:
        os.makedirs(args.keep, exist_ok=True)
        shutil.copy(source, args.keep)
        shutil.copy(ptx, os.path.join(args.keep, f"{kind}_{seed}.{name}.ptx"))
    if args.list and name != "nvrtc-100":
        keep_for_gpu(args.list, f"{kind}_{seed}.{name}", ptx, entry, threads, wanted)
    return verdict


def one(args, driver, kind, seed):
    """What became of one program with each compiler: name → "same", "left out: …" or "differs: …"."""
    folder = tempfile.mkdtemp(prefix="clab-compilers-")
    try:
        source = os.path.join(folder, f"{kind}_{seed}.cu")
        try:
            text, wanted = KINDS[kind].make(seed)
            with open(source, "w", encoding="ascii") as file:
                file.write(text)
            wanted = [str(word) for word in wanted] if wanted else on_host(source, KINDS[kind].threads, folder)
        except (Refused, subprocess.SubprocessError) as refusal:
            return {"host": f"left out: {refusal}"}
        names = [name for name in args.compilers if name.startswith(KINDS[kind].by)]
        return {name: compare(args, driver, kind, seed, name, source, wanted, folder) for name in names}
    finally:
        shutil.rmtree(folder)


def missing(kinds, compilers, doctor):
    """Of what is needed, the first that is not here."""
    for kind in kinds:
        for need in KINDS[kind].needs:
            if not (os.path.exists(os.path.join(CUDA, need)) if need.endswith(".h") else shutil.which(need)):
                return need
    if "none" not in kinds and any(name.startswith("nvrtc") for name in compilers) and not re.search(r"^NVRTC +ok", doctor, re.M):
        return "NVRTC"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--compilers", default=",".join(COMPILERS))
    parser.add_argument("--keep", help="a folder for what differs")
    parser.add_argument("--list", help="a folder for every program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no further program is begun")
    args = parser.parse_args()
    args.tool = os.path.abspath(args.tool)
    # status 3 without a GPU
    doctor = subprocess.run([args.tool, "doctor"], capture_output=True, text=True, check=False).stdout
    driver = re.search(r"^stand-in driver +ok +\S+ +(\S+)", doctor, re.M).group(1)
    kinds = args.kinds.split(",")
    asked = [name for name in args.compilers.split(",") if any(name.startswith(KINDS[kind].by) for kind in kinds)]
    args.compilers = [name for name in asked if not name.startswith("clang") or shutil.which(name.partition("-")[0].replace("19", "-19"))]
    lacking = missing(kinds, args.compilers, doctor) or (None if args.compilers else "clang")
    if lacking:
        print(f"skipped: {lacking} is missing")
        return 77
    began, counts, bad = time.monotonic(), {}, 0
    tasks = [(kind, seed) for seed in range(args.first, args.first + args.count) for kind in kinds]

    def work(task):
        return task, {} if time.monotonic() - began > args.budget else one(args, driver, *task)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (kind, seed), verdicts in pool.map(work, tasks):
            for name, verdict in verdicts.items():
                counts.setdefault((kind, name), {}).setdefault(verdict.split(":")[0], []).append(seed)
                if verdict.startswith("differs"):
                    bad += 1
                    print(f"{kind} {seed} {name} {verdict}", flush=True)
                    print(f"  again: {sys.argv[0]} {args.tool} --kinds {kind} --first {seed} --count 1 --compilers {name} --keep .", flush=True)
                elif verdict != "same" and args.keep:
                    print(f"{kind} {seed} {name} {verdict}"[:300], flush=True)
    for (kind, name), found in sorted(counts.items()):
        print(f"{kind:8} {name:10} " + ", ".join(f"{what} {len(seeds)}" for what, seeds in sorted(found.items())))
    for kind in kinds:
        if not any("same" in found for (of, _), found in counts.items() if of == kind):
            print(f"nothing of {kind} was compared")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
