"""numba-cuda on the stand-in driver, as pip brings it: it compiles with NVVM and links with nvJitLink."""
import sys
import warnings

try:
    import numpy as np
    from numba import cuda, float32
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)
warnings.filterwarnings("ignore")


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def block_sums(x, out):
    tile = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 64
    while step:
        if t < step:
            tile[t] += tile[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, tile[0])


@cuda.jit(device=True)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@cuda.jit
def fill(out):
    out[cuda.threadIdx.x] = fibonacci(cuda.threadIdx.x)


x = np.arange(1024, dtype=np.float32)
y = np.ones_like(x)
saxpy[8, 128](np.float32(2), x, y)
assert (y == 2 * x + 1).all()
out = np.zeros(1, np.float32)
block_sums[8, 128](x, out)
assert out[0] == x.sum()
numbers = np.zeros(20, np.int64)
fill[1, 20](numbers)
assert numbers[19] == 4181
assert (cuda.reduce(lambda p, q: p + q)(np.arange(1000, dtype=np.int64))) == 499500
print("ok")
