// red_async_counted_ok: rank 0 waits for their bytes.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cluster 4 --arg u32[32]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void red_async_counted_ok(u32 *out)
{
    __shared__ u32 counters[32];
    __shared__ u64 bar;
    const u32 t = threadIdx.x;
    counters[t] = 0;
    if (t == 0) {
        bar_init(at(&bar), 1);
        init_fence();
        if (rank() == 0)
            bar_expect(at(&bar), 3 * 32 * 4);
    }
    cluster_sync();
    if (rank() != 0) {
        u32 to, there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to) : "r"(at(&counters[t])));
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(at(&bar)));
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(to), "r"(t + rank()), "r"(there) : "memory");
    }
    if (rank() == 0)
        bar_wait_cluster(at(&bar), 0);
    if (rank() == 0)
        out[t] = counters[t];
    cluster_sync();
}
