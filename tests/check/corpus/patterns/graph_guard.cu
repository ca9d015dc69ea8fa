// graph_guard: a plain look before atomicMax.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:random(7) --arg u32[1]
// EXPECT:   race-global @look @max
// ALLOW:    race-global

extern "C" __global__ void graph_guard(const unsigned *in, unsigned *most)
{
    const unsigned value = in[blockIdx.x * 64 + threadIdx.x] >> 8;
    if (*most < value) // @look
        atomicMax(most, value); // @max
}
