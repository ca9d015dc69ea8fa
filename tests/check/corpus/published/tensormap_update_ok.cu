// tensormap_update_ok: fence.proxy.tensormap acquire by the thread that loads.
//
// Needs:    CUDA C++17, sm_90a
// DEVICE:   emu:sm_90a
// LAUNCH:   --grid 2 --block 32 --arg u32[256]:iota --arg u32[1]:0 --arg u32[32]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

// A grouped product: block 0 points the tensor map at the next matrix, block 1 loads through it.
__device__ alignas(128) u32 map[32] = {0x1000, 0x0, 0x100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x7f, 0x0, 0x0, 0x0, 0x0, 0x1f000000, 0x0, 0x0, 0x80, 0x0, 0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0};

extern "C" __global__ void tensormap_update_ok(const u32 *in, u32 *flag, u32 *out)
{
    __shared__ alignas(128) u32 copy[32];
    __shared__ alignas(128) u32 tile[32];
    __shared__ u64 bar;
    const u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        copy[t] = map[t];
        __syncwarp();
        if (t == 0)
            asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at(copy)), "l"(__cvta_generic_to_global(in + 128)) : "memory");
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(__cvta_generic_to_global(map)), "r"(at(copy)) : "memory");
        if (t == 0)
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
        return;
    }
    if (t == 0) {
        bar_init(at(&bar), 1);
        u32 seen;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
        bar_expect(at(&bar), 128);
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(at(tile)), "l"(map), "r"(0), "r"(at(&bar)) : "memory");
    }
    __syncwarp();
    bar_wait(at(&bar), 0);
    out[t] = tile[t];
}
