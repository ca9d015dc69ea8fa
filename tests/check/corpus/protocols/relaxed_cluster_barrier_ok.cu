// relaxed_cluster_barrier_ok: by a release.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void relaxed_cluster_barrier_ok(u32 *out)
{
    __shared__ u32 words[32];
    u32 peer, value;
    words[threadIdx.x] = blockIdx.x * 32 + threadIdx.x; // @store
    cluster_sync();
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(at(&words[threadIdx.x])), "r"(rank() ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(peer) : "memory"); // @peer
    out[blockIdx.x * 32 + threadIdx.x] = value;
    cluster_sync();
}
