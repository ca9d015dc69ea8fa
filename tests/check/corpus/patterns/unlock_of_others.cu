// unlock_of_others: a thread gives the lock back twice: another passes while a third is inside.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void unlock_of_others(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x != 0)
        return;
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    __threadfence();
    *sum += blockIdx.x + 1; // @add
    __threadfence();
    atomicExch(lock, 0);
    atomicExch(lock, 0);
}
