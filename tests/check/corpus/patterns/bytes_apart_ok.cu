// bytes_apart_ok: neighbouring bytes by neighbouring threads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u8[64]:zero --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void bytes_apart_ok(unsigned char *bytes, unsigned *out)
{
    bytes[threadIdx.x] = threadIdx.x; // @byte
    out[threadIdx.x] = threadIdx.x;
}
