// sums_next_turn: the next turn stores before warp 0 has read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[768]:iota --arg u32[3]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared

// Each warp leaves its sum in shared memory, and warp 0 adds them: three turns.
extern "C" __global__ void sums_next_turn(const unsigned *in, unsigned *out)
{
    __shared__ unsigned sums[8];
    for (unsigned turn = 0; turn < 3; turn++) {
        const unsigned sum = __reduce_add_sync(0xffffffff, in[turn * 256 + threadIdx.x]);
        if (threadIdx.x % 32 == 0)
            sums[threadIdx.x / 32] = sum; // @store
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned all = 0;
            for (unsigned w = 0; w < 8; w++)
                all += sums[w]; // @read
            out[turn] = all;
        }
    }
}
