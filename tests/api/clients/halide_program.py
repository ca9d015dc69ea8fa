"""Halide's CUDA backend on the stand-in driver: a blur whose stages share memory, a histogram by atomics, a sum by lanes."""
import sys

try:
    import halide as hl
    import numpy as np
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

x, y, xo, yo, xi, yi, u = (hl.Var(name) for name in "x y xo yo xi yi u".split())
host = hl.get_host_target()
gpu = host.with_feature(hl.TargetFeature.CUDA).with_feature(hl.TargetFeature.CUDACapability80)
random = np.random.default_rng(1)
image = hl.Buffer(random.random((96, 128)).astype(np.float32))
bytes_ = hl.Buffer(random.integers(0, 256, (96, 128), dtype=np.uint8))
edge = hl.BoundaryConditions.repeat_edge(image)


def blur(on_gpu):
    across, down = hl.Func(), hl.Func()
    across[x, y] = (edge[x - 1, y] + edge[x, y] * 2 + edge[x + 1, y]) / 4
    down[x, y] = (across[x, y - 1] + 2 * across[x, y] + across[x, y + 1]) / 4
    if on_gpu:  # shared memory, whose addresses Halide counts from 0
        down.gpu_tile(x, y, xo, yo, xi, yi, 16, 8)
        across.compute_at(down, xo).gpu_threads(x, y)
    return down


def histogram(on_gpu):
    counts, at = hl.Func(), hl.RDom([(0, 128), (0, 96)])
    counts[x] = hl.cast(hl.UInt(32), 0)
    counts[hl.cast(hl.Int(32), bytes_[at.x, at.y])] += hl.cast(hl.UInt(32), 1)
    if on_gpu:
        counts.compute_root().gpu_tile(x, xo, xi, 64)
        counts.update().atomic().gpu_tile(at.x, hl.RVar("outer"), hl.RVar("inner"), 32)
    return counts


def sums(on_gpu):
    total, at = hl.Func(), hl.RDom([(0, 128)])
    total[y] = hl.cast(hl.Float(32), 0)
    total[y] += image[at, y] * image[at, y]
    if on_gpu:
        outer, inner = hl.RVar("outer"), hl.RVar("inner")
        total.update().split(at.x, outer, inner, 32)
        part = total.update().rfactor(inner, u)
        part.compute_at(total, yo).gpu_lanes(u).update().gpu_lanes(u)
        total.compute_root().split(y, yo, yi, 1).gpu_blocks(yo).gpu_threads(yi)
        total.update().split(y, yo, yi, 1).gpu_blocks(yo).gpu_threads(yi)
    return total


for make, shape, tolerance in (blur, [128, 96], 1e-6), (histogram, [256], 0), (sums, [96], 1e-4):
    wanted = np.array(make(False).realize(shape, host), dtype=np.float64)
    result = make(True).realize(shape, gpu)
    result.copy_to_host()
    np.testing.assert_allclose(np.array(result, dtype=np.float64), wanted, atol=tolerance, err_msg=make.__name__)
print("ok")
