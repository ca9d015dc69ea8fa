// flag_with_data: the value is stored apart from the flag that stands for it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u64[32] --arg u32[64]
// EXPECT:   race-global @value @read within grid

extern "C" __global__ void flag_with_data(unsigned long long *words, unsigned *out)
{
    volatile unsigned long long *word = words + threadIdx.x;
    if (blockIdx.x == 0) {
        out[32 + threadIdx.x] = threadIdx.x + 5; // @value
        *word = 0x100000000ull | threadIdx.x;
    } else {
        unsigned long long seen;
        do
            seen = *word;
        while (seen >> 32 == 0);
        out[threadIdx.x] = out[32 + threadIdx.x]; // @read
    }
}
