/* CUB's DeviceReduce::Sum over floats as a row that lab/measure.h can time. The two sides share no CUDA
   header: clusterlab spells the driver's names its own way (driver/cuda_names.h). */
#ifndef CLAB_TOOLS_CUB_SUM_H
#define CLAB_TOOLS_CUB_SUM_H

#include "lab/measure.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cub_sum {
    void *temporary; /* device memory, cub_sum_temporary_bytes of it */
    size_t temporary_bytes;
    const float *in; /* n floats on the device */
    float *out;
    unsigned long long n;
    void *stream; /* a CUstream of the current context */
};

/* Version as CUB_VERSION counts: 300001 is 3.0.1. */
int cub_sum_version(void);
/* Bytes of temporary storage for n floats, 0 on failure. */
size_t cub_sum_temporary_bytes(unsigned long long n);
/* Queues *out = sum of in[0..n): a row's `submit`, with a struct cub_sum as context. */
clab_status cub_sum_submit(void *context, struct clab_error *error);

#ifdef __cplusplus
}
#endif

#endif
