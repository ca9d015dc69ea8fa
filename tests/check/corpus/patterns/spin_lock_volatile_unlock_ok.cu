// spin_lock_volatile_unlock_ok: with a fence before it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void spin_lock_volatile_unlock_ok(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0)
            __nanosleep(100);
        __threadfence();
        *sum += blockIdx.x; // @add
        __threadfence();
        *(volatile unsigned *)lock = 0;
    }
}
