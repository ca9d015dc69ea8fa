#!/usr/bin/env python3
"""Runs kernels/*.ptx on a GPU and compares the buffers with what the files expect (run_kernels.c says how they say it).

Files that expect a failure are left out: a GPU hangs where the emulator reports a deadlock. With --faults those that
expect a FAULT are run, and what the driver answers is printed. Each file runs in a process of its own. Exit status: 0
all held, 1 not, 77 no GPU."""
import ctypes
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = {"u32": "I", "u64": "Q", "f32": "f", "f64": "d"}


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attrs", ctypes.c_void_p), ("n_attrs", ctypes.c_uint)]


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("cluster", ctypes.c_uint * 16)]


def dimensions(options, name):
    values = [int(v) for v in options.get(name, "1").split(",")]
    return values + [1] * (3 - len(values))


def run(cuda, text, options, items):
    """The values of each buffer by name, or the driver's answer as a number."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    result = cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\0")
    if result:
        return result
    result = cuda.cuModuleGetFunction(ctypes.byref(function), module, options["entry"].encode())
    if result:
        return result
    buffers, arguments, keep = {}, [], []
    for kind, value in items:
        if kind != "ARG":
            continue
        match = re.match(r"(\w+) (\w+)\[(\d+)\] (\S+)", value)
        if match:
            name, type_, count, how = match.groups()
            count = int(count)
            fill = {"ones": lambda i: 1, "iota": lambda i: i, "zero": lambda i: 0}.get(how, lambda i: float(how))
            data = struct.pack(f"<{count}{FORMATS[type_]}",
                               *[fill(i) if type_[0] == "f" else int(fill(i)) for i in range(count)])
            address = ctypes.c_uint64()
            cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(len(data)))
            cuda.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(len(data)))
            buffers[name] = (type_, count, address)
            keep.append(address)
        else:
            type_, number = value.split()[:2]
            number = float(number) if type_[0] == "f" else int(number)
            keep.append(ctypes.create_string_buffer(struct.pack("<" + FORMATS[type_], number)))
        arguments.append(ctypes.cast(ctypes.byref(keep[-1]), ctypes.c_void_p))
    config = Config(grid=(ctypes.c_uint * 3)(*dimensions(options, "grid")),
                    block=(ctypes.c_uint * 3)(*dimensions(options, "block")), shared=int(options.get("shared", 0)))
    attribute = Attribute(id=4)
    if "cluster" in options:
        attribute.cluster[0:3] = dimensions(options, "cluster")
        config.attrs, config.n_attrs = ctypes.addressof(attribute), 1
        cuda.cuFuncSetAttribute(function, 14, 1)  # sizes above 8
    pointers = (ctypes.c_void_p * (len(arguments) + 1))(*arguments, None)
    result = cuda.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None) or cuda.cuCtxSynchronize()
    if result:
        return result
    values = {}
    for name, (type_, count, address) in buffers.items():
        data = ctypes.create_string_buffer(struct.calcsize(f"<{count}{FORMATS[type_]}"))
        cuda.cuMemcpyDtoH_v2(data, address, ctypes.c_size_t(len(data)))
        values[name] = struct.unpack(f"<{count}{FORMATS[type_]}", data.raw)
    return values


def wrong(items, values):
    """The first expectation that does not hold, or None."""
    for kind, text in items:
        match = re.match(r"(\w+)(?:\[(\d+)\])? = (.*)", text)
        if kind == "EXPECT":
            got = values[match[1]][int(match[2] or 0):]
            for have, want in zip(got, match[3].split()):
                if have != float(want):
                    return f"{text}: got {' '.join(str(v) for v in got[:len(match[3].split())])}"
        elif kind == "EXPECT-ALL" and any(v != float(match[3]) for v in values[match[1]]):
            return f"{text}: got {values[match[1]][:8]}"
        elif kind == "EXPECT-SUM" and sum(values[match[1]]) != float(match[3]):
            return f"{text}: got {sum(values[match[1]])}"
    return None


def one(path, faults):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    items = re.findall(r"^// ([A-Z-]+): (.*)$", text, re.M)
    status = dict(items).get("EXPECT-STATUS", "OK")
    if status != ("FAULT" if faults else "OK"):
        return 0
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return 77
    major, minor = ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    if int(re.search(r"^\.target sm_(\d+)", text, re.M)[1]) > 10 * major.value + minor.value:
        print(f"{os.path.basename(path)}: skipped, for a newer GPU")
        return 0
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)
    failures = 0
    for kind, line in items:
        if kind != "RUN":
            continue
        values = run(cuda, text, dict(word.split("=") for word in line.split() if "=" in word), items)
        if isinstance(values, int):
            print(f"{os.path.basename(path)}: the driver answers {values}")
            failures += not faults
            break
        problem = None if faults else wrong(items, values)
        print(f"{os.path.basename(path)}: {problem or 'ok'}")
        failures += problem is not None
    return 1 if failures else 0


def main():
    faults = "--faults" in sys.argv
    files = [a for a in sys.argv[1:] if not a.startswith("--")]
    if files:
        return one(files[0], faults)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        print("no libcuda.so.1")
        return 77
    failed = []
    for name in sorted(n for n in os.listdir(os.path.join(HERE, "kernels")) if n.endswith(".ptx")):
        path = os.path.join(HERE, "kernels", name)
        command = [sys.executable, os.path.abspath(__file__), path] + (["--faults"] if faults else [])
        try:
            status = subprocess.run(command, timeout=20, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"{name}: does not end")
            status = 1
        if status == 77:
            print("no GPU")
            return 77
        if status:
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "all held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
