// many_readers: all warps but one meet before thread 0 overwrites what they read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 1024 --arg u32[1024]
// EXPECT:   race-shared @read @change within cta

extern "C" __global__ void many_readers(unsigned *out)
{
    __shared__ unsigned word, count;
    if (threadIdx.x == 0) {
        word = 3;
        count = 0;
    }
    __syncthreads();
    out[threadIdx.x] = word; // @read
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x % 32 == 0 && threadIdx.x != 96)
        atomicAdd(&count, 1);
    if (threadIdx.x == 0) {
        while (atomicAdd(&count, 0) < 31)
            ;
        __threadfence_block();
        word = 4; // @change
    }
}
