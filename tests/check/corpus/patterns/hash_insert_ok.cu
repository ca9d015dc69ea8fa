// hash_insert_ok: look-ups wait for the value.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[64] --arg u32[64]:4294967295 --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void hash_insert_ok(unsigned *keys, unsigned *values, unsigned *out)
{
    const unsigned key = threadIdx.x + 1;
    unsigned place = key * 7 % 64;
    if (blockIdx.x == 0) {
        while (atomicCAS(&keys[place], 0, key) != 0)
            place = (place + 1) % 64;
        atomicExch(&values[place], key * 2);
    } else {
        unsigned seen = 0;
        for (unsigned tries = 0; tries < 100 && seen != key; tries++) {
            seen = atomicAdd(&keys[place], 0);
            if (seen != key && seen != 0)
                place = (place + 1) % 64;
        }
        out[threadIdx.x] = seen == key ? atomicAdd(&values[place], 0) : 0;
    }
}
