// union_find_ok: with compare-and-swap, and relaxed loads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32:256
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Connected components of a ring with chords: each thread links the roots of its edge.
extern "C" __global__ void union_find_ok(unsigned *parent, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = i, b = (i * 7 + 1) % n;
    for (;;) {
        while (dev(parent[a]).load(cuda::memory_order_relaxed) != a) // @read
            a = dev(parent[a]).load(cuda::memory_order_relaxed);
        while (dev(parent[b]).load(cuda::memory_order_relaxed) != b)
            b = dev(parent[b]).load(cuda::memory_order_relaxed);
        if (a == b)
            break;
        if (a < b) {
            unsigned t = a;
            a = b;
            b = t;
        }
        atomicCAS(&parent[a], a, b); // @link
    }
}
