// pull_exit: a CTA reads its peer's words and says so by nothing: the peer may leave.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   remote-after-exit within cluster
#include "protocol.cuh"

extern "C" __global__ void pull_exit(u32 *out)
{
    __shared__ u32 words[32];
    __shared__ u64 done;
    u32 peer, value;
    words[threadIdx.x] = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.x == 0) {
        bar_init(at(&done), 32);
        init_fence();
    }
    cluster_sync();
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(at(&words[threadIdx.x])), "r"(rank() ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(peer) : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = value;
    if (rank() == 0) {
        bar_arrive_peer(at(&done), 1);
    } else {
        bar_wait_cluster(at(&done), 0);
    }
}
