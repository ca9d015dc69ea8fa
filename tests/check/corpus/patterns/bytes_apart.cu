// bytes_apart: neighbouring bytes are stored by neighbouring threads, and one thread stores the whole word.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u8[64]:zero --arg u32[64]
// EXPECT:   race-global @byte @word
// ALLOW:    race-global race-same-value

extern "C" __global__ void bytes_apart(unsigned char *bytes, unsigned *out)
{
    bytes[threadIdx.x] = threadIdx.x; // @byte
    if (threadIdx.x == 33)
        ((unsigned *)bytes)[0] = 0x01020304; // @word
    out[threadIdx.x] = threadIdx.x;
}
