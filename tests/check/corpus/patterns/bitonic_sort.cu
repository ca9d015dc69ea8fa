// bitonic_sort: the sort passes from one stride to the next without a barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[256]:random(3)
// EXPECT:   race-shared
// ALLOW:    race-shared

extern "C" __global__ void bitonic_sort(unsigned *data)
{
    __shared__ unsigned key[256];
    key[threadIdx.x] = data[threadIdx.x];
    key[threadIdx.x + 128] = data[threadIdx.x + 128];
    for (unsigned size = 2; size <= 256; size *= 2) {
        __syncthreads();
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            const unsigned low = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), high = low + stride;
            const bool down = (low & size) != 0;
            if ((key[low] > key[high]) != down) {
                const unsigned swapped = key[low];
                key[low] = key[high];
                key[high] = swapped;
            }
        }
    }
    __syncthreads();
    data[threadIdx.x] = key[threadIdx.x];
    data[threadIdx.x + 128] = key[threadIdx.x + 128];
}
