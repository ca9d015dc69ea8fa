// last_reader_ok: eight say so.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 9 --block 32 --arg u32[2]:3 --arg u32[9]
// EXPECT:   clean

extern "C" __global__ void last_reader_ok(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x < 8) {
        out[blockIdx.x] = words[1]; // @read
        __threadfence();
        atomicAdd(&words[0], 1);
    } else {
        while (atomicAdd(&words[0], 0) < 3 + 8)
            ;
        __threadfence();
        words[1] = 9; // @change
    }
}
