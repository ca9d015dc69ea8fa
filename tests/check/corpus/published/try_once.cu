// try_once: who fails to take the lock updates the word all the same, in one short branch.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1]:0 --arg u32[2]:0
// EXPECT:   race-global
extern "C" __global__ void try_once(unsigned *lock, unsigned *word)
{
    if (threadIdx.x == 0) {
        const unsigned was = atomicCAS(lock, 0, 1);
        __threadfence();
        word[0] += 1;
        __threadfence();
        if (was == 0)
            atomicExch(lock, 0);
    }
}
