#!/usr/bin/env python3
"""Runs PTX programs of differential.py through a CUDA driver, the stand-in or a GPU's.

usage: run_ptx.py DRIVER PTX ENTRY THREADS WORDS     one program: prints what it left in `out`, in one line
       run_ptx.py DRIVER LIST [JOBS]                 lines of PTX ENTRY THREADS EXPECTED-FILE, relative to LIST: each in a
                                                     process of its own, JOBS at a time (1); status 1 when one differs

The entry takes the address of `out` (u32, WORDS of them, zero) and a seed, 0; one CTA of THREADS threads runs it, with 64 KiB
of stack each. Of a program that differs, the first words that do are shown: index, what it left, what it must leave.
"""
import concurrent.futures
import ctypes
import os
import signal
import subprocess
import sys

STACK_BYTES = 65536
SECONDS = 300
SHOWN = 20


class Driver:
    def __init__(self, path):
        self.cuda = ctypes.CDLL(path)
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuCtxSetLimit", 0, ctypes.c_size_t(STACK_BYTES))

    def call(self, name, *args, log=None):
        code = getattr(self.cuda, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value.decode() if text.value else code} {log.value.decode(errors='replace') if log else ''}")

    def run(self, path, entry, threads, words):
        with open(path, "rb") as file:
            text = file.read() + b"\0"
        log = ctypes.create_string_buffer(8192)
        keys = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        module, function, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuModuleLoadDataEx", ctypes.byref(module), text, 2, keys, values, log=log)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        self.call("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(4 * words))
        self.call("cuMemsetD8_v2", out, ctypes.c_ubyte(0), ctypes.c_size_t(4 * words))
        seed = ctypes.c_uint32(0)
        params = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(seed))
        self.call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, params, None)
        self.call("cuCtxSynchronize")
        host = (ctypes.c_uint32 * words)()
        self.call("cuMemcpyDtoH_v2", host, out, ctypes.c_size_t(4 * words))
        self.call("cuMemFree_v2", out)
        self.call("cuModuleUnload", module)
        return list(host)


def verdict(command, wanted):
    """What one program did, by a command that prints its words: "" when they are the wanted ones."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if done.returncode < 0:
        return f"ended by {signal.Signals(-done.returncode).name} {done.stderr.strip()}".rstrip()
    if done.returncode:
        return done.stderr.strip() or f"status {done.returncode}"
    got = [int(word) for word in done.stdout.split()]
    if len(got) != len(wanted):
        return f"{len(got)} words, not {len(wanted)}"
    where = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
    if not where:
        return ""
    lines = [f"{len(where)} of {len(wanted)} words differ, the first is {where[0]}"]
    lines += [f"  word {i}: got {got[i]:08x}, wanted {wanted[i]:08x}" for i in where[:SHOWN]]
    return "\n".join(lines)


def row(driver, folder, line):
    ptx, entry, threads, expected = line.split()
    with open(os.path.join(folder, expected), encoding="ascii") as file:
        wanted = [int(word) for word in file.read().split()]
    command = [sys.executable, os.path.abspath(__file__), driver, os.path.join(folder, ptx), entry, threads, str(len(wanted))]
    return ptx, verdict(command, wanted)


def run_list(driver, path, jobs):
    folder, same, bad = os.path.dirname(os.path.abspath(path)), 0, 0
    with open(path, encoding="ascii") as file:
        lines = [line for line in file if line.strip()]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for ptx, what in pool.map(lambda line: row(driver, folder, line), lines):
            if what:
                print(f"{ptx}: {what}", flush=True)
            bad += bool(what)
            same += not what
    print(f"{same} the same, {bad} not")
    return 1 if bad or not same else 0


def main():
    if len(sys.argv) == 6:
        try:
            print(*Driver(sys.argv[1]).run(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
        except (RuntimeError, OSError) as failure:
            print(failure, file=sys.stderr)
            return 1
        return 0
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    return run_list(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 1)


if __name__ == "__main__":
    sys.exit(main())
