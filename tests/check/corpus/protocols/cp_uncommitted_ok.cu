// cp_uncommitted_ok: committed.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[128]:iota --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void cp_uncommitted_ok(const uint4 *in, u32 *out)
{
    __shared__ uint4 tile[32];
    cp_async16(at(&tile[threadIdx.x]), in + threadIdx.x);
    cp_commit();
    cp_wait<0>();
    out[threadIdx.x] = tile[threadIdx.x].z; // @read
}
