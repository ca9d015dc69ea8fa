// reader_writer: readers count themselves in after they have looked.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 5 --block 32 --arg u32[2] --arg u32[5]
// EXPECT:   race-global @look @change within grid
// ALLOW:    race-global

extern "C" __global__ void reader_writer(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x > 0) { // readers: count of readers in words[0], a writer is 1000
        unsigned seen = 0;
        seen = words[1]; // @look
        while (atomicAdd(&words[0], 1) >= 1000)
            atomicSub(&words[0], 1);
        out[blockIdx.x] = seen;
        __threadfence();
        atomicSub(&words[0], 1);
    } else {
        while (atomicCAS(&words[0], 0, 1000) != 0)
            ;
        __threadfence();
        words[1] = 5; // @change
        __threadfence();
        atomicSub(&words[0], 1000);
    }
}
