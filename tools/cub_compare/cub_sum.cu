/* CUB's side of the comparison: DeviceReduce::Sum with the narrowest offset type that holds n, as its callers get it. */
#include "cub_sum.h"

#include <cstdint>

#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

/* clusterlab's measurement is C++ too: a row may be made here as well as in C. */
#include "lab/measure.h"
static_assert(sizeof(clab_measured_row) > 0, "");

int cub_sum_version(void)
{
    return CUB_VERSION;
}

static cudaError_t sum(void *temporary, size_t *bytes, const float *in, float *out, unsigned long long n,
                       cudaStream_t stream)
{
    if (n <= UINT32_MAX)
        return cub::DeviceReduce::Sum(temporary, *bytes, in, out, static_cast<std::uint32_t>(n), stream);
    return cub::DeviceReduce::Sum(temporary, *bytes, in, out, static_cast<std::uint64_t>(n), stream);
}

size_t cub_sum_temporary_bytes(unsigned long long n)
{
    size_t bytes = 0;
    const float *in = nullptr;
    float *out = nullptr;
    return sum(nullptr, &bytes, in, out, n, nullptr) == cudaSuccess ? bytes : 0;
}

int cub_sum(void *temporary, size_t temporary_bytes, const float *in, float *out, unsigned long long n, void *stream)
{
    return static_cast<int>(sum(temporary, &temporary_bytes, in, out, n, static_cast<cudaStream_t>(stream)));
}

const char *cub_sum_error(int error)
{
    return cudaGetErrorName(static_cast<cudaError_t>(error));
}
