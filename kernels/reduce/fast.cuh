/* What reduce_fast and reduce_fast_cluster share: summing a CTA's share of the input at the rate of DRAM.

   Two forms, told apart by the launch. Tile form: 1024 threads, one tile of 2 float4 per thread, as many CTAs as tiles;
   the hardware deals the tiles to the SMs, so that all finish together. Pipeline form, when the grid does not cover the
   input: one CTA per SM, which keeps a ring of bulk copies (cp.async.bulk, 32 KiB each) in flight; its dynamic shared
   memory is the ring.

   FIGURES

   The input may start at any float: up to 31 before the first 128-byte boundary and up to three after the last float4
   are added apart. PTX ISA 8.0, sm_90. */
#pragma once

#define MAX_THREADS  1024
#define TILE_THREADS 1024
#define TILE_LOADS   2
#define PASSING      (1ull << 23) /* float4: an input of so many or more sweeps the L2 clean in any case */
#define RING_THREADS 512
#define RING_STAGES  6
#define STAGE_FLOAT4 2048 /* 32 KiB */
#define LINE_FLOATS  32   /* 128 bytes, what the bulk copy engine moves at once */

__device__ __forceinline__ float sum4(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

__device__ __forceinline__ void add4(float4 &to, float4 v)
{
    to.x += v.x;
    to.y += v.y;
    to.z += v.z;
    to.w += v.w;
}

__device__ __forceinline__ unsigned int shared_address(const void *pointer)
{
    return (unsigned int)__cvta_generic_to_shared(pointer);
}

/* This thread's part of tile blockIdx.x. */
__device__ __forceinline__ float tile_sum(const float4 *body, unsigned long long count)
{
    const unsigned long long first = (unsigned long long)blockIdx.x * (TILE_THREADS * TILE_LOADS) + threadIdx.x;
    const bool evict_first = count < PASSING;
    float4 v[TILE_LOADS];
#pragma unroll
    for (int i = 0; i < TILE_LOADS; i++) {
        const unsigned long long at = first + i * TILE_THREADS;
        v[i] = at >= count ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : evict_first ? __ldcs(body + at) : body[at];
    }
#pragma unroll
    for (int i = 1; i < TILE_LOADS; i++)
        add4(v[0], v[i]);
    return sum4(v[0]);
}

/* The share of this CTA in pieces: full stages dealt round robin over the grid, and what is left in equal parts. */
struct share {
    unsigned int rounds;          /* full stages of this CTA */
    unsigned long long rest;      /* where its part of the rest starts, in float4 */
    unsigned int rest_count;      /* float4 in it, at most a stage */
};

__device__ __forceinline__ unsigned int round_to_line(unsigned int float4s)
{
    return (float4s + LINE_FLOATS / 4 - 1) / (LINE_FLOATS / 4) * (LINE_FLOATS / 4);
}

__device__ __forceinline__ share share_of(unsigned long long count)
{
    const unsigned long long round = (unsigned long long)gridDim.x * STAGE_FLOAT4;
    share s;
    s.rounds = (unsigned int)(count / round);
    const unsigned long long left = count - s.rounds * round;
    const unsigned int part = round_to_line((unsigned int)((left + gridDim.x - 1) / gridDim.x));
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

/* This thread's part of the CTA's share. */
__device__ __forceinline__ float ring_sum(const float4 *body, unsigned long long count, float4 *ring,
                                          unsigned long long full[RING_STAGES])
{
    const share s = share_of(count);
    const unsigned int pieces = s.rounds + (s.rest_count > 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < RING_STAGES; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + i)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (unsigned int i = 0; i < RING_STAGES && i < pieces; i++)
            start_piece(body, s, i, ring, full);
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
            start_piece(body, s, piece + RING_STAGES, ring, full);
    }
    return sum4(total);
}

/* This thread's part of what lies outside the whole float4 of whole lines; CTA 0 adds it. */
__device__ __forceinline__ float edges(const float *input, unsigned long long head, const float *end,
                                       unsigned long long tail)
{
    float total = 0.0f;
    if (blockIdx.x == 0 && threadIdx.x < head)
        total += input[threadIdx.x];
    if (blockIdx.x == 0 && threadIdx.x < tail)
        total += end[threadIdx.x];
    return total;
}

/* The CTA's total, valid in thread 0. */
__device__ __forceinline__ float cta_sum(const float *input, unsigned long long n, float4 *ring,
                                         unsigned long long full[RING_STAGES], float warps[MAX_THREADS / 32])
{
    unsigned long long head = (0 - ((unsigned long long)input >> 2)) % LINE_FLOATS;
    head = head < n ? head : n;
    const float4 *body = (const float4 *)(input + head);
    const unsigned long long count = (n - head) / 4;

    float total = edges(input, head, (const float *)(body + count), (n - head) % 4);
    total += (unsigned long long)gridDim.x * (TILE_THREADS * TILE_LOADS) >= count && blockDim.x == TILE_THREADS
                 ? tile_sum(body, count)
                 : ring_sum(body, count, ring, full);

    for (int distance = 16; distance > 0; distance /= 2)
        total += __shfl_down_sync(0xffffffffu, total, distance);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x < 32) {
        total = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
        for (int distance = 16; distance > 0; distance /= 2)
            total += __shfl_down_sync(0xffffffffu, total, distance);
    }
    return total;
}
