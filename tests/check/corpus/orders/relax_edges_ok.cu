// relax_edges_ok: read atomically.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32[1]:0 --arg u32:256
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// Shortest paths on a ring: edges are relaxed until nothing changes.
extern "C" __global__ void relax_edges_ok(unsigned *distance, unsigned *changed, unsigned n)
{
    const unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n)
        return;
    for (int turn = 0; turn < 3; turn++) {
        const unsigned far = dev(distance[v]).load(cuda::memory_order_relaxed); // @read
        if (far != 0xffffffffu)
            atomicMin(&distance[(v + 1) % n], far + 1); // @relax
    }
}
