// atomic_block_scope_ok: with atomicAdd.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void atomic_block_scope_ok(unsigned *count)
{
    atomicAdd(count, 1);
}
