"""Taichi's CUDA backend on the stand-in driver: sums by atomics, a sparse field, singular values, a sort, gradients."""
import sys

try:
    import numpy as np
    import taichi as ti
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

ti.init(arch=ti.cuda, offline_cache=False, device_memory_GB=0.25, log_level=ti.ERROR)
assert ti.cfg.arch == ti.cuda
random = np.random.default_rng(1)
values = random.standard_normal(1000).astype(np.float32)
x = ti.field(ti.f32, 1000, needs_grad=True)
x.from_numpy(values)
loss = ti.field(ti.f32, (), needs_grad=True)
sparse = ti.field(ti.f32)
ti.root.pointer(ti.ij, (16, 16)).bitmasked(ti.ij, (4, 4)).place(sparse)
matrices, singular = ti.Matrix.field(3, 3, ti.f32, 32), ti.Vector.field(3, ti.f32, 32)
matrices.from_numpy(random.standard_normal((32, 3, 3)).astype(np.float32))
keys = ti.field(ti.i32, 256)
keys.from_numpy(random.integers(-1000, 1000, 256, dtype=np.int32))


@ti.kernel
def squares():
    for i in x:
        loss[None] += x[i] * x[i]


@ti.kernel
def scatter():
    for i in range(300):
        sparse[(i * i) % 64, (i * 37) % 64] += i


@ti.kernel
def gather() -> ti.f32:
    total = 0.0
    for i, j in sparse:  # what was touched only
        total += sparse[i, j] * (i + 2 * j)
    return total


@ti.kernel
def decompose():
    for i in matrices:
        _, s, _ = ti.svd(matrices[i])
        singular[i] = ti.Vector([s[0, 0], s[1, 1], s[2, 2]])


with ti.ad.Tape(loss):
    squares()
np.testing.assert_allclose(loss[None], (values.astype(np.float64) ** 2).sum(), rtol=1e-5)
np.testing.assert_allclose(x.grad.to_numpy(), 2 * values, rtol=1e-6)
scatter()
assert gather() == sum(i * ((i * i) % 64 + 2 * ((i * 37) % 64)) for i in range(300))
decompose()
wanted = np.linalg.svd(matrices.to_numpy(), compute_uv=False)
np.testing.assert_allclose(np.sort(np.abs(singular.to_numpy()))[:, ::-1], wanted, atol=1e-4)
sorted_keys = np.sort(keys.to_numpy())
ti.algorithms.parallel_sort(keys)
assert (keys.to_numpy() == sorted_keys).all()
print("ok")
