/* Summing a CTA's share of the input through a ring of bulk copies (cp.async.bulk, 16 KiB each) that it keeps in flight.
   PTX ISA 8.0, sm_90.

   The ring lies on a 128-byte line because the input does. An H200 (driver 580.159.04, 2026-11-30; cold L2, 32 KiB x 6)
   took, by how far the ring's and the input's places in a line were apart: 0 bytes 248.0 us at 2^28 floats and 1872 at
   2^31; 32 bytes 249.0 and 1882; 48 bytes 308.0 and 2361; 64 bytes 328 and 2440.

   __syncthreads frees a stage as well as an mbarrier with a warp of its own for the copies does (1838.7 us against 1836.9
   at 2^31), and round robin over the grid beats contiguous shares (247.3 against 248.3 at 2^28). */
#pragma once

#include "fast.cuh"

#define RING_THREADS 256
#define RING_STAGES  6
#define STAGE_FLOAT4 1024 /* 16 KiB */
#define LINE_FLOAT4  (LINE_FLOATS / 4)

__device__ __forceinline__ unsigned int shared_address(const void *pointer)
{
    return (unsigned int)__cvta_generic_to_shared(pointer);
}

/* The share of this CTA in pieces: full stages dealt round robin over the grid, and what is left in equal parts. */
struct share {
    unsigned int rounds;     /* full stages of this CTA */
    unsigned long long rest; /* where its part of the rest starts, in float4 */
    unsigned int rest_count; /* float4 in it, at most a stage */
};

__device__ __forceinline__ share share_of(unsigned long long count)
{
    const unsigned long long round = (unsigned long long)gridDim.x * STAGE_FLOAT4;
    share s;
    s.rounds = (unsigned int)(count / round);
    const unsigned long long left = count - s.rounds * round;
    const unsigned int lines = (unsigned int)((left + LINE_FLOAT4 - 1) / LINE_FLOAT4);
    const unsigned int part = (lines + gridDim.x - 1) / gridDim.x * LINE_FLOAT4;
    const unsigned long long start = (unsigned long long)blockIdx.x * part;
    s.rest = s.rounds * round + start;
    s.rest_count = start >= left ? 0 : (unsigned int)(left - start < part ? left - start : part);
    return s;
}

/* Starts the bulk copy of piece `piece` of this CTA's share into its stage. One thread calls it. */
__device__ __forceinline__ void start_piece(const float4 *body, const share &s, unsigned int piece, float4 *ring,
                                            unsigned long long *full)
{
    const unsigned int stage = piece % RING_STAGES;
    const bool whole = piece < s.rounds;
    const float4 *from =
        body + (whole ? ((unsigned long long)piece * gridDim.x + blockIdx.x) * STAGE_FLOAT4 : s.rest);
    const unsigned int bytes = (whole ? STAGE_FLOAT4 : s.rest_count) * 16u;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(full + stage)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(ring + stage * STAGE_FLOAT4)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(full + stage))
                 : "memory");
}

__device__ __forceinline__ void wait_phase(unsigned long long *barrier, unsigned int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "AGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra AGAIN;\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* This thread's part of the CTA's share. `ring` is RING_STAGES x STAGE_FLOAT4 on a 128-byte line. */
__device__ __forceinline__ float ring_sum(const span &input, float4 *ring, unsigned long long full[RING_STAGES])
{
    const share s = share_of(input.count);
    const unsigned int pieces = s.rounds + (s.rest_count > 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < RING_STAGES; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + i)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (unsigned int i = 0; i < RING_STAGES && i < pieces; i++)
            start_piece(input.body, s, i, ring, full);
    }
    __syncthreads();
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (unsigned int piece = 0; piece < pieces; piece++) {
        const unsigned int stage = piece % RING_STAGES, size = piece < s.rounds ? STAGE_FLOAT4 : s.rest_count;
        wait_phase(full + stage, (piece / RING_STAGES) & 1);
#pragma unroll
        for (unsigned int i = 0; i < STAGE_FLOAT4 / RING_THREADS; i++)
            if (threadIdx.x + i * RING_THREADS < size)
                add4(total, ring[stage * STAGE_FLOAT4 + threadIdx.x + i * RING_THREADS]);
        __syncthreads(); /* the stage has been read */
        if (threadIdx.x == 0 && piece + RING_STAGES < pieces)
            start_piece(input.body, s, piece + RING_STAGES, ring, full);
    }
    return sum4(total);
}
