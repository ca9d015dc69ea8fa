// half_turns_ok: a barrier every turn.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[64]
// EXPECT:   clean
extern "C" __global__ void half_turns_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned buffer[2][64];
    unsigned sum = 0;
    for (unsigned k = 0; k < 8; k++) {
        buffer[k % 2][threadIdx.x] = in[k * 64 + threadIdx.x];
        __syncthreads();
        sum += buffer[k % 2][63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
