/* CUB's DeviceReduce::Sum over floats behind plain functions, so that no CUDA C++ header meets clusterlab's.
 */
#ifndef CLAB_TOOLS_CUB_SUM_H
#define CLAB_TOOLS_CUB_SUM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version as CUB_VERSION counts: 300001 is 3.0.1. */
int cub_sum_version(void);
/* Bytes of temporary storage for n floats, 0 on failure. */
size_t cub_sum_temporary_bytes(unsigned long long n);
/* Queues *out = sum of in[0..n) on a stream of the current context (a CUstream). cudaError_t; its name in
 * cub_sum_error. */
int cub_sum(void *temporary, size_t temporary_bytes, const float *in, float *out, unsigned long long n,
            void *stream);
const char *cub_sum_error(int error);

#ifdef __cplusplus
}
#endif

#endif
