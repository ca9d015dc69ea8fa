// heap_freed_early: freed while other warps may still read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   use-after-free @read

// One thread allocates for the block, all store, one frees.
extern "C" __global__ void heap_freed_early(unsigned *out)
{
    __shared__ unsigned *heap;
    if (threadIdx.x == 0)
        heap = (unsigned *)malloc(blockDim.x * sizeof(unsigned));
    __syncthreads();
    heap[threadIdx.x] = threadIdx.x; // @store
    __syncthreads();
    out[threadIdx.x] = heap[threadIdx.x ^ 32]; // @read

    if (threadIdx.x == 0)
        free(heap);
}
