// fence_block_scope: __threadfence_block publishes a word to another block.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2] --arg u32[1]
// EXPECT:   race-scope|race-global @store @read within grid

extern "C" __global__ void fence_block_scope(unsigned *word, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    volatile unsigned *flag = word + 1;
    if (blockIdx.x == 0) {
        word[0] = 7; // @store
        __threadfence_block();
        *flag = 1;
    } else {
        while (*flag == 0)
            ;
        __threadfence();
        *out = word[0]; // @read
    }
}
