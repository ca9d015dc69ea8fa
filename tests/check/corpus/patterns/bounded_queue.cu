// bounded_queue: slots of a queue carry turn numbers; the consumer frees a slot before it has read it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[8] --arg u32[8] --arg u32[16]
// EXPECT:   race-global @put @get within grid
// ALLOW:    race-global

extern "C" __global__ void bounded_queue(unsigned *slot, volatile unsigned *turn, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    for (unsigned i = 0; i < 16; i++) {
        const unsigned place = i % 4, round = i / 4;
        if (blockIdx.x == 0) {
            while (turn[place] != 2 * round)
                ;
            __threadfence();
            slot[place] = i * 3; // @put
            __threadfence();
            turn[place] = 2 * round + 1;
        } else {
            while (turn[place] != 2 * round + 1)
                ;
            __threadfence();
            __threadfence();
            turn[place] = 2 * round + 2;
            out[i] = slot[place]; // @get
        }
    }
}
