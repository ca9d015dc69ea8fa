// vector_overlap_ok: at their own 16 bytes.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg f32[320]:iota --arg f32[64]
// EXPECT:   clean

extern "C" __global__ void vector_overlap_ok(float *data, float *out)
{
    float4 *mine = (float4 *)data + threadIdx.x;
    mine->x = threadIdx.x; // @store
    const float4 value = mine[0];
    out[threadIdx.x] = value.x + value.w;
}
