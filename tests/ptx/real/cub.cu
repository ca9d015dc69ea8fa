// CUB's block and device algorithms: large kernels with deep loops and many registers.
#include <cub/cub.cuh>

__global__ void block(int *in, int *out)
{
    using reduce = cub::BlockReduce<int, 256>;
    using scan = cub::BlockScan<int, 256>;
    using sort = cub::BlockRadixSort<unsigned, 256, 4>;
    __shared__ union {
        reduce::TempStorage reduce;
        scan::TempStorage scan;
        sort::TempStorage sort;
    } storage;
    int value = in[threadIdx.x], before;
    int sum = reduce(storage.reduce).Sum(value);
    __syncthreads();
    scan(storage.scan).ExclusiveSum(value, before);
    __syncthreads();
    unsigned keys[4] = {(unsigned)value, 1u, 2u, (unsigned)sum};
    sort(storage.sort).Sort(keys);
    out[threadIdx.x] = sum + before + (int)keys[0];
}

void device(int *a, int *b, void *storage, size_t bytes)
{
    cub::DeviceReduce::Sum(storage, bytes, a, b, 100);
    cub::DeviceRadixSort::SortKeys(storage, bytes, (unsigned *)a, (unsigned *)b, 1000);
    cub::DeviceScan::InclusiveSum(storage, bytes, a, b, 100);
}
