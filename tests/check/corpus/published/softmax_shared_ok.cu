// softmax_shared_ok: a barrier between reading the maximum and storing sums.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg f32[256]:ones --arg f32[256]
// EXPECT:   clean
// A row a block: maximum, then the sum of exponentials, over four warps.
extern "C" __global__ void softmax_shared_ok(const float *in, float *out)
{
    __shared__ float part[4];
    const unsigned t = threadIdx.x, warp = t / 32, lane = t % 32;
    const float x = in[blockIdx.x * 128 + t];
    float m = x;
    for (int d = 16; d > 0; d /= 2)
        m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, d));
    if (lane == 0)
        part[warp] = m;
    __syncthreads();
    m = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    __syncthreads();
    const float e = __expf(x - m);
    float s = e;
    for (int d = 16; d > 0; d /= 2)
        s += __shfl_xor_sync(0xffffffff, s, d);
    if (lane == 0)
        part[warp] = s;
    __syncthreads();
    out[blockIdx.x * 128 + t] = e / (part[0] + part[1] + part[2] + part[3]);
}
