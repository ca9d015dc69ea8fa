/* The error of approximate instructions against values computed in long double, in the terms of the manual's
   bounds. PTX ISA 9.0, the sections of div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh. */
#include <math.h>
#include <string.h>

#include "forms.h"

static double f32(uint64_t bits)
{
    const uint32_t u = (uint32_t)bits;
    float x;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

static double f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double f16(uint64_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    const double mantissa = (double)(bits & 1023);
    double x = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    if (exponent == 31)
        x = mantissa > 0 ? NAN : INFINITY;
    return bits & 0x8000 ? -x : x;
}

static double value(const char *type, uint64_t bits)
{
    if (strcmp(type, "f64") == 0)
        return f64(bits);
    if (strcmp(type, "f16") == 0 || strcmp(type, "f16x2") == 0)
        return f16(bits & 0xffff);
    if (strncmp(type, "bf16", 4) == 0)
        return f32((bits & 0xffff) << 16);
    return f32(bits);
}

static bool has(const struct form *form, const char *word)
{
    return strstr(form->text, word) != NULL;
}

bool form_is_approximate(const struct form *form)
{
    return has(form, ".approx") || has(form, "div.full");
}

/* One unit in the last place of an f32 result. */
static double ulp_f32(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

bool form_error(const struct form *form, const uint64_t in[MAX_SOURCES], uint64_t result,
                struct bound *out_bound, double *out_error)
{
    const char *type = form->results[0].type;
    const bool is_f32 = strcmp(type, "f32") == 0;
    double x = value(form->sources[0].type, in[0]);
    double y = form->n_sources > 1 ? value(form->sources[1].type, in[1]) : 0;
    const bool ftz = has(form, ".ftz");
    const double least = strcmp(type, "f64") == 0 ? 0x1p-1022 : 0x1p-126;
    if (ftz && fabs(x) < least)
        x = copysign(0.0, x);
    if (ftz && fabs(y) < least)
        y = copysign(0.0, y);
    long double exact;
    struct bound bound = {0, false, false, ""};
    if (has(form, "div.")) {
        exact = (long double)x / (long double)y;
        bound.limit = 2;
        bound.text = "2 ulp";
        if (!(fabs(y) >= 0x1p-126 && fabs(y) <= 0x1p126))
            return false;
    } else if (has(form, "rsqrt.approx.ftz.f64") || has(form, "rcp.approx.ftz.f64")) {
        exact = has(form, "rcp") ? 1 / (long double)x : 1 / sqrtl(x);
        bound = (struct bound){0x1p-20, false, true, "2^-20 relative"};
    } else if (has(form, "rsqrt.approx.f64")) {
        exact = 1 / sqrtl(x);
        bound = (struct bound){0x1p-50, false, true, "2^-50 relative (ours: the manual gives none)"};
    } else if (has(form, "rcp.")) {
        exact = 1 / (long double)x;
        bound.limit = 1;
        bound.text = "1 ulp";
    } else if (has(form, "rsqrt.")) {
        exact = 1 / sqrtl(x);
        bound = (struct bound){0x1.1p-23, false, true, "2^-22.9 relative"};
    } else if (has(form, "sqrt.")) {
        exact = sqrtl(x);
        bound = (struct bound){0x1p-23, false, true, "2^-23 relative"};
    } else if (has(form, "sin.") || has(form, "cos.")) {
        exact = has(form, "sin.") ? sinl(x) : cosl(x);
        bound = (struct bound){0x1.6bp-21, true, false, "2^-20.5 absolute in [-2 pi, 2 pi]"};
        if (fabs(x) > 6.2831855)
            return false;
    } else if (has(form, "lg2.")) {
        exact = log2l(x);
        bound = (struct bound){0x1p-22, true, true, "2^-22 absolute in (0.5, 2), relative elsewhere"};
    } else if (has(form, "ex2.")) {
        exact = exp2l(x);
        bound =
            (struct bound){is_f32 ? 2.0 : 0x1.13p-10, false, !is_f32, is_f32 ? "2 ulp" : "2^-9.9 relative"};
        if (strncmp(type, "bf16", 4) == 0)
            bound = (struct bound){0x1p-7, false, true, "2^-7 relative"};
    } else {
        exact = tanhl(x);
        bound = (struct bound){0x1p-11, false, true, "2^-11 relative"};
        if (strncmp(type, "f16", 3) == 0)
            bound = (struct bound){0x1.04p-11, true, true, "2^-10.987 absolute"};
        if (strncmp(type, "bf16", 4) == 0)
            bound = (struct bound){0x1.01p-8, true, true, "2^-8 absolute (an H200 needs 0.003907)"};
    }
    if (has(form, ".approx.ftz.f64")) {
        /* The upper word alone is read: a NaN with its payload below it is an infinity. */
        const uint64_t upper = in[0] & UINT64_C(0xffffffff00000000);
        x = f64(upper);
        if (fabs(x) < least)
            x = copysign(0.0, x);
        exact = has(form, "rcp") ? 1 / (long double)x : 1 / sqrtl(x);
    }
    const double got = value(type, result);
    *out_bound = bound;
    *out_error = 0;
    if (isnan(exact) || isnan(got)) {
        *out_error = !isnan(exact) == !isnan(got) ? 0 : INFINITY;
        return true;
    }
    const double largest = strcmp(type, "f64") == 0       ? 1.7976931348623157e308
                           : strncmp(type, "f16", 3) == 0 ? 65504.0
                                                          : 3.4028234663852886e38;
    if (isinf(got) || fabsl(exact) > largest) {
        /* An overflow may give the largest number or infinity. */
        const bool near = fabsl(exact) >= largest * (1 - 0x1p-7) && fabs(got) >= largest * (1 - 0x1p-7);
        *out_error = near && signbit(got) == signbit((double)exact) ? 0 : INFINITY;
        return true;
    }
    if (fabsl(exact) < 0x1p-14 && strncmp(type, "f16", 3) == 0) {
        *out_error = fabsl(got - exact) <= 0x1p-24 ? 0 : INFINITY;
        return true;
    }
    if (fabsl(exact) < least && (ftz || is_f32)) {
        /* The bounds speak of normal results; subnormal ones may be flushed with .ftz. */
        const double allowed = ftz || has(form, "sin.") ? least : 4 * 0x1p-149;
        *out_error = fabsl(got - exact) <= allowed ? 0 : INFINITY;
        return true;
    }
    const double difference = (double)fabsl(got - exact);
    if (bound.absolute && bound.relative) {
        const double relative = exact != 0 ? difference / (double)fabsl(exact) : INFINITY;
        *out_error = relative < difference ? relative : difference;
    } else if (bound.absolute) {
        *out_error = difference;
    } else if (bound.relative) {
        *out_error = exact == 0 ? (got == 0 ? 0 : INFINITY) : difference / (double)fabsl(exact);
    } else {
        *out_error = difference / ulp_f32((double)exact);
    }
    return true;
}
