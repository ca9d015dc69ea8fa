// stmatrix_store_ok: with one by every warp.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[256]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void stmatrix_store_ok(u32 *out)
{
    __shared__ alignas(128) u32 tile[256];
    const u32 t = threadIdx.x, warp = t / 32, lane = t % 32;
    const u32 row = at(tile) + warp * 512 + lane * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(t), "r"(t + 1), "r"(t + 2), "r"(t + 3) : "memory");
    proxy_fence();
    __syncthreads();
    if (t == 0) {
        bulk_out(out, at(tile), 1024);
        bulk_commit();
        bulk_wait_read<0>();
    }
}
