// init_no_barrier: peers arrive at an mbarrier whose init nothing orders before.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   remote-before-start|mbarrier-init-order|mbarrier-not-live
// ALLOW:    remote-before-start mbarrier-init-order mbarrier-not-live race-remote fault deadlock mbarrier-count
#include "protocol.cuh"

extern "C" __global__ void init_no_barrier(u32 *out)
{
    __shared__ u64 done;
    if (threadIdx.x == 0) {
        bar_init(at(&done), 32);
        init_fence();
    }
    __syncthreads();
    bar_arrive_peer(at(&done), rank() ^ 1);
    bar_wait_cluster(at(&done), 0);
    out[blockIdx.x * 32 + threadIdx.x] = 1;
    cluster_sync();
}
