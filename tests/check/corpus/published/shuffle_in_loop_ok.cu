// shuffle_in_loop_ok: the loop goes on while any lane has something.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   clean
extern "C" __global__ void shuffle_in_loop_ok(const unsigned *in, unsigned *out)
{
    unsigned left = in[threadIdx.x] % 5, sum = 0;
    while (__any_sync(0xffffffff, left > 0)) {
        sum += __shfl_xor_sync(0xffffffff, left, 1);
        left -= left > 0;
    }
    out[threadIdx.x] = sum;
}
