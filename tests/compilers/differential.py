#!/usr/bin/env python3
"""Random programs through real compilers: what the stand-in driver makes of their PTX against the host's own machine code.

usage: differential.py CLUSTERLAB [--kinds K,...] [--first SEED] [--count N] [--compilers C,...] [--keep DIR] [--budget SECONDS]

Each program is one C++ source (runtime.h). The host runs it as g++ -O0 -fwrapv made it; NVRTC and clang make PTX of it, which
`clusterlab launch` runs; every word must agree. A program that a compiler refuses, or that runs too long on the host, counts
as left out. On a difference the source and the PTX are kept, and the lines that rerun it are printed.
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

import csmith_program
import flow_program

HERE = os.path.dirname(os.path.abspath(__file__))
CSMITH = "/usr/include/csmith"
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
KINDS = {
    "threads": lambda seed: (csmith_program.program(seed, "threads"), 64),
    "whole": lambda seed: (csmith_program.program(seed, "whole"), 1),
    "flow": lambda seed: (flow_program.program(seed), 64),
    "floats": lambda seed: (csmith_program.program(seed, "threads", floats=True), 64),
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
    command(["g++", "-w", "-fpermissive", "-O0", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-I", HERE, "-I", CSMITH,
             main, "-o", program], 120)  # fmt: skip
    return command([program], 2).split()


def by_nvrtc(arch, *options):
    def compile_to(tool, source, folder):
        line = [tool, "compile", source, "--arch", arch, "--emit", "ptx", "-o", folder, "-I", HERE, "-I", CSMITH]
        for option in ("-default-device", "--device-int128", "--fmad=false", "-w", *options):
            line += ["--option", option]
        command(line, 300)
        stem = os.path.splitext(os.path.basename(source))[0]
        return os.path.join(folder, f"{stem}.{arch}.ptx"), "run"

    return compile_to


def by_clang(clang, level, chip, version):
    def compile_to(_tool, source, folder):
        out = os.path.join(folder, "clang.ptx")
        command([clang, "-x", "c++", "-target", "nvptx64-nvidia-cuda", "-S", level, "-nocudalib", "-std=c++17", "-w", "-Wno-c++11-narrowing",
                 "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-I", HERE, "-I", CSMITH, "-Xclang", "-target-cpu", "-Xclang", chip,
                 "-Xclang", "-target-feature", "-Xclang", "+" + version, source, "-o", out], 300)  # fmt: skip
        with open(out, "a", encoding="ascii") as file:
            file.write(CLANG_ENTRY)
        return out, "start"

    return compile_to


COMPILERS = {
    "nvrtc": by_nvrtc("sm_90"),
    "nvrtc-G": by_nvrtc("sm_90", "-G"),
    "nvrtc-100": by_nvrtc("sm_100"),
    "clang-O0": by_clang("clang", "-O0", "sm_70", "ptx64"),
    "clang-O1": by_clang("clang", "-O1", "sm_70", "ptx64"),
    "clang-O3": by_clang("clang", "-O3", "sm_80", "ptx75"),
}


for later in ("19",):
    if shutil.which("clang-" + later):
        for level in ("-O0", "-O2"):
            COMPILERS[f"clang{later}{level}"] = by_clang("clang-" + later, level, "sm_90", "ptx80")


def on_emulator(driver, ptx, entry, threads):
    arch = "sm_100" if "sm_100" in ptx else "sm_90"
    text = command([sys.executable, os.path.join(HERE, "run_ptx.py"), driver, ptx, entry, str(threads), str(2 * threads)], 300,
                   env={**os.environ, "CLUSTERLAB_EMU_ARCH": arch})  # fmt: skip
    return text.split()


def one(tool, driver, kind, seed, compilers, keep):
    """What became of one program with each compiler: name → "same", "left out: …" or "differs: …"."""
    folder = tempfile.mkdtemp(prefix="clab-compilers-")
    verdicts = {}
    try:
        source = os.path.join(folder, f"{kind}_{seed}.cu")
        try:
            text, threads = KINDS[kind](seed)
            with open(source, "w", encoding="ascii") as file:
                file.write(text)
            wanted = on_host(source, threads, folder)
        except (Refused, subprocess.SubprocessError) as refusal:
            return {"host": f"left out: {refusal}"}
        for name in compilers:
            try:
                ptx, entry = COMPILERS[name](tool, source, folder)
            except Refused as refusal:
                verdicts[name] = f"left out: {refusal}"
                continue
            try:
                got = on_emulator(driver, ptx, entry, threads)
                where = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
                verdicts[name] = f"differs: {len(where)} of {len(wanted)} words, the first is {where[0]}" if where else "same"
            except (Refused, ValueError, OSError) as refusal:
                verdicts[name] = f"differs: {refusal}"
            if verdicts[name] != "same" and keep:
                os.makedirs(keep, exist_ok=True)
                shutil.copy(source, keep)
                shutil.copy(ptx, os.path.join(keep, f"{kind}_{seed}.{name}.ptx"))
    finally:
        shutil.rmtree(folder)
    return verdicts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--compilers", default=",".join(COMPILERS))
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no further program is begun")
    args = parser.parse_args()
    driver = re.search(r"^stand-in driver +ok +\S+ +(\S+)", command([args.tool, "doctor"], 60), re.M).group(1)
    compilers = [name for name in args.compilers.split(",") if not name.startswith("clang") or shutil.which("clang")]
    began, counts, bad = time.monotonic(), {}, 0
    tasks = [(kind, seed) for seed in range(args.first, args.first + args.count) for kind in args.kinds.split(",")]

    def work(task):
        if time.monotonic() - began > args.budget:
            return task, {}
        return task, one(os.path.abspath(args.tool), driver, *task, compilers, args.keep)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (kind, seed), verdicts in pool.map(work, tasks):
            for name, verdict in verdicts.items():
                counts.setdefault((kind, name), {}).setdefault(verdict.split(":")[0], []).append(seed)
                if verdict.startswith("differs"):
                    bad += 1
                    print(f"{kind} {seed} {name} {verdict}", flush=True)
                    print(f"  {sys.argv[0]} {args.tool} --kinds {kind} --first {seed} --count 1 --compilers {name} --keep .", flush=True)
                elif verdict != "same" and args.keep:
                    print(f"{kind} {seed} {name} {verdict}"[:300], flush=True)
    for (kind, name), found in sorted(counts.items()):
        print(f"{kind:10} {name:10} " + ", ".join(f"{what} {len(seeds)}" for what, seeds in sorted(found.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
