// bulk_store_unfenced_ok: with fence.proxy.async by every thread before the barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include <cuda/ptx>

namespace ptx = cuda::ptx;

extern "C" __global__ void bulk_store_unfenced_ok(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned words[64];
    words[threadIdx.x] = in[threadIdx.x] + 1; // @store
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"((unsigned)__cvta_generic_to_shared(words)) : "memory"); // @copy
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
