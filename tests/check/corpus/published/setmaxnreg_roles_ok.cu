// setmaxnreg_roles_ok: at a barrier for both groups.
//
// Needs:    CUDA C++17, sm_90a
// DEVICE:   emu:sm_90a
// LAUNCH:   --grid 1 --block 256 --arg u32[128]:iota --arg u32[128]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void __launch_bounds__(256, 1) setmaxnreg_roles_ok(const u32 *in, u32 *out)
{
    __shared__ u32 words[128];
    const u32 t = threadIdx.x;
    if (t < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        words[t] = in[t];
        named_arrive(1, 256);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        named_sync(1, 256);
        out[t - 128] = words[255 - t];
    }
}
