// ptx_namespace_ok: for both.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[128]:iota --arg u32[32]
// EXPECT:   clean
#include <cuda/ptx>
#include <cuda/std/cstdint>

namespace ptx = cuda::ptx;

extern "C" __global__ void ptx_namespace_ok(const unsigned *in, unsigned *out)
{
    __shared__ alignas(128) unsigned a[64];
    __shared__ alignas(128) unsigned b[64];
    __shared__ cuda::std::uint64_t bar;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncwarp();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, a, in, 256, &bar);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, b, in + 64, 256, &bar);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 512);
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &bar, 0))
        continue;
    out[threadIdx.x] = a[threadIdx.x] + b[63 - threadIdx.x];
}
