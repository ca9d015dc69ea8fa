// cuda::ptx wrappers and the half-precision headers: inline assembly in the shapes that libcu++ writes.
#include <cuda/ptx>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace ptx = cuda::ptx;

__global__ void bulk(float *global, __half *half, __nv_bfloat16 *bfloat, __nv_fp8_e4m3 *small)
{
    __shared__ alignas(16) char tile[1024];
    __shared__ uint64_t barrier;
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, global, 1024, &barrier);
    auto state = ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, 1024);
    while (!ptx::mbarrier_try_wait(&barrier, state))
        ;
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    half[0] = hsin(half[1]) + half[2] * half[3];
    bfloat[0] = __hfma(bfloat[1], bfloat[2], bfloat[3]);
    small[0] = __nv_fp8_e4m3(global[2]);
    half[1] = __half(small[3]);
}
