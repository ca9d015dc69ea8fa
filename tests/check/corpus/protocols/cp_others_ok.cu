// cp_others_ok: __syncthreads after wait_group.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[512]:iota --arg u32[128]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void cp_others_ok(const uint4 *in, u32 *out)
{
    __shared__ uint4 tile[128];
    cp_async16(at(&tile[threadIdx.x]), in + threadIdx.x);
    cp_commit();
    cp_wait<0>();
    __syncthreads();
    out[threadIdx.x] = tile[127 - threadIdx.x].y; // @read
}
