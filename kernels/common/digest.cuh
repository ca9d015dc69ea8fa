/* What landed in shared memory, for the oracle: a digest of a tile, and a pattern around the tiles that nobody may have
   touched. The digest is the sum of the tile's 32-bit words, each times an odd weight of its place, modulo 2^32: one wrong
   word, or two words in each other's place, always change it. ptx/multicast_reference.ptx has it from global memory. */
#pragma once

#include "copy.cuh"

#define GUARD_BYTES 1024u

/* This thread's part: 16-byte units `first`, `first + step`, ... of the tile at `tile`. `swizzle` is the mask of a tensor
   map's swizzle (0, 1, 3, 7: none, 32B, 64B, 128B), taken back here: address bits 7 and up are XORed into bits 4 and up
   (PTX ISA, "Tensor Swizzling Modes"). */
__device__ __forceinline__ u32 digest_part(u32 tile, u32 bytes, u32 first, u32 step, u32 swizzle)
{
    u32 sum = 0;
    for (u32 unit = first; unit < bytes / 16; unit += step) {
        const u32 address = tile + unit * 16;
        u32 a, b, c, d;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(address ^ (((address >> 7) & swizzle) << 4))
                     : "memory");
        const u32 weight = 8 * unit + 1;
        sum += a * weight + b * (weight + 2) + c * (weight + 4) + d * (weight + 6);
    }
    return sum;
}

/* Adds the warp's parts to *total. Whole warps call it. */
__device__ __forceinline__ void digest_add(u32 *total, u32 part)
{
    u32 sum;
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(part));
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, sum);
}

__device__ __forceinline__ u32 guard_word(u32 i)
{
    return 0xc0ffee00u ^ (i * 0x9e3779b9u);
}

/* A guard of GUARD_BYTES at `guard`, written and later counted by the whole block. */
__device__ __forceinline__ void guard_write(u32 *guard)
{
    for (u32 i = threadIdx.x; i < GUARD_BYTES / 4; i += blockDim.x)
        guard[i] = guard_word(i);
}

/* Adds the words that are not as they were to *touched. */
__device__ __forceinline__ void guard_check(const u32 *guard, u32 *touched)
{
    for (u32 i = threadIdx.x; i < GUARD_BYTES / 4; i += blockDim.x)
        if (((const volatile u32 *)guard)[i] != guard_word(i))
            atomicAdd(touched, 1u);
}
