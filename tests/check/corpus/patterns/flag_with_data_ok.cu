// flag_with_data_ok: value and flag in one 64-bit word, as low-latency protocols have it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u64[32] --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void flag_with_data_ok(unsigned long long *words, unsigned *out)
{
    volatile unsigned long long *word = words + threadIdx.x;
    if (blockIdx.x == 0) {
        *word = 0x100000000ull | threadIdx.x;
    } else {
        unsigned long long seen;
        do
            seen = *word;
        while (seen >> 32 == 0);
        out[threadIdx.x] = (unsigned)seen;
    }
}
