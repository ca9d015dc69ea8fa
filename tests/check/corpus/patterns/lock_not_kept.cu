// lock_not_kept: a try-lock whose failure is overlooked.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 6 --block 32 --arg u32[1] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void lock_not_kept(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x != 0)
        return;
    bool mine = false;
    for (unsigned tries = 0; tries < 64 && !mine; tries++) {
        mine = atomicCAS(lock, 0, 1) == 0;
        if (tries == 1)
            break;
    }
    __threadfence();
    *sum += blockIdx.x + 1; // @add
    __threadfence();
    if (mine)
        atomicExch(lock, 0);
}
