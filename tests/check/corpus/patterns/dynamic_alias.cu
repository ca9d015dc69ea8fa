// dynamic_alias: two arrays in dynamic shared memory overlap by a wrong offset.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --smem 512 --arg u32[64]
// EXPECT:   race-shared @first @second within cta
// ALLOW:    race-shared race-same-value

extern "C" __global__ void dynamic_alias(unsigned *out)
{
    extern __shared__ unsigned memory[];
    unsigned *first = memory, *second = memory + 32;
    first[threadIdx.x] = threadIdx.x;       // @first
    second[threadIdx.x] = threadIdx.x * 3u; // @second
    __syncthreads();
    out[threadIdx.x] = first[63 - threadIdx.x] + second[threadIdx.x ^ 1];
}
