// flag_in_block: a warp waits for a volatile flag in shared memory and reads without a fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]
// EXPECT:   race-shared @store @read within cta

extern "C" __global__ void flag_in_block(unsigned *out)
{
    __shared__ unsigned data[32];
    __shared__ volatile unsigned flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        data[threadIdx.x] = threadIdx.x + 1; // @store
        __syncwarp();
        if (threadIdx.x == 0)
            flag = 1;
    } else {
        while (flag == 0)
            ;
        out[threadIdx.x - 32] = data[threadIdx.x - 32]; // @read
    }
}
