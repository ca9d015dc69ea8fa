// stack_of_16_bytes_ok: before it, and the exchange releases.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u64[2]:0 --arg u32[128] --arg u32[4]
// EXPECT:   clean
typedef unsigned long long u64;
typedef unsigned int u32;

__device__ __forceinline__ bool swap16(u64 *at, u64 &lo, u64 &hi, u64 new_lo, u64 new_hi)
{
    u64 got_lo, got_hi;
    asm volatile("{ .reg .b128 was, now, got;\nmov.b128 was, {%3, %4};\nmov.b128 now, {%5, %6};\n"
                 "atom.acq_rel.gpu.global.cas.b128 got, [%2], was, now;\nmov.b128 {%0, %1}, got; }"
                 : "=l"(got_lo), "=l"(got_hi) : "l"(at), "l"(lo), "l"(hi), "l"(new_lo), "l"(new_hi) : "memory");
    const bool same = got_lo == lo && got_hi == hi;
    lo = got_lo;
    hi = got_hi;
    return same;
}

// Every block pushes a node, then walks down the list from the head that it saw.
extern "C" __global__ void stack_of_16_bytes_ok(u64 *head, u32 *links, u32 *out)
{
    if (threadIdx.x != 0)
        return;
    const u32 me = blockIdx.x + 1;
    u64 lo = 0, hi = 0;
    do {
        links[me] = (u32)lo;
    } while (!swap16(head, lo, hi, me, hi + 1));
    u32 length = 1;
    for (u32 node = (u32)lo; node != 0; node = links[node])
        length++;
    out[blockIdx.x] = length;
}
