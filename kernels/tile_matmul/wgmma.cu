/* C = A B^T in bf16 with wgmma (sm_90a), f32 sums. A CTA makes 64 x 256 of C with one warpgroup: a tile so flat that the
   bytes of B limit it. Along y, a pair of CTAs has different rows of A and the same rows of B^T; along x, rows of B^T change,
   so that neighbours do not happen to ask for the same bytes of B at the same time. own: each loads B's tile
   whole; multicast: each loads half of it and sends that half to both. Both operands lie with K along memory, in tiles of 64
   (128 bytes, swizzle 128B). PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions". */
#include "../common/copy.cuh"

#define TILE_M  64
#define TILE_N  256
#define TILE_K  64
#define STAGES  5
#define A_BYTES (TILE_M * TILE_K * 2)
#define B_BYTES (TILE_N * TILE_K * 2)
#define THREADS 160 /* the warpgroup, and a warp for the copies */

/* The descriptor of a K-major tile with swizzle 128B: groups of eight rows are 1024 bytes apart (bits 32 to 45, in 16 bytes);
   the leading offset has no meaning (bits 16 to 29: 1); mode 1 in bits 62 and 63. */
__device__ __forceinline__ u64 descriptor(u32 address)
{
    return (u64)(address & 0x3ffff) >> 4 | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define OUT8(i)                                                                                                              \
    "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), "+f"(d[(i) + 5]),                   \
        "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define OUT32(i) OUT8(i), OUT8((i) + 8), OUT8((i) + 16), OUT8((i) + 24)

/* d += a b over 16 columns of K. */
__device__ __forceinline__ void mma(float (&d)[128], u64 a, u64 b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
                 "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "
                 "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "
                 "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, "
                 "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, "
                 "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                 "}, %128, %129, 1, 1, 1, 0, 0;"
                 : OUT32(0), OUT32(32), OUT32(64), OUT32(96)
                 : "l"(a), "l"(b));
}

template <bool MULTICAST>
__device__ __forceinline__ void load(const tensor_map *a, const tensor_map *b, u32 tiles, u32 full, u32 empty, u32 steps)
{
    const u32 rank = MULTICAST ? cluster_rank() : 0;
    for (u32 step = 0; step < steps; step++) {
        const u32 stage = step % STAGES, barrier = full + stage * 8, to = tiles + stage * (A_BYTES + B_BYTES);
        wait_phase(empty + stage * 8, (step / STAGES & 1) ^ 1); /* a fresh mbarrier has completed parity 1 */
        arrive_expect(barrier, A_BYTES + B_BYTES);
        copy_box(to, a, step * TILE_K, blockIdx.y * TILE_M, barrier);
        if (MULTICAST)
            copy_box_multicast(to + A_BYTES + rank * (B_BYTES / 2), b, step * TILE_K,
                               blockIdx.x * TILE_N + rank * (TILE_N / 2), barrier, 3);
        else
            copy_box(to + A_BYTES, b, step * TILE_K, blockIdx.x * TILE_N, barrier);
    }
}

template <bool MULTICAST>
__device__ __forceinline__ void release(u32 empty)
{
    if (threadIdx.x == 0) {
        arrive(empty);
        if (MULTICAST)
            arrive_remote(peer_address(empty, cluster_rank() ^ 1));
    }
}

template <bool MULTICAST>
__device__ __forceinline__ void multiply(const tensor_map *a, const tensor_map *b, float *c, u32 n, u32 k)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const u32 tiles = shared_address(memory), full = tiles + STAGES * (A_BYTES + B_BYTES), empty = full + STAGES * 8;
    const u32 steps = k / TILE_K, tid = threadIdx.x;
    if (tid == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, MULTICAST ? 2 : 1);
        }
        barrier_init_visible();
    }
    if (MULTICAST)
        cluster_barrier();
    else
        __syncthreads();
    if (tid == 128) {
        load<MULTICAST>(a, b, tiles, full, empty, steps);
    } else if (tid < 128) {
        float d[128] = {};
        for (u32 step = 0; step < steps; step++) {
            const u32 stage = step % STAGES, at = tiles + stage * (A_BYTES + B_BYTES);
            const u64 left = descriptor(at), right = descriptor(at + A_BYTES);
            wait_phase(full + stage * 8, step / STAGES & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (u32 i = 0; i < TILE_K / 16; i++)
                mma(d, left + i * 2, right + i * 2); /* 16 columns are 32 bytes */
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            /* The step before is done: all four warps have waited for it. */
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (step > 0) {
                asm volatile("bar.sync 1, 128;" ::: "memory");
                release<MULTICAST>(empty + (step - 1) % STAGES * 8);
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        /* Thread t of warp w has rows 16 w + t / 4 and eight below, and of each eight columns two. */
        float *const to = c + (u64)(blockIdx.y * TILE_M + tid / 32 * 16 + tid % 32 / 4) * n + blockIdx.x * TILE_N + tid % 4 * 2;
#pragma unroll
        for (u32 i = 0; i < TILE_N / 8; i++) {
            *(float2 *)(to + i * 8) = make_float2(d[i * 4], d[i * 4 + 1]);
            *(float2 *)(to + (u64)8 * n + i * 8) = make_float2(d[i * 4 + 2], d[i * 4 + 3]);
        }
    }
    if (MULTICAST)
        cluster_barrier(); /* nobody leaves while the peer may still signal it */
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tile_matmul_wgmma_own(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b, float *c, u32 n, u32 k)
{
    multiply<false>(&a, &b, c, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS) tile_matmul_wgmma_multicast(
    const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b, float *c, u32 n, u32 k)
{
    multiply<true>(&a, &b, c, n, k);
}
