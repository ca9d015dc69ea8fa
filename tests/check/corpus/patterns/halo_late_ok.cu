// halo_late_ok: before it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg f32[260]:iota --arg f32[260]
// EXPECT:   clean

extern "C" __global__ void halo_late_ok(const float *in, float *out)
{
    __shared__ float line[68];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    line[threadIdx.x + 2] = in[i + 2];
    if (threadIdx.x < 2) {
        line[threadIdx.x] = in[i];            // @halo
        line[threadIdx.x + 66] = in[i + 66]; // @halo2
    }
    __syncthreads();
    float sum = 0;
    for (unsigned k = 0; k < 5; k++)
        sum += line[threadIdx.x + k]; // @read
    out[i + 2] = sum;
}
