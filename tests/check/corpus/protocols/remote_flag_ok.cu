// remote_flag_ok: with release, and read with acquire.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void remote_flag_ok(u32 *out)
{
    __shared__ u32 words[32], flag;
    u32 peer, seen;
    if (threadIdx.x == 0)
        flag = 0;
    cluster_sync();
    if (rank() == 0) {
        asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(peer) : "r"(at(&words[threadIdx.x])));
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(peer), "r"(threadIdx.x) : "memory");
        __syncwarp();
        asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(peer) : "r"(at(&flag)));
        if (threadIdx.x == 0)
            asm volatile("st.release.cluster.shared::cluster.u32 [%0], 1;" ::"r"(peer) : "memory");
    } else {
        do
            asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(at(&flag)) : "memory");
        while (seen == 0);
        out[threadIdx.x] = words[31 - threadIdx.x];
    }
    cluster_sync();
}
