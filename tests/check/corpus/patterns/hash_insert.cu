// hash_insert: a key is taken by atomicCAS and its value is stored after it: look-ups in the same kernel may come between.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[64] --arg u32[64]:4294967295 --arg u32[32]
// EXPECT:   race-global @value @look within grid
// ALLOW:    race-global

extern "C" __global__ void hash_insert(unsigned *keys, unsigned *values, unsigned *out)
{
    const unsigned key = threadIdx.x + 1;
    unsigned place = key * 7 % 64;
    if (blockIdx.x == 0) {
        while (atomicCAS(&keys[place], 0, key) != 0)
            place = (place + 1) % 64;
        values[place] = key * 2; // @value
    } else {
        unsigned seen = 0;
        for (unsigned tries = 0; tries < 100 && seen != key; tries++) {
            seen = atomicAdd(&keys[place], 0);
            if (seen != key && seen != 0)
                place = (place + 1) % 64;
        }
        out[threadIdx.x] = seen == key ? values[place] : 0; // @look
    }
}
