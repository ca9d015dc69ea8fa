// union_find: roots are linked with plain stores.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32:256
// EXPECT:   race-global @link within grid
// ALLOW:    race-global race-same-value race-shared
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Connected components of a ring with chords: each thread links the roots of its edge.
extern "C" __global__ void union_find(unsigned *parent, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = i, b = (i * 7 + 1) % n;
    for (;;) {
        while (parent[a] != a) // @read
            a = parent[a];
        while (parent[b] != b)
            b = parent[b];
        if (a == b)
            break;
        if (a < b) {
            unsigned t = a;
            a = b;
            b = t;
        }
        parent[a] = b; // @link
    }
}
