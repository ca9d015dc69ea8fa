// atomic_block_inside_ok: all add by atomicAdd_block to their block's word.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[4]
// EXPECT:   clean

extern "C" __global__ void atomic_block_inside_ok(unsigned *count)
{
        atomicAdd_block(&count[blockIdx.x], 1);
}
