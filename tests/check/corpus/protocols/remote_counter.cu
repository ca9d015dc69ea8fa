// remote_counter: peers count in rank 0's word with block scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cluster 4 --arg u32[1]
// EXPECT:   race-scope within cluster
// ALLOW:    race-scope
#include "protocol.cuh"

extern "C" __global__ void remote_counter(u32 *out)
{
    __shared__ u32 count;
    u32 first;
    if (threadIdx.x == 0)
        count = 0;
    cluster_sync();
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(first) : "r"(at(&count)));
    asm volatile("red.relaxed.cta.shared::cluster.add.u32 [%0], 1;" ::"r"(first) : "memory"); // @count
    cluster_sync();
    if (rank() == 0 && threadIdx.x == 0)
        out[0] = count;
}
