// cluster_then_release_ok: the cluster barrier releases.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cluster 2 --arg u32[8]:0 --arg u32[8]:0 --arg u32[8]:0
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void cluster_then_release_ok(unsigned *data, unsigned *flags, unsigned *out)
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (blockIdx.x == 0 && threadIdx.x == 0)
        data[0] = 42; // @store
    if (blockIdx.x < 2) {
        asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
        if (rank == 1 && threadIdx.x == 0)
            dev(flags[0]).store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 2 && threadIdx.x == 0) {
        while (dev(flags[0]).load(cuda::memory_order_acquire) == 0)
            ;
        out[0] = data[0]; // @read
    }
}
