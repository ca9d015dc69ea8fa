"""Kernels that Triton compiles to PTX on the stand-in driver: softmax, and a product of matrices by mma.sync (sm_80)."""
import ctypes
import re
import sys

try:
    import numpy as np
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    """A driver call that must succeed."""
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)


@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def product(a, b, c, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    steps = tl.arange(0, STEP)
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, n, STEP):
        x = tl.load(a + rows[:, None] * n + (k + steps)[None, :])
        y = tl.load(b + (k + steps)[:, None] * n + columns[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


def copied(array):
    """Device memory with the array's bytes."""
    at = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(array.nbytes))
    call("cuMemcpyHtoD_v2", at, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
    return at


def run(kernel, signature, constants, grid, arguments):
    source = ASTSource(fn=kernel, signature={**signature, **{name: "constexpr" for name in constants}}, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 4})
    text, name = made.asm["ptx"], made.metadata.name
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text.encode()))
    call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    wanted = re.search(r"\.entry\s+" + name + r"\s*\(([^)]*)\)", text).group(1).count(".param")
    arguments = list(arguments) + [ctypes.c_uint64(0)] * (wanted - len(arguments))  # scratch that these do not use
    pointers = (ctypes.c_void_p * wanted)(*[ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in arguments])
    call("cuLaunchKernel", function, *grid, 128, 1, 1, made.metadata.shared, None, pointers, None)
    call("cuCtxSynchronize")


def result(at, like):
    out = np.empty_like(like)
    call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), at, ctypes.c_size_t(out.nbytes))
    return out


device, context = ctypes.c_int(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
random = np.random.default_rng(1)

x = random.standard_normal((20, 300)).astype(np.float32)
out = copied(np.zeros_like(x))
run(softmax, {"out": "*fp32", "x": "*fp32", "n": "i32"}, {"BLOCK": 512}, (20, 1, 1), [out, copied(x), ctypes.c_int(300)])
e = np.exp(x - x.max(1, keepdims=True))
assert np.allclose(result(out, x), e / e.sum(1, keepdims=True), rtol=1e-5)

a, b = (random.standard_normal((128, 128)).astype(np.float16) for _ in range(2))
c = copied(np.zeros((128, 128), np.float32))
run(product, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32"}, {"BLOCK": 64, "STEP": 32}, (2, 2, 1),
    [copied(a), copied(b), c, ctypes.c_int(128)])
assert np.allclose(result(c, np.zeros((128, 128), np.float32)), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-2)
print("ok")
