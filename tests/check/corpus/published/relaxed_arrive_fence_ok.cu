// relaxed_arrive_fence_ok: every thread fences.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --cluster 2 --arg u32[128]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void relaxed_arrive_fence_ok(u32 *out)
{
    __shared__ u32 words[64];
    const u32 t = threadIdx.x, peer = rank() ^ 1;
    words[t] = t + 1000 * rank();
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
    u32 got;
    asm volatile("{ .reg .b32 a;\nmapa.shared::cluster.u32 a, %1, %2;\nld.shared::cluster.u32 %0, [a]; }" : "=r"(got) : "r"(at(&words[63 - t])), "r"(peer) : "memory");
    out[rank() * 64 + t] = got;
    cluster_sync();
}
