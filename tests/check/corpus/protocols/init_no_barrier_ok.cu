// init_no_barrier_ok: a cluster barrier after the init.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void init_no_barrier_ok(u32 *out)
{
    __shared__ u64 done;
    if (threadIdx.x == 0) {
        bar_init(at(&done), 32);
        init_fence();
    }
    cluster_sync();
    bar_arrive_peer(at(&done), rank() ^ 1);
    bar_wait_cluster(at(&done), 0);
    out[blockIdx.x * 32 + threadIdx.x] = 1;
    cluster_sync();
}
