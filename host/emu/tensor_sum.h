/* The sum of products that a tensor core makes for one element of D. The order and the rounding inside are
   not specified (PTX ISA 9.0, "mma"); programs compare with a tolerance. */
#ifndef CLAB_EMU_TENSOR_SUM_H
#define CLAB_EMU_TENSOR_SUM_H

#include <stdbool.h>

static inline float emu_tensor_sum(float c, const double *a, const double *b, unsigned k, bool to_f16)
{
    double sum = (double)c;
    (void)to_f16;
    for (unsigned i = 0; i < k; i++)
        sum += a[i] * b[i];
    return (float)sum;
}

#endif
