// reader_writer_ok: before.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 5 --block 32 --arg u32[2] --arg u32[5]
// EXPECT:   clean

extern "C" __global__ void reader_writer_ok(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x > 0) { // readers: count of readers in words[0], a writer is 1000
        unsigned seen = 0;
        while (atomicAdd(&words[0], 1) >= 1000)
            atomicSub(&words[0], 1);
        __threadfence();
        seen = words[1]; // @look
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
