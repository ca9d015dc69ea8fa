// vector_overlap: float4 loads at a stride of 12 bytes... of words that a neighbour stores.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg f32[320]:iota --arg f32[64]
// EXPECT:   race-global @store @vector
// ALLOW:    race-global

extern "C" __global__ void vector_overlap(float *data, float *out)
{
    float4 *mine = (float4 *)data + threadIdx.x;
    mine->x = threadIdx.x; // @store
    const float4 value = mine[1]; // @vector
    out[threadIdx.x] = value.x + value.w;
}
