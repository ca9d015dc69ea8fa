// queue_slot: a consumer takes a slot whose number was published, not its content.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[64] --arg u32[2] --arg u32[32]
// EXPECT:   race-global @store @take within grid

extern "C" __global__ void queue_slot(unsigned *queue, unsigned *head, unsigned *out)
{
    if (blockIdx.x == 0) {
        const unsigned slot = atomicAdd(&head[0], 1);
        queue[slot] = threadIdx.x + 1; // @store
        atomicAdd(&head[1], 1);
    } else {
        while (*(volatile unsigned *)&head[1] < 32)
            ;
        __threadfence();
        out[threadIdx.x] = queue[threadIdx.x]; // @take
    }
}
