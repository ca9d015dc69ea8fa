// ticket_lock: a ticket lock that serves the next before the word is written back.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[2] --arg u32[1]
// EXPECT:   race-global @add within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void ticket_lock(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x % 32 == 0) {
        const unsigned ticket = atomicAdd(&lock[0], 1);
        while (*(volatile unsigned *)&lock[1] != ticket)
            ;
        __threadfence();
        *sum = *sum * 3 + ticket; // @add
        atomicAdd(&lock[1], 1);
    }
}
