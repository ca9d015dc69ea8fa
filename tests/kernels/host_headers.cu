/* A kernel as people write it for nvcc: host headers named out of habit (host/compile/host_headers.h). launch:
   1 CTA of 32 threads, f32[n], n. Expect: sqrt(pi) + 7 in each. */
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda_runtime.h>
#include <limits>
#include <stdint.h>
#include <stdio.h>
#include <type_traits>

template <typename T> __global__ void host_headers(T *x, std::uint64_t n)
{
    static_assert(std::is_same<T, float>::value, "");
    static_assert(sizeof(CUtensorMap) == 128, "");
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i < UINT32_MAX);
    if (i < n)
        x[i] = std::sqrt((float)M_PI) + (FLT_MAX < std::numeric_limits<float>::infinity() ? INT_MAX & 7 : NAN);
}
template __global__ void host_headers<float>(float *, std::uint64_t);
