"""Dr.Jit's CUDA backend on the stand-in driver, against its rules and NumPy: functions, scatters, loops, calls, textures."""
import sys
import time

try:
    import drjit as dr
    import numpy as np
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

time.sleep(1)  # its backends start in a thread, whose log waits for the interpreter's lock
from drjit.cuda import Float, Texture1f, TensorXf, UInt  # noqa: E402
from drjit.cuda.ad import Float as Differentiable  # noqa: E402

random = np.random.default_rng(1)
values = random.standard_normal(1000).astype(np.float32)
words = random.integers(0, 2**32, 1000, dtype=np.uint32)
x, u = Float(values), UInt(words)
np.testing.assert_allclose(np.array(dr.sin(x) * dr.exp(x)), np.sin(values) * np.exp(values), rtol=1e-5, atol=1e-6)
np.testing.assert_array_equal(np.array(dr.mul_hi(u, u)), (words.astype(np.uint64) ** 2 >> np.uint64(32)).astype(np.uint32))
np.testing.assert_array_equal(np.array(dr.cumsum(u)), np.cumsum(words, dtype=np.uint32))
counts = dr.zeros(UInt, 16)
dr.scatter_reduce(dr.ReduceOp.Add, counts, UInt(1), u % 16)
np.testing.assert_array_equal(np.array(counts), np.bincount(words % 16, minlength=16))


def steps(n):
    """Collatz."""
    count = 0
    while n != 1:
        n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
    return count


start = dr.arange(UInt, 200) + 1
_, count = dr.while_loop((start, UInt(0)), lambda n, k: n != 1,
                         lambda n, k: (dr.select((n & 1) == 0, n >> 1, 3 * n + 1), k + 1))
assert np.array(count).tolist() == [steps(n) for n in range(1, 201)]
called = dr.switch(u % 2, [lambda a: a * 2, lambda a: a - 5], x)
np.testing.assert_array_equal(np.array(called), np.where(words % 2 == 0, values * 2, values - 5))
row = Texture1f(TensorXf(np.arange(8, dtype=np.float32)[:, None]), filter_mode=dr.FilterMode.Nearest)
np.testing.assert_array_equal(np.array(row.eval((dr.arange(Float, 8) + 0.5) / 8))[0], np.arange(8))
a = Differentiable(values)
dr.enable_grad(a)
dr.backward(dr.sum(a * a))
np.testing.assert_allclose(np.array(dr.grad(a)), 2 * values, rtol=1e-6)
print("ok")
