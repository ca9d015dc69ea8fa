/* What the variants share: a tile's work, its log, and the contract.

   Contract: (const uint32 *cost, uint32 *result, uint32 *done, uint32 *handed, uint64 *log, const uint32 *input,
   uint32 *next, uint32 tiles, uint32 rounds, uint32 words, uint32 memory). A variant sees that tile_run runs once for
   every tile below `tiles`, and that the tiles it hands to CTAs, by launching a CTA or otherwise, are counted in *handed.
   A tile of cost c is c x `rounds` rounds. result[tile] becomes the sum over the CTA's threads, mod 2^32, of
     memory 0: x after c x rounds x 32 steps of x = A x + C, from x = input[(tile blockDim + thread) mod words];
     memory 1: the words of the c x rounds x 8 vectors of 16 bytes that the thread reads, from tile_place on.
   `words` is a power of two. done[tile] is raised by one. log[4 tile..] = {start, end (ns), SM | CTA << 32, 0}.

   Launch: one-dimensional, block a multiple of 32 up to 1024; so much shared memory that an SM holds one CTA. */
#pragma once

#define A 1664525u /* Numerical Recipes' generator: a full period, and odd powers that no compiler folds */
#define C 1013904223u

typedef unsigned int u32;
typedef unsigned long long u64;

struct work {
    const u32 *cost;
    u32 *result, *done, *handed;
    u64 *log;
    const u32 *input;
    u32 *next, tiles, rounds, words, memory;
};

#define WORK_PARAMETERS                                                                                              \
    const u32 *cost, u32 *result, u32 *done, u32 *handed, u64 *log, const u32 *input, u32 *next, u32 tiles, u32 rounds, \
        u32 words, u32 memory
#define WORK                                                                            \
    {                                                                                   \
        cost, result, done, handed, log, input, next, tiles, rounds, words, memory \
    }

__device__ __forceinline__ u64 now_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* Eight dependent multiply-adds; asm, so that nothing merges them. */
__device__ __forceinline__ u32 eight_steps(u32 x, u32 a, u32 c)
{
    asm volatile("mad.lo.u32 %0, %0, %1, %2;\n\tmad.lo.u32 %0, %0, %1, %2;\n\t"
                 "mad.lo.u32 %0, %0, %1, %2;\n\tmad.lo.u32 %0, %0, %1, %2;\n\t"
                 "mad.lo.u32 %0, %0, %1, %2;\n\tmad.lo.u32 %0, %0, %1, %2;\n\t"
                 "mad.lo.u32 %0, %0, %1, %2;\n\tmad.lo.u32 %0, %0, %1, %2;"
                 : "+r"(x)
                 : "r"(a), "r"(c));
    return x;
}

/* The first vector of a tile in the input: anywhere, so that tiles that run at once share nothing. */
__device__ __forceinline__ u32 tile_place(u32 id)
{
    return id * 2654435761u & ~63u;
}

/* A tile's progress: begun, some rounds done, ended. */
struct tile {
    u32 id, rounds, at, sum;
    u64 start;
};

__device__ __forceinline__ tile tile_begin(const work &w, u32 id)
{
    tile t;
    t.start = threadIdx.x == 0 ? now_ns() : 0;
    t.id = id;
    t.rounds = w.cost[id] * w.rounds;
    t.at = 0;
    t.sum = w.memory ? 0 : w.input[(id * blockDim.x + threadIdx.x) & (w.words - 1)];
    return t;
}

/* Rounds of the tile up to number `end`. */
__device__ __forceinline__ void tile_advance(const work &w, tile &t, u32 end)
{
    if (!w.memory) {
#pragma unroll 1
        for (; t.at < end; t.at++)
            for (int k = 0; k < 4; k++)
                t.sum = eight_steps(t.sum, A, C);
        return;
    }
    const uint4 *vectors = (const uint4 *)w.input;
    const u32 mask = w.words / 4 - 1;
    u32 from = tile_place(t.id) + t.at * 8u * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (; t.at < end; t.at++, from += 8u * blockDim.x) {
        uint4 v[8];
        for (int k = 0; k < 8; k++)
            v[k] = __ldcs(&vectors[(from + k * blockDim.x) & mask]);
        for (int k = 0; k < 8; k++)
            t.sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
}

/* The rest of the rounds, and the result. Holds a CTA barrier; the next tile_end must be a barrier away. */
__device__ __forceinline__ void tile_end(const work &w, tile &t)
{
    __shared__ u32 sums[32];
    tile_advance(w, t, t.rounds);
    const u32 total = __reduce_add_sync(0xffffffffu, t.sum);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    u32 sum = 0, sm;
    for (u32 warp = 0; warp < blockDim.x / 32; warp++)
        sum += sums[warp];
    w.result[t.id] = sum;
    atomicAdd(&w.done[t.id], 1);
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    u64 *slot = &w.log[4ull * t.id];
    slot[0] = t.start;
    slot[1] = now_ns();
    slot[2] = (u64)blockIdx.x << 32 | sm;
    slot[3] = 0;
}

__device__ __forceinline__ void tile_run(const work &w, u32 id)
{
    tile t = tile_begin(w, id);
    tile_end(w, t);
}

/* By the thread that hands tiles out. */
__device__ __forceinline__ void count_handed(const work &w, u32 tiles)
{
    atomicAdd(w.handed, tiles);
}
