// atomic_block_scope: blocks count in one word with atomicAdd_block.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[1]
// EXPECT:   race-scope @add within grid

extern "C" __global__ void atomic_block_scope(unsigned *count)
{
    atomicAdd_block(count, 1); // @add
}
