// clc_parity_ok: the parity flips.
//
// Needs:    CUDA C++17, sm_100
// DEVICE:   emu:sm_100
// LAUNCH:   --grid 6000 --block 64 --arg u32[6000]:0
// EXPECT:   clean
#include "../protocols/protocol.cuh"

// A persistent kernel: one thread asks for the next tile, all wait for the answer, then work.
extern "C" __global__ void clc_parity_ok(u32 *out)
{
    __shared__ alignas(16) uint4 answer;
    __shared__ u64 bar;
    u32 tile = blockIdx.x, turn = 0;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 1);
    __syncthreads();
    for (;; turn++) {
        if (threadIdx.x == 0) {
            asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
            bar_expect(at(&bar), 16);
            asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(at(&answer)), "r"(at(&bar)) : "memory");
        }
        if (threadIdx.x == 0)
            atomicAdd(&out[tile], 1);
        bar_wait(at(&bar), turn & 1);
        u32 got, next;
        asm volatile("{ .reg .b128 a;\n.reg .b64 lo, hi;\n.reg .pred p;\nld.shared.v2.u64 {lo, hi}, [%2];\nmov.b128 a, {lo, hi};\n"
                     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, a;\nselp.u32 %0, 1, 0, p;\nmov.u32 %1, 0;\n"
                     "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, a; }" : "=r"(got), "=r"(next) : "r"(at(&answer)) : "memory");
        asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
        __syncthreads();
        if (!got)
            return;
        tile = next;
    }
}
