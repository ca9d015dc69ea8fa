// stencil: a stencil that reads its neighbours' words with no barrier after the loads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg f32[128]:iota --arg f32[128]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized

extern "C" __global__ void stencil(const float *in, float *out)
{
    __shared__ float line[66];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    line[threadIdx.x + 1] = in[i]; // @store
    if (threadIdx.x == 0)
        line[0] = i > 0 ? in[i - 1] : 0;
    if (threadIdx.x == 63)
        line[65] = i < 127 ? in[i + 1] : 0;
    out[i] = line[threadIdx.x] + line[threadIdx.x + 1] + line[threadIdx.x + 2]; // @read
}
