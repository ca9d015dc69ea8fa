/* C = A B in f32 with plain FMA. A CTA makes 64 x 64 of C; along x, a pair of CTAs has different rows of A and the same
   columns of B. own: each CTA loads the whole tile of B. multicast: each loads half of its rows and sends them to both.
   dsmem: each loads half and copies it on into the peer's shared memory. A is loaded the same way in all of them, with plain
   loads, so that what bulk copies ask for is B. */
#include "../common/copy.cuh"

#define TILE_M  64
#define TILE_N  64
#define TILE_K  16
#define STAGES  4
#define AHEAD   (STAGES - 2) /* steps: a stage is filled again a step after it was freed, so that the peer has had the time */
#define THREADS 256
#define B_BYTES (TILE_K * TILE_N * 4)
#define PAD     4 /* floats, between rows of A's tile: its columns are written across banks */

enum way { OWN, MULTICAST, DSMEM };

struct memory {
    alignas(128) float b[STAGES][TILE_K][TILE_N];
    float a[2][TILE_K][TILE_M + PAD];
    alignas(8) u64 full[STAGES]; /* what comes over the cluster, or all of it */
    u64 empty[STAGES];           /* of every CTA that takes part in filling the stage */
    u64 mine[STAGES];            /* dsmem: the half that this CTA loads */
};

/* From this CTA's shared memory to a peer's. */
__device__ __forceinline__ void copy_across(u32 to, u32 from, u32 bytes, u32 peer_barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(peer_barrier)
                 : "memory");
}

template <way WAY> struct sharing {
    memory &m;
    const tensor_map *map;
    u32 rank = WAY == OWN ? 0 : cluster_rank();

    /* Starts the copies of B's tile of a step. One thread. */
    __device__ __forceinline__ void start(u32 step)
    {
        const u32 stage = step % STAGES, full = shared_address(&m.full[stage]), to = shared_address(m.b[stage]);
        const int x = blockIdx.y * TILE_N, y = step * TILE_K;
        if (step >= STAGES)
            wait_phase(shared_address(&m.empty[stage]), (step / STAGES - 1) & 1);
        arrive_expect(full, WAY == DSMEM ? B_BYTES / 2 : B_BYTES);
        if (WAY == OWN) {
            copy_box(to, map, x, y, full);
        } else if (WAY == MULTICAST) {
            copy_box_multicast(to + rank * (B_BYTES / 2), map, x, y + rank * (TILE_K / 2), full, 3);
        } else {
            const u32 mine = shared_address(&m.mine[stage]);
            arrive_expect(mine, B_BYTES / 2);
            copy_box(to + rank * (B_BYTES / 2), map, x, y + rank * (TILE_K / 2), mine);
        }
    }
    /* dsmem: copies this CTA's half of a step on to the peer. One thread. */
    __device__ __forceinline__ void pass_on(u32 step)
    {
        const u32 stage = step % STAGES, half = shared_address(m.b[stage]) + rank * (B_BYTES / 2);
        wait_phase(shared_address(&m.mine[stage]), step / STAGES & 1);
        copy_across(peer_address(half, rank ^ 1), half, B_BYTES / 2,
                    peer_address(shared_address(&m.full[stage]), rank ^ 1));
    }
    __device__ __forceinline__ void wait(u32 step)
    {
        wait_phase(shared_address(&m.full[step % STAGES]), step / STAGES & 1);
        if (WAY == DSMEM)
            wait_phase(shared_address(&m.mine[step % STAGES]), step / STAGES & 1);
    }
    /* Says that this CTA has read the stage of a step. One thread. */
    __device__ __forceinline__ void release(u32 step)
    {
        const u32 empty = shared_address(&m.empty[step % STAGES]);
        arrive(empty);
        if (WAY != OWN)
            arrive_remote(peer_address(empty, rank ^ 1));
    }
};

template <way WAY>
__device__ __forceinline__ void multiply(const float *a, const tensor_map *map, float *c, u32 n, u32 k)
{
    __shared__ memory m;
    sharing<WAY> b = {m, map};
    const u32 tid = threadIdx.x, row = tid / 16 * 4, column = tid % 16 * 4, steps = k / TILE_K;
    const float4 *a_from = (const float4 *)(a + (u64)(blockIdx.x * TILE_M + tid / 4) * k + tid % 4 * 4);
    float sum[4][4] = {};
    if (tid == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            barrier_init(shared_address(&m.full[i]), 1);
            barrier_init(shared_address(&m.empty[i]), WAY == OWN ? 1 : 2);
            barrier_init(shared_address(&m.mine[i]), 1);
        }
        barrier_init_visible();
    }
    if (WAY == OWN)
        __syncthreads();
    else
        cluster_barrier();
    if (tid == 0)
        for (u32 step = 0; step < AHEAD && step < steps; step++)
            b.start(step);
    if (WAY == DSMEM && tid == 32)
        b.pass_on(0);
    for (u32 step = 0; step < steps; step++) {
        const float4 part = a_from[step * (TILE_K / 4)];
        float(*tile)[TILE_M + PAD] = m.a[step & 1];
        tile[tid % 4 * 4 + 0][tid / 4] = part.x;
        tile[tid % 4 * 4 + 1][tid / 4] = part.y;
        tile[tid % 4 * 4 + 2][tid / 4] = part.z;
        tile[tid % 4 * 4 + 3][tid / 4] = part.w;
        b.wait(step);
        __syncthreads(); /* A's tile is written; the step before is done with its stage */
        if (tid == 0) {
            if (step > 0)
                b.release(step - 1);
            if (step + AHEAD < steps)
                b.start(step + AHEAD);
        }
        if (WAY == DSMEM && tid == 32 && step + 1 < steps)
            b.pass_on(step + 1);
#pragma unroll
        for (u32 i = 0; i < TILE_K; i++) {
            const float4 x = *(const float4 *)&tile[i][row], y = *(const float4 *)&m.b[step % STAGES][i][column];
            const float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (u32 j = 0; j < 16; j++)
                sum[j / 4][j % 4] = __fmaf_rn(left[j / 4], right[j % 4], sum[j / 4][j % 4]);
        }
    }
    for (u32 i = 0; i < 4; i++)
        *(float4 *)(c + (u64)(blockIdx.x * TILE_M + row + i) * n + blockIdx.y * TILE_N + column) =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    if (WAY != OWN)
        cluster_barrier(); /* nobody leaves while the peer may still signal it */
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tile_matmul_own(const float *a, const __grid_constant__ tensor_map b, float *c, u32 n, u32 k)
{
    multiply<OWN>(a, &b, c, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tile_matmul_multicast(const float *a, const __grid_constant__ tensor_map b, float *c, u32 n, u32 k)
{
    multiply<MULTICAST>(a, &b, c, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tile_matmul_dsmem(const float *a, const __grid_constant__ tensor_map b, float *c, u32 n, u32 k)
{
    multiply<DSMEM>(a, &b, c, n, k);
}
