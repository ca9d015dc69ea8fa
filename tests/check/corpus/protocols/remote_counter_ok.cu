// remote_counter_ok: with cluster scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cluster 4 --arg u32[1]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void remote_counter_ok(u32 *out)
{
    __shared__ u32 count;
    u32 first;
    if (threadIdx.x == 0)
        count = 0;
    cluster_sync();
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(first) : "r"(at(&count)));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(first) : "memory");
    cluster_sync();
    if (rank() == 0 && threadIdx.x == 0)
        out[0] = count;
}
