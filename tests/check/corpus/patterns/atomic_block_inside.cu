// atomic_block_inside: one of the threads of a block adds plainly to what the others add to by atomicAdd_block.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[4]
// EXPECT:   race-global within cta
// ALLOW:    race-global

extern "C" __global__ void atomic_block_inside(unsigned *count)
{
    if (threadIdx.x == 40)
        count[blockIdx.x]++;
    else
        atomicAdd_block(&count[blockIdx.x], 1);
}
