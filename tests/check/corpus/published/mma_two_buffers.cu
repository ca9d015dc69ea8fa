// mma_two_buffers: warps load fragments of a buffer that the next turn already overwrites: one barrier in the loop stands where two are needed.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[1024]:zero --arg f32[512]
// EXPECT:   race-shared
typedef unsigned int u32;

// Two warps multiply 16x16 tiles with ldmatrix and mma; register staging, one buffer.
extern "C" __global__ void mma_two_buffers(const u32 *in, float *out)
{
    __shared__ alignas(16) u32 a[128];
    const u32 t = threadIdx.x, lane = t % 32;
    float d[4] = {0, 0, 0, 0};
    for (u32 k = 0; k < 8; k++) {
        a[t] = in[k * 128 + t];
        a[t + 64] = in[k * 128 + t + 64];
        __syncthreads();
        u32 f[4];
        const u32 row = (u32)__cvta_generic_to_shared(a) + (lane % 16) * 32 + (lane / 16) * 16;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(row) : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(f[0]), "r"(f[2]));
    }
    for (u32 i = 0; i < 4; i++)
        out[t * 4 + i] = d[i];
}
