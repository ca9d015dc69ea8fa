// once_flag: the first block initialises a word and others go on without waiting for it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[3] --arg u32[4]
// EXPECT:   race-global @store @read within grid
// ALLOW:    race-global

extern "C" __global__ void once_flag(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (atomicCAS(&words[0], 0, 1) == 0) {
        words[2] = 77; // @store
        __threadfence();
        atomicExch(&words[1], 1);
    }
    out[blockIdx.x] = words[2]; // @read
}
