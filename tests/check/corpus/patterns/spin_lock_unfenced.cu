// spin_lock_unfenced: a spin lock without fences guards plain words.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void spin_lock_unfenced(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0)
            ;
        *sum += blockIdx.x; // @add
        atomicExch(lock, 0);
    }
}
