// relaxed_cluster_barrier: the words that peers read are published by a relaxed arrival.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   race-remote @store @peer within cluster
#include "protocol.cuh"

extern "C" __global__ void relaxed_cluster_barrier(u32 *out)
{
    __shared__ u32 words[32];
    u32 peer, value;
    words[threadIdx.x] = blockIdx.x * 32 + threadIdx.x; // @store
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(at(&words[threadIdx.x])), "r"(rank() ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(peer) : "memory"); // @peer
    out[blockIdx.x * 32 + threadIdx.x] = value;
    cluster_sync();
}
