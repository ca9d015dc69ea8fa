// scratch_by_sm: two blocks of one SM share its scratch.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 300 --block 32 --arg u32[9600]:0 --arg u32[300]:0
// EXPECT:   race-global @store within grid
// ALLOW:    race-same-value race-global

// Scratch by SM, as if an SM had one block at a time.
extern "C" __global__ void scratch_by_sm(unsigned *scratch, unsigned *out)
{
    unsigned sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    unsigned *mine = scratch + 32 * (sm);
    mine[threadIdx.x] = blockIdx.x; // @store
    __syncwarp();
    if (threadIdx.x == 0)
        out[blockIdx.x] = mine[31 - threadIdx.x]; // @read
}
