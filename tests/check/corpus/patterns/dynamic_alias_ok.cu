// dynamic_alias_ok: laid out one behind the other.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --smem 512 --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void dynamic_alias_ok(unsigned *out)
{
    extern __shared__ unsigned memory[];
    unsigned *first = memory, *second = memory + 64;
    first[threadIdx.x] = threadIdx.x;       // @first
    second[threadIdx.x] = threadIdx.x * 3u; // @second
    __syncthreads();
    out[threadIdx.x] = first[63 - threadIdx.x] + second[threadIdx.x ^ 1];
}
