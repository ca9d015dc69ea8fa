// One CTA of eight stores far beyond the buffer, in a function that is inlined.
//
// Needs:  CUDA C++17
// Launch: --grid 4,2 --block 32 --arg f32[256]

static __device__ void put(float *out, unsigned at, float value)
{
    out[at] = value;
}

extern "C" __global__ void inlined_fault(float *out)
{
    const unsigned cta = blockIdx.y * gridDim.x + blockIdx.x;
    unsigned at = cta * blockDim.x + threadIdx.x;
    if (blockIdx.x == 3 && blockIdx.y == 1)
        at += 24782;
    put(out, at, 1);
}
