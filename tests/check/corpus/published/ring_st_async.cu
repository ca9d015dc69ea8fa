// ring_st_async: words are pushed around the ring with st.async, two buffers, and the receiver gives none back before its neighbour fills it again.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cluster 4 --arg u32[128]
// EXPECT:   race-remote|async-overwrite
// ALLOW:    race-remote async-overwrite mbarrier-ahead mbarrier-tx race-shared async-read-early
#include "../protocols/protocol.cuh"

__device__ __forceinline__ u32 peer_of(u32 address, u32 to)
{
    u32 r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(to));
    return r;
}

extern "C" __global__ void ring_st_async(u32 *out)
{
    __shared__ alignas(16) u32 box[2][32];
    __shared__ u64 full[2], credit[2];
    const u32 me = rank(), next = (me + 1) % 4, before = (me + 3) % 4, t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++) {
            bar_init(at(&full[s]), 1);
            bar_init(at(&credit[s]), 1);
            bar_expect(at(&full[s]), 128);
        }
        init_fence();
    }
    cluster_sync();
    u32 word = me * 100 + t, sum = word;
    for (u32 k = 0; k < 8; k++) {
        const u32 s = k % 2;
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(peer_of(at(&box[s][t]), next)), "r"(word), "r"(peer_of(at(&full[s]), next)) : "memory");
        bar_wait_cluster(at(&full[s]), k / 2 % 2);
        word = box[s][t];
        sum += word;
        __syncwarp();
        if (t == 0) {
            bar_expect(at(&full[s]), 128);
        }
        __syncwarp();
    }
    out[me * 32 + t] = sum;
    cluster_sync();
}
