// push_unready_ok: after its word.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void push_unready_ok(u32 *out)
{
    __shared__ u32 inbox[32];
    __shared__ u64 full, empty;
    u32 sum = 0, peer;
    if (threadIdx.x == 0) {
        bar_init(at(&full), 32);
        bar_init(at(&empty), 32);
        init_fence();
    }
    cluster_sync();
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(at(&inbox[threadIdx.x])), "r"(rank() ^ 1));
    for (u32 k = 0; k < 4; k++) {
        bar_wait_cluster(at(&empty), k & 1 ^ 1);
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(peer), "r"(k * 64 + blockIdx.x * 32 + threadIdx.x) : "memory");
        bar_arrive_peer(at(&full), rank() ^ 1);
        bar_wait_cluster(at(&full), k & 1);
        sum += inbox[31 - threadIdx.x];
        bar_arrive_peer(at(&empty), rank() ^ 1);
    }
    out[blockIdx.x * 32 + threadIdx.x] = sum;
    cluster_sync();
}
