/* What reduce_fast and reduce_fast_cluster share: the input as float4 on 128-byte lines, a tile of it per CTA, and the
   sum over a CTA. The input may start at any float: up to 31 before the first line and up to three after the last float4
   are the edges, which CTA 0 adds. */
#pragma once

#define LINE_FLOATS 32

/* The input between its edges. */
struct span {
    const float *input;
    const float4 *body; /* on a 128-byte line, or empty */
    unsigned long long head, count, tail; /* floats, float4, floats */
};

__device__ __forceinline__ span span_of(const float *input, unsigned long long n)
{
    span s;
    s.head = (0 - ((unsigned long long)input >> 2)) % LINE_FLOATS;
    if (s.head > n)
        s.head = n;
    s.input = input;
    s.body = (const float4 *)(input + s.head);
    s.count = (n - s.head) / 4;
    s.tail = (n - s.head) % 4;
    return s;
}

__device__ __forceinline__ void add4(float4 &to, float4 v)
{
    to.x += v.x;
    to.y += v.y;
    to.z += v.z;
    to.w += v.w;
}

__device__ __forceinline__ float sum4(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* This thread's part of the edges. */
__device__ __forceinline__ float edge_sum(const span &s)
{
    float total = 0.0f;
    if (blockIdx.x == 0 && threadIdx.x < s.head)
        total += s.input[threadIdx.x];
    if (blockIdx.x == 0 && threadIdx.x < s.tail)
        total += ((const float *)(s.body + s.count))[threadIdx.x];
    return total;
}

/* This thread's part of tile blockIdx.x, THREADS x LOADS float4 of which each thread takes every THREADS-th.
   EVICT_FIRST (ld.global.cs) has the lines replace each other in the L2 rather than what was there before. */
template <int THREADS, int LOADS, bool EVICT_FIRST> __device__ __forceinline__ float tile_sum(const span &s)
{
    const unsigned long long start = (unsigned long long)blockIdx.x * (THREADS * LOADS);
    const float4 *mine = s.body + start + threadIdx.x;
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (start + THREADS * LOADS <= s.count) {
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            add4(total, EVICT_FIRST ? __ldcs(mine + i * THREADS) : mine[i * THREADS]);
    } else {
#pragma unroll 1
        for (unsigned long long i = start + threadIdx.x; i < s.count; i += THREADS)
            add4(total, s.body[i]);
    }
    return sum4(total);
}

/* The sum of `part` over the CTA's THREADS threads, valid in thread 0. */
template <int THREADS> __device__ __forceinline__ float cta_sum(float part, float warps[THREADS / 32])
{
    for (int distance = 16; distance > 0; distance /= 2)
        part += __shfl_down_sync(0xffffffffu, part, distance);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = part;
    __syncthreads();
    if (threadIdx.x < 32) {
        part = threadIdx.x < THREADS / 32 ? warps[threadIdx.x] : 0.0f;
        for (int distance = THREADS / 64; distance > 0; distance /= 2)
            part += __shfl_down_sync(0xffffffffu, part, distance);
    }
    return part;
}
