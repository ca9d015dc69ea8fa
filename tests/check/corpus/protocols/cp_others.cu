// cp_others: after its own wait_group each thread reads what its neighbours copied.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[512]:iota --arg u32[128]
// EXPECT:   async-read-early|race-shared @read
// ALLOW:    uninitialized async-read-early
#include "protocol.cuh"

extern "C" __global__ void cp_others(const uint4 *in, u32 *out)
{
    __shared__ uint4 tile[128];
    cp_async16(at(&tile[threadIdx.x]), in + threadIdx.x);
    cp_commit();
    cp_wait<0>();
    out[threadIdx.x] = tile[127 - threadIdx.x].y; // @read
}
