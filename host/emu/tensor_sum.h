/* The sum of products that a tensor core makes for one element of D. PTX leaves order and rounding open
   ("mma: floating point operations may be performed in any order and precision"); programs compare with a
   tolerance. What is here gives the bits of an H200 (driver 13.0, 2026-11-30, tests/conformance/warp.forms):
   all products and C are aligned to the largest exponent among them (of a product: the sum of its factors'
   exponents), cut after 25 binary places, added exactly, and the sum is cut to f32 or rounded to f16.
   UNVERIFIED on other architectures. */
#ifndef CLAB_EMU_TENSOR_SUM_H
#define CLAB_EMU_TENSOR_SUM_H

#include "emu/alu.h"

#define EMU_TENSOR_PLACES 25

/* Exponent of a number other than 0 that f16, bf16, tf32 or f32 holds (all are normal in f64). */
static inline int emu_exponent_f64(double x)
{
    return (int)(emu_f64_bits(x) >> 52 & 0x7ff) - 1023;
}

static inline double emu_power_of_two(int exponent)
{
    return emu_bits_f64((uint64_t)(exponent + 1023) << 52);
}

/* To f32, toward zero, infinite from 2^128 on. */
static inline float emu_cut_f32(double x)
{
    const float nearest = (float)x;
    const double back = nearest, magnitude = back < 0 ? -back : back;
    const double exact = x < 0 ? -x : x;
    if (exact >= 0x1p128)
        return nearest;
    return magnitude > exact ? emu_bits_f32(emu_f32_bits(nearest) - 1) : nearest;
}

/* C + A * B over `count` elements: factors that f16, bf16 or tf32 hold. The sum before it is cut to f32, or
   rounded to nearest for an f16 result. */
static inline double emu_tensor_sum(float c, const double *a, const double *b, unsigned count)
{
    int largest = c != 0 ? emu_exponent_f64((double)c) : -1000;
    double special = 0;
    bool is_special = c - c != 0;
    if (is_special)
        special = (double)c;
    for (unsigned i = 0; i < count; i++) {
        const double product = a[i] * b[i];
        if (product - product != 0) {
            special += product;
            is_special = true;
        } else if (product != 0) {
            const int exponent = emu_exponent_f64(a[i]) + emu_exponent_f64(b[i]);
            largest = exponent > largest ? exponent : largest;
        }
    }
    if (is_special)
        return special;
    if (largest == -1000)
        return 0.0;
    /* In two steps, since the scale may be beyond what one double holds. */
    const int shift = EMU_TENSOR_PLACES - largest;
    const double scale = emu_power_of_two(shift / 2), rest = emu_power_of_two(shift - shift / 2);
    int64_t sum = (int64_t)((double)c * scale * rest);
    for (unsigned i = 0; i < count; i++)
        sum += (int64_t)(a[i] * b[i] * scale * rest);
    return (double)sum / scale / rest;
}

#endif
