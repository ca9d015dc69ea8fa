// jacobi_in_place: a stencil in place: blocks read words that their neighbours overwrite.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg f32[258]:iota --arg f32[258]
// EXPECT:   race-global @read @write within grid
// ALLOW:    race-global

extern "C" __global__ void jacobi_in_place(float *u, float *v)
{
    const unsigned i = blockIdx.x * 64 + threadIdx.x + 1;
    const float value = (u[i - 1] + u[i + 1]) * 0.5f; // @read
    u[i] = value; // @write
}
