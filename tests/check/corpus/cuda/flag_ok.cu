// flag_ok: a volatile flag with __threadfence on both sides.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[32] --arg u32[1] --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void flag_ok(unsigned *data, volatile unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x; // @store
        __threadfence();
        __syncwarp();
        if (threadIdx.x == 0)
            *flag = 1;
    } else {
        while (*flag == 0)
            ;
        __threadfence();
        out[threadIdx.x] = data[threadIdx.x]; // @read
    }
}
