// lock_reader_ok: with the lock.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1] --arg u32[2] --arg u32[4]
// EXPECT:   clean

__device__ void take(unsigned *lock)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    __threadfence();
}
__device__ void give(unsigned *lock)
{
    __threadfence();
    atomicExch(lock, 0);
}
extern "C" __global__ void lock_reader_ok(unsigned *lock, unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x % 2 == 0) {
        take(lock);
        words[0]++; // @add
        words[1]++;
        give(lock);
    } else {
        take(lock);
        out[blockIdx.x] = words[0] - words[1]; // @look
        give(lock);
    }
}
