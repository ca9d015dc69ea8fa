// lock_plain_test_ok: by atomicExch.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 6 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void lock_plain_test_ok(volatile unsigned *lock, unsigned *sum)
{
    if (threadIdx.x != 0)
        return;
    while (atomicExch((unsigned *)lock, 1) != 0)
        ;
    __threadfence();
    *sum += blockIdx.x + 1; // @add
    __threadfence();
    *lock = 0;
}
