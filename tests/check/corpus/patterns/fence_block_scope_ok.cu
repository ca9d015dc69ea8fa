// fence_block_scope_ok: __threadfence does.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2] --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void fence_block_scope_ok(unsigned *word, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    volatile unsigned *flag = word + 1;
    if (blockIdx.x == 0) {
        word[0] = 7; // @store
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0)
            ;
        __threadfence();
        *out = word[0]; // @read
    }
}
