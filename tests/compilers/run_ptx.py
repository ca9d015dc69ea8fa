#!/usr/bin/env python3
"""Runs PTX programs of differential.py through a CUDA driver, the stand-in or a GPU's.

usage: run_ptx.py DRIVER PTX ENTRY THREADS WORDS     one program: prints what it left in `out`, in one line
       run_ptx.py DRIVER LIST                        lines of PTX ENTRY THREADS EXPECTED-FILE, relative to LIST: status 1 when
                                                     one differs

The entry takes the address of `out` (u32, WORDS of them, zero) and a seed, 0; one CTA of THREADS threads runs it, with 64 KiB
of stack each.
"""
import ctypes
import os
import sys

STACK_BYTES = 65536


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


def main():
    driver = Driver(sys.argv[1])
    if len(sys.argv) == 6:
        print(*driver.run(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
        return 0
    folder, same, bad = os.path.dirname(os.path.abspath(sys.argv[2])), 0, 0
    with open(sys.argv[2], encoding="ascii") as lines:
        for line in lines:
            ptx, entry, threads, expected = line.split()
            with open(os.path.join(folder, expected), encoding="ascii") as file:
                wanted = [int(word) for word in file.read().split()]
            try:
                got = driver.run(os.path.join(folder, ptx), entry, int(threads), len(wanted))
            except RuntimeError as failure:
                print(f"{ptx}: {failure}")
                bad += 1
                if "cuCtxSynchronize" in str(failure) or "cuLaunchKernel" in str(failure):
                    break  # the context is lost
                continue
            where = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
            if where:
                print(f"{ptx}: {len(where)} of {len(wanted)} words differ, the first is {where[0]}")
            bad += bool(where)
            same += not where
    print(f"{same} the same, {bad} not")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
