// shuffle_sum_partial: a shuffle sum in a branch of 20 lanes reads lanes that are not in it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   shfl-inactive|mask-diverged
// ALLOW:    shfl-inactive mask-diverged

extern "C" __global__ void shuffle_sum_partial(const unsigned *in, unsigned *out)
{
    unsigned value = in[threadIdx.x];
    if (threadIdx.x < 20) {
        for (unsigned distance = 16; distance > 0; distance /= 2) {
            value += __shfl_down_sync(0xfffff, value, distance);
        }
    }
    out[threadIdx.x] = value;
}
