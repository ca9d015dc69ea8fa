// lock_for_two_ok: with the same lock.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[2] --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void lock_for_two_ok(unsigned *locks, unsigned *sum)
{
    if (threadIdx.x == 0) {
        unsigned *lock = locks;
        while (atomicCAS(lock, 0, 1) != 0)
            ;
        __threadfence();
        *sum += 1; // @add
        __threadfence();
        atomicExch(lock, 0);
    }
}
