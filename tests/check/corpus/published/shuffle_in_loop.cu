// shuffle_in_loop: a full mask in a loop that lanes leave at different times.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   mask-diverged|deadlock|mask-exited|shfl-inactive
// ALLOW:    mask-diverged deadlock mask-exited shfl-inactive
extern "C" __global__ void shuffle_in_loop(const unsigned *in, unsigned *out)
{
    unsigned left = in[threadIdx.x] % 5, sum = 0;
    while (left > 0) {
        sum += __shfl_xor_sync(0xffffffff, left, 1);
        left--;
    }
    out[threadIdx.x] = sum;
}
