// last_reader: of eight blocks that read a word seven say so, and the block that changes it waits for seven.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 9 --block 32 --arg u32[2]:3 --arg u32[9]
// EXPECT:   race-global @read @change within grid

extern "C" __global__ void last_reader(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x < 8) {
        out[blockIdx.x] = words[1]; // @read
        __threadfence();
        if (blockIdx.x > 0)
        atomicAdd(&words[0], 1);
    } else {
        while (atomicAdd(&words[0], 0) < 3 + 7)
            ;
        __threadfence();
        words[1] = 9; // @change
    }
}
