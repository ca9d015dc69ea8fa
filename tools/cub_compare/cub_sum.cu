/* CUB's side of the comparison: DeviceReduce::Sum with the narrowest offset type that holds n, as its callers get it. */
#include "cub_sum.h"

#include <cstdint>

#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

static cudaError_t sum(void *temporary, size_t *bytes, const float *in, float *out, unsigned long long n,
                       cudaStream_t stream)
{
    if (n <= UINT32_MAX)
        return cub::DeviceReduce::Sum(temporary, *bytes, in, out, static_cast<std::uint32_t>(n), stream);
    return cub::DeviceReduce::Sum(temporary, *bytes, in, out, static_cast<std::uint64_t>(n), stream);
}

int cub_sum_version(void)
{
    return CUB_VERSION;
}

size_t cub_sum_temporary_bytes(unsigned long long n)
{
    size_t bytes = 0;
    const float *in = nullptr;
    float *out = nullptr;
    return sum(nullptr, &bytes, in, out, n, nullptr) == cudaSuccess ? bytes : 0;
}

clab_status cub_sum_submit(void *context, struct clab_error *error)
{
    const cub_sum *cub = static_cast<const cub_sum *>(context);
    size_t bytes = cub->temporary_bytes;
    const cudaError_t result =
        sum(cub->temporary, &bytes, cub->in, cub->out, cub->n, static_cast<cudaStream_t>(cub->stream));
    if (result == cudaSuccess)
        return CLAB_OK;
    return clab_error_set(error, CLAB_DRIVER, "DeviceReduce::Sum failed: %s", cudaGetErrorName(result));
}
