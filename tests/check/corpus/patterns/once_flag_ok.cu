// once_flag_ok: others wait for the flag.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[3] --arg u32[4]
// EXPECT:   clean

extern "C" __global__ void once_flag_ok(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (atomicCAS(&words[0], 0, 1) == 0) {
        words[2] = 77; // @store
        __threadfence();
        atomicExch(&words[1], 1);
    }
    while (atomicAdd(&words[1], 0) == 0)
        ;
    __threadfence();
    out[blockIdx.x] = words[2]; // @read
}
