// lock_for_two: blocks guard one word with two locks.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[2] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void lock_for_two(unsigned *locks, unsigned *sum)
{
    if (threadIdx.x == 0) {
        unsigned *lock = locks + blockIdx.x % 2;
        while (atomicCAS(lock, 0, 1) != 0)
            ;
        __threadfence();
        *sum += 1; // @add
        __threadfence();
        atomicExch(lock, 0);
    }
}
