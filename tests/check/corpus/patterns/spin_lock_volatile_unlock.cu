// spin_lock_volatile_unlock: the lock is given back by a plain volatile store without a fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void spin_lock_volatile_unlock(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0)
            __nanosleep(100);
        __threadfence();
        *sum += blockIdx.x; // @add
        *(volatile unsigned *)lock = 0;
    }
}
