// tensormap_not_met: one lane changes the copy of the tensor map in shared memory and the warp publishes it without __syncwarp.
//
// Needs:    CUDA C++17, sm_90a
// DEVICE:   emu:sm_90a
// LAUNCH:   --grid 1 --block 32 --arg u32[256]:iota --arg u32[32]
// EXPECT:   race-shared
#include "../protocols/protocol.cuh"

__device__ alignas(128) u32 map[32] = {0x1000, 0x0, 0x100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x7f, 0x0, 0x0, 0x0, 0x0, 0x1f000000, 0x0, 0x0, 0x80, 0x0, 0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0};

extern "C" __global__ void tensormap_not_met(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 copy[32];
    __shared__ alignas(128) u32 tile[32];
    __shared__ u64 bar;
    const u32 t = threadIdx.x;
    if (t == 0)
        bar_init(at(&bar), 1);
    copy[t] = map[t];
    __syncwarp();
    if (t == 1)
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at(copy)), "l"(__cvta_generic_to_global(in + 64)) : "memory");
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(__cvta_generic_to_global(map)), "r"(at(copy)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
    if (t == 0) {
        bar_expect(at(&bar), 128);
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(at(tile)), "l"(map), "r"(0), "r"(at(&bar)) : "memory");
    }
    __syncwarp();
    bar_wait(at(&bar), 0);
    out[t] = tile[t];
}
