// compact: places are taken by atomics, and read back by neighbours.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32[1] --arg u32[257]
// EXPECT:   race-global @back
// ALLOW:    race-global race-same-value

extern "C" __global__ void compact(const unsigned *in, unsigned *count, unsigned *out)
{
    const unsigned value = in[blockIdx.x * 64 + threadIdx.x];
    if (value % 2) {
        const unsigned place = atomicAdd(count, 1);
        out[place] = value; // @place
        if (out[place + 1] > value) // @back
            out[place] = 0;
    }
}
