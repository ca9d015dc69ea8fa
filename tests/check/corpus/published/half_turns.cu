// half_turns: two buffers and a barrier every other turn: a fast warp laps a slow one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[64]
// EXPECT:   race-shared
extern "C" __global__ void half_turns(const unsigned *in, unsigned *out)
{
    __shared__ unsigned buffer[2][64];
    unsigned sum = 0;
    for (unsigned k = 0; k < 8; k++) {
        buffer[k % 2][threadIdx.x] = in[k * 64 + threadIdx.x];
        if (k % 2 == 0)
            __syncthreads();
        sum += buffer[k % 2][63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
