// mixed_width_flag: a 64-bit flag word is written as two halves and read whole.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2] --arg u64[1]
// EXPECT:   race-global @half @whole within grid
// ALLOW:    race-global

extern "C" __global__ void mixed_width_flag(unsigned *word, unsigned long long *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        word[0] = 5; // @half
        __threadfence();
        *(volatile unsigned *)(word + 1) = 1;
    } else {
        unsigned long long value;
        do
            value = *(volatile unsigned long long *)word; // @whole
        while (value >> 32 == 0);
        *out = value;
    }
}
