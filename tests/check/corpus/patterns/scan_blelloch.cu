// scan_blelloch: the down-sweep starts before the last of the up-sweep is done.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[128]:ones --arg u32[128]
// EXPECT:   race-shared
// ALLOW:    race-shared uninitialized

extern "C" __global__ void scan_blelloch(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tree[128];
    const unsigned i = threadIdx.x;
    unsigned offset = 1;
    tree[2 * i] = in[2 * i];
    tree[2 * i + 1] = in[2 * i + 1];
    for (unsigned nodes = 64; nodes > 0; nodes /= 2) {
        __syncthreads();
        if (i < nodes)
            tree[offset * (2 * i + 2) - 1] += tree[offset * (2 * i + 1) - 1];
        offset *= 2;
    }
    if (i == 0)
        tree[127] = 0;
    for (unsigned nodes = 1; nodes < 128; nodes *= 2) {
        offset /= 2;
        if (i < nodes) {
            const unsigned left = offset * (2 * i + 1) - 1, right = offset * (2 * i + 2) - 1;
            const unsigned value = tree[left];
            tree[left] = tree[right];
            tree[right] += value;
        }
    }
    __syncthreads();
    out[2 * i] = tree[2 * i];
    out[2 * i + 1] = tree[2 * i + 1];
}
