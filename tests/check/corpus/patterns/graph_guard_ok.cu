// graph_guard_ok: no look.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:random(7) --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void graph_guard_ok(const unsigned *in, unsigned *most)
{
    const unsigned value = in[blockIdx.x * 64 + threadIdx.x] >> 8;
        atomicMax(most, value); // @max
}
