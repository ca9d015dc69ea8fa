// flag: a volatile flag and no fences.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[32] --arg u32[1] --arg u32[32]
// EXPECT:   race-global @store @read within grid

extern "C" __global__ void flag(unsigned *data, volatile unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x; // @store
        __syncwarp();
        if (threadIdx.x == 0)
            *flag = 1;
    } else {
        while (*flag == 0)
            ;
        out[threadIdx.x] = data[threadIdx.x]; // @read
    }
}
