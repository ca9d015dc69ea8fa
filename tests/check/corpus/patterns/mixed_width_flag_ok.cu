// mixed_width_flag_ok: written whole.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2] --arg u64[1]
// EXPECT:   clean

extern "C" __global__ void mixed_width_flag_ok(unsigned *word, unsigned long long *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        *(volatile unsigned long long *)word = 0x100000005ull;
    } else {
        unsigned long long value;
        do
            value = *(volatile unsigned long long *)word; // @whole
        while (value >> 32 == 0);
        *out = value;
    }
}
