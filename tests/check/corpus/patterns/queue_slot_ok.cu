// queue_slot_ok: the content is published by its own flag.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[64] --arg u32[2] --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void queue_slot_ok(unsigned *queue, unsigned *head, unsigned *out)
{
    if (blockIdx.x == 0) {
        const unsigned slot = atomicAdd(&head[0], 1);
        queue[slot] = threadIdx.x + 1; // @store
        __threadfence();
        atomicAdd(&head[1], 1);
    } else {
        while (*(volatile unsigned *)&head[1] < 32)
            ;
        __threadfence();
        out[threadIdx.x] = queue[threadIdx.x]; // @take
    }
}
