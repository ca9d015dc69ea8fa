"""cuda.core on the stand-in driver: name expressions, the linker, a cluster launch, streams and events, graphs (one with a loop whose
condition kernels set), a green context."""
import sys

try:
    import numpy as np
    from cuda.core import (Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, Program,
                           ProgramOptions, launch)
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

device = Device()
device.set_current()
stream = device.create_stream()
arch = "sm_" + "".join(map(str, device.compute_capability))
pinned = LegacyPinnedMemoryResource()


def array(count, dtype):
    """A buffer that host and device see, and the host's view of it."""
    buffer = pinned.allocate(count * np.dtype(dtype).itemsize)
    view = np.from_dlpack(buffer).view(dtype)
    view[:] = 0
    return buffer, view


def compiled(text, names=(), **options):
    return Program(text, "c++", ProgramOptions(arch=arch, **options)).compile("ptx", name_expressions=names)


# name expressions
module = compiled("""
template <typename T> __global__ void add(const T *a, const T *b, T *c, size_t n)
{
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}""", ("add<float>", "add<double>"))
n = 10000
for dtype, name in ((np.float32, "add<float>"), (np.float64, "add<double>")):
    (a, a_view), (b, b_view), (c, c_view) = (array(n, dtype) for _ in range(3))
    a_view[:] = np.arange(n)
    b_view[:] = 2 * np.arange(n)
    launch(stream, LaunchConfig(grid=(n + 255) // 256, block=256), module.get_kernel(name), a, b, c, np.uint64(n))
    stream.sync()
    assert (c_view == 3 * np.arange(n)).all(), name

# two pieces of PTX linked
caller = compiled('extern "C" __device__ int f(int); extern "C" __global__ void k(int *p) { p[threadIdx.x] = f(threadIdx.x); }',
                  relocatable_device_code=True)
callee = compiled('extern "C" __device__ int f(int x) { return x * x; }', relocatable_device_code=True)
linked = Linker(caller, callee, options=LinkerOptions(arch=arch)).link("cubin")
out, view = array(64, np.int32)
launch(stream, LaunchConfig(grid=1, block=64), linked.get_kernel("k"), out)
stream.sync()
assert (view == np.arange(64) ** 2).all()

# a launch with clusters of four CTAs
cluster = compiled("""
extern "C" __global__ void k(unsigned *p)
{
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(size));
    if (threadIdx.x == 0)
        p[blockIdx.x] = rank * 100 + size;
}""")
out, view = array(8, np.uint32)
launch(stream, LaunchConfig(grid=2, cluster=4, block=32), cluster.get_kernel("k"), out)
stream.sync()
assert (view == np.arange(8) % 4 * 100 + 4).all()

# streams and events
first = stream.record(options=EventOptions(timing_enabled=True))
other = device.create_stream()
other.wait(first)
last = other.record(options=EventOptions(timing_enabled=True))
last.sync()
assert last - first >= 0

# a graph, launched twice
out, view = array(64, np.int32)
builder = device.create_graph_builder()
builder.begin_building()
launch(builder, LaunchConfig(grid=1, block=64), linked.get_kernel("k"), out)
graph = builder.end_building().complete()
for _ in range(2):
    view[:] = 0
    graph.launch(stream)
    stream.sync()
    assert (view == np.arange(64) ** 2).all()

# a loop in a graph: a kernel says whether it goes on
loop = compiled("""
extern "C" __device__ __cudart_builtin__ void CUDARTAPI cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void count(cudaGraphConditionalHandle handle, int *n) { cudaGraphSetConditional(handle, ++*n < 10); }
""", relocatable_device_code=True)
out, view = array(1, np.int32)
builder = device.create_graph_builder()
builder.begin_building()
condition = builder.create_condition(default_value=1)
body = builder.while_loop(condition)
body.begin_building()
launch(body, LaunchConfig(grid=1, block=1), loop.get_kernel("count"), condition, out)
body.end_building()
graph = builder.end_building().complete()
graph.launch(stream)
stream.sync()
assert view[0] == 10

# a part of the SMs
if hasattr(device, "resources"):
    from cuda.core import ContextOptions, SMResourceOptions

    (group,), rest = device.resources.sm.split(SMResourceOptions(count=20))
    assert (group.sm_count, rest.sm_count) == (24, device.resources.sm.sm_count - 24)
    where = compiled("""
extern "C" __global__ void where(unsigned *counts)
{
    unsigned sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    atomicAdd(counts + sm, 1);
}""").get_kernel("where")
    out, view = array(256, np.uint32)
    green = device.create_context(ContextOptions(resources=[group]))
    device.set_current(green)
    part = device.create_stream()
    launch(part, LaunchConfig(grid=200, block=1), where, out)
    part.sync()
    assert view.sum() == 200 and (view != 0).sum() == 24
print("ok")
