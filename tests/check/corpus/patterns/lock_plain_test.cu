// lock_plain_test: a lock that is tested and set by two volatile accesses: two blocks can pass.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 6 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void lock_plain_test(volatile unsigned *lock, unsigned *sum)
{
    if (threadIdx.x != 0)
        return;
    while (*lock != 0)
        ;
    *lock = 1;
    __threadfence();
    *sum += blockIdx.x + 1; // @add
    __threadfence();
    *lock = 0;
}
