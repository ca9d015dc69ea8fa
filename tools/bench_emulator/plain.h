/* The kernels of this folder as plain C: what a loop by hand costs on the same processor, compiled with the
   same flags as the emulator's operations of one instruction set. */
#ifndef BENCH_PLAIN_H
#define BENCH_PLAIN_H

#include <stdint.h>

#define PLAIN_TABLE (1u << 22) /* words */

/* out: one word per thread, threads a multiple of 256; the values are those of the kernel, bit for bit. */
typedef void plain_kernel(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns);
plain_kernel plain_alu, plain_barrier, plain_divergent, plain_gather, plain_atomics, plain_shuffles;

/* The sum of n floats, by 16 partial sums. */
float plain_sum(const float *input, uint64_t n);

#endif
