/* Buffer contents. A fill is a pure function of seed and index (SplitMix64's finaliser over a Weyl sequence:
   Steele, Lea, Flood, OOPSLA 2014), so that a buffer of any size is made, summed and checked in chunks. */
#include "lab/fill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} elements[CLAB_ELEMENT_COUNT] = {
    [CLAB_U8] = {"u8", 1},   [CLAB_S8] = {"s8", 1},     [CLAB_U16] = {"u16", 2}, [CLAB_S16] = {"s16", 2},
    [CLAB_U32] = {"u32", 4}, [CLAB_S32] = {"s32", 4},   [CLAB_U64] = {"u64", 8}, [CLAB_S64] = {"s64", 8},
    [CLAB_F16] = {"f16", 2}, [CLAB_BF16] = {"bf16", 2}, [CLAB_F32] = {"f32", 4}, [CLAB_F64] = {"f64", 8},
};

enum clab_element clab_element_get(const char *name)
{
    for (int i = 0; i < CLAB_ELEMENT_COUNT; i++)
        if (strcmp(elements[i].name, name) == 0)
            return (enum clab_element)i;
    return CLAB_ELEMENT_COUNT;
}

const char *clab_element_name(enum clab_element element)
{
    return elements[element].name;
}

size_t clab_element_bytes(enum clab_element element)
{
    return elements[element].bytes;
}

static const char *const kind_names[] = {"zero", "ones", "iota", "value", "bits", "random", "values"};

clab_status clab_fill_from_json(const json_t *object, struct clab_fill *out_fill, struct clab_error *error)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    memset(out_fill, 0, sizeof *out_fill);
    out_fill->seed = (uint64_t)json_integer_value(json_object_get(object, "seed"));
    out_fill->value = clab_json_number(json_object_get(object, "value"));
    out_fill->values = json_object_get(object, "values");
    for (size_t i = 0; kind != NULL && i < sizeof kind_names / sizeof *kind_names; i++)
        if (strcmp(kind, kind_names[i]) == 0) {
            out_fill->kind = (enum clab_fill_kind)i;
            if (out_fill->kind == CLAB_FILL_VALUES && json_array_size(out_fill->values) == 0)
                return clab_error_set(error, CLAB_EXPERIMENT, "the fill 'values' has no values");
            return CLAB_OK;
        }
    return clab_error_set(error, CLAB_EXPERIMENT, "unknown fill '%s'", kind != NULL ? kind : "(none)");
}

static bool is_whole(long double value)
{
    return value == floorl(value) && fabsl(value) <= 0x1p64L;
}

const char *clab_fill_text(const struct clab_fill *fill, char *text, size_t bytes)
{
    if (fill->kind == CLAB_FILL_BITS || fill->kind == CLAB_FILL_RANDOM)
        snprintf(text, bytes, "%s(%llu)", kind_names[fill->kind], (unsigned long long)fill->seed);
    else if (fill->kind == CLAB_FILL_VALUE)
        snprintf(text, bytes, is_whole(fill->value) ? "%.0Lf" : "%.9Lg", fill->value);
    else
        snprintf(text, bytes, "%s", kind_names[fill->kind]);
    return text;
}

static uint64_t mix(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * CLAB_FILL_SEED_FACTOR + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Round a double to a 16-bit float with `exponent` exponent bits and `mantissa` mantissa bits, nearest even.
   Goes through the exact scaling functions of libm, so that double rounding cannot happen. */
static uint16_t to_small_float(double value, int exponent, int mantissa)
{
    const uint16_t sign = signbit(value) ? UINT16_C(0x8000) : 0;
    const int bias = (1 << (exponent - 1)) - 1;
    const uint16_t infinity = (uint16_t)(((1 << exponent) - 1) << mantissa);
    double magnitude = fabs(value);
    if (isnan(value))
        return (uint16_t)(sign | infinity | (1u << (mantissa - 1)));
    if (magnitude == 0.0)
        return sign;
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    int e;
    (void)frexp(magnitude, &e);
    e -= 1; /* magnitude = 1.x * 2^e */
    if (e < 1 - bias)
        e = 1 - bias; /* subnormal: fixed quantum */
    double quanta = nearbyint(ldexp(magnitude, mantissa - e));
    double limit = ldexp(1.0, mantissa + 1);
    if (quanta >= limit) {
        quanta /= 2;
        e += 1;
    }
    if (e > bias)
        return (uint16_t)(sign | infinity);
    const uint16_t units = (uint16_t)quanta;
    if (units < (1u << mantissa))
        return (uint16_t)(sign | units);
    return (uint16_t)(sign | ((unsigned)(e + bias) << mantissa) | (units & ((1u << mantissa) - 1)));
}

static double from_small_float(uint16_t bits, int exponent, int mantissa)
{
    const int bias = (1 << (exponent - 1)) - 1;
    const int e = (bits >> mantissa) & ((1 << exponent) - 1);
    const int m = bits & ((1 << mantissa) - 1);
    double value;
    if (e == (1 << exponent) - 1)
        value = m != 0 ? (double)NAN : (double)INFINITY;
    else if (e == 0)
        value = ldexp(m, 1 - bias - mantissa);
    else
        value = ldexp(m + (1 << mantissa), e - bias - mantissa);
    return (bits & 0x8000) != 0 ? -value : value;
}

long double clab_element_load(enum clab_element element, const void *data, size_t index)
{
    switch (element) {
    case CLAB_U8:
        return ((const uint8_t *)data)[index];
    case CLAB_S8:
        return ((const int8_t *)data)[index];
    case CLAB_U16:
        return ((const uint16_t *)data)[index];
    case CLAB_S16:
        return ((const int16_t *)data)[index];
    case CLAB_U32:
        return ((const uint32_t *)data)[index];
    case CLAB_S32:
        return ((const int32_t *)data)[index];
    case CLAB_U64:
        return (long double)((const uint64_t *)data)[index];
    case CLAB_S64:
        return (long double)((const int64_t *)data)[index];
    case CLAB_F16:
        return from_small_float(((const uint16_t *)data)[index], 5, 10);
    case CLAB_BF16:
        return bits_float((uint32_t)((const uint16_t *)data)[index] << 16);
    case CLAB_F32:
        return ((const float *)data)[index];
    case CLAB_F64:
        return ((const double *)data)[index];
    case CLAB_ELEMENT_COUNT:
        break;
    }
    return 0;
}

/* Integer part of a number modulo 2^64. */
static uint64_t wrap(long double value)
{
    if (value > -0x1p63L &&
        value < 0x1p63L) /* what nearly every fill has: fmodl takes longer than the rest */
        return (uint64_t)(int64_t)value;
    if (!isfinite(value))
        return 0;
    long double two64 = ldexpl(1.0L, 64);
    long double rest = fmodl(truncl(value), two64);
    if (rest < 0)
        rest += two64;
    return (uint64_t)rest;
}

void clab_element_store(enum clab_element element, long double value, void *data, size_t index)
{
    switch (element) {
    case CLAB_U8:
        ((uint8_t *)data)[index] = (uint8_t)wrap(value);
        break;
    case CLAB_S8:
        ((int8_t *)data)[index] = (int8_t)wrap(value);
        break;
    case CLAB_U16:
        ((uint16_t *)data)[index] = (uint16_t)wrap(value);
        break;
    case CLAB_S16:
        ((int16_t *)data)[index] = (int16_t)wrap(value);
        break;
    case CLAB_U32:
        ((uint32_t *)data)[index] = (uint32_t)wrap(value);
        break;
    case CLAB_S32:
        ((int32_t *)data)[index] = (int32_t)wrap(value);
        break;
    case CLAB_U64:
        ((uint64_t *)data)[index] = wrap(value);
        break;
    case CLAB_S64:
        ((int64_t *)data)[index] = (int64_t)wrap(value);
        break;
    case CLAB_F16:
        ((uint16_t *)data)[index] = to_small_float((double)value, 5, 10);
        break;
    case CLAB_BF16:
        ((uint16_t *)data)[index] = to_small_float((double)value, 8, 7);
        break;
    case CLAB_F32:
        ((float *)data)[index] = (float)value;
        break;
    case CLAB_F64:
        ((double *)data)[index] = (double)value;
        break;
    case CLAB_ELEMENT_COUNT:
        break;
    }
}

long double clab_json_number(const json_t *value)
{
    const char *text = json_string_value(value);
    if (text != NULL)
        return strcmp(text, "nan") == 0    ? (long double)NAN
               : strcmp(text, "inf") == 0  ? (long double)INFINITY
               : strcmp(text, "-inf") == 0 ? -(long double)INFINITY
                                           : 0;
    return json_is_integer(value) ? (long double)json_integer_value(value)
                                  : (long double)json_number_value(value);
}

/* The number at an index, for the kinds that are numbers. */
static long double number_at(const struct clab_fill *fill, uint64_t index)
{
    switch (fill->kind) {
    case CLAB_FILL_ONES:
        return 1;
    case CLAB_FILL_IOTA:
        return (long double)index;
    case CLAB_FILL_VALUE:
        return fill->value;
    case CLAB_FILL_BITS:
        return (long double)(mix(fill->seed, index) >> 63);
    case CLAB_FILL_VALUES:
        return clab_json_number(json_array_get(fill->values, index));
    case CLAB_FILL_ZERO:
    case CLAB_FILL_RANDOM:
        break;
    }
    return 0;
}

/* 32-bit elements, the common case, without a long double for each; `one` is 1 as an element. Made for
   several instruction sets: the two that mix multiply 64-bit numbers, and buffers have millions of elements.
 */
static inline __attribute__((always_inline)) void words_any(const struct clab_fill *fill, bool is_float,
                                                            uint32_t one, uint64_t first, size_t count,
                                                            uint32_t *restrict out)
{
    const uint64_t seed = fill->seed;
    switch (fill->kind) {
    case CLAB_FILL_BITS:
        for (size_t i = 0; i < count; i++)
            out[i] = (uint32_t)(mix(seed, first + i) >> 63) * one;
        break;
    case CLAB_FILL_IOTA:
        for (size_t i = 0; i < count; i++)
            out[i] = is_float ? float_bits((float)(first + i)) : (uint32_t)(first + i);
        break;
    case CLAB_FILL_RANDOM:
        for (size_t i = 0; i < count; i++) {
            const uint64_t bits = mix(seed, first + i);
            out[i] = is_float ? float_bits((float)(bits >> 40) / (1 << 24)) : (uint32_t)bits;
        }
        break;
    default:
        break;
    }
}

static void words_plain(const struct clab_fill *fill, bool is_float, uint32_t one, uint64_t first,
                        size_t count, uint32_t *restrict out)
{
    words_any(fill, is_float, one, first, count, out);
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) void words_avx2(const struct clab_fill *fill, bool is_float,
                                                       uint32_t one, uint64_t first, size_t count,
                                                       uint32_t *restrict out)
{
    words_any(fill, is_float, one, first, count, out);
}

static __attribute__((target("avx512f,avx512dq,avx512vl"))) void words_avx512(const struct clab_fill *fill,
                                                                              bool is_float, uint32_t one,
                                                                              uint64_t first, size_t count,
                                                                              uint32_t *restrict out)
{
    words_any(fill, is_float, one, first, count, out);
}
#endif

static void store_words(const struct clab_fill *fill, enum clab_element element, uint64_t first, size_t count,
                        uint32_t *out)
{
    uint32_t word = 0;
    if (fill->kind == CLAB_FILL_BITS || fill->kind == CLAB_FILL_IOTA || fill->kind == CLAB_FILL_RANDOM) {
        clab_element_store(element, 1, &word, 0);
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            words_avx512(fill, element == CLAB_F32, word, first, count, out);
            return;
        }
        if (__builtin_cpu_supports("avx2")) {
            words_avx2(fill, element == CLAB_F32, word, first, count, out);
            return;
        }
#endif
        words_plain(fill, element == CLAB_F32, word, first, count, out);
        return;
    }
    clab_element_store(element, number_at(fill, 0), &word, 0);
    for (size_t i = 0; i < count; i++)
        out[i] = word;
}

void clab_fill_store(const struct clab_fill *fill, enum clab_element element, uint64_t first, size_t count,
                     void *out)
{
    if (fill->kind == CLAB_FILL_ZERO) {
        memset(out, 0, count * elements[element].bytes);
        return;
    }
    if (elements[element].bytes == sizeof(uint32_t) && fill->kind != CLAB_FILL_VALUES) {
        store_words(fill, element, first, count, out);
        return;
    }
    const bool is_float = element >= CLAB_F16;
    for (size_t i = 0; i < count; i++) {
        if (fill->kind != CLAB_FILL_RANDOM) {
            clab_element_store(element, number_at(fill, first + i), out, i);
            continue;
        }
        uint64_t bits = mix(fill->seed, first + i);
        if (is_float)
            clab_element_store(element, (long double)(bits >> 40) / (1 << 24), out, i);
        else
            memcpy((char *)out + i * elements[element].bytes, &bits, elements[element].bytes);
    }
}

long double clab_elements_sum(enum clab_element element, const void *data, size_t count)
{
    if (element == CLAB_F32) { /* blocks in double: exact for integers below 2^53 */
        const float *f = data;
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += (double)f[i];
        return sum;
    }
    long double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += clab_element_load(element, data, i);
    return sum;
}

long double clab_fill_sum(const struct clab_fill *fill, enum clab_element element, uint64_t count)
{
    if (fill->kind == CLAB_FILL_ZERO)
        return 0;
    if (fill->kind == CLAB_FILL_ONES)
        return (long double)count;
    if (fill->kind == CLAB_FILL_BITS) {
        uint64_t ones = 0;
        for (uint64_t i = 0; i < count; i++)
            ones += mix(fill->seed, i) >> 63;
        return (long double)ones;
    }
    long double sum = 0;
    unsigned char chunk[4096];
    const size_t most = sizeof chunk / elements[element].bytes;
    for (uint64_t first = 0; first < count;) {
        const size_t n = count - first < most ? (size_t)(count - first) : most;
        clab_fill_store(fill, element, first, n, chunk);
        sum += clab_elements_sum(element, chunk, n);
        first += n;
    }
    return sum;
}

bool clab_close(long double got, long double wanted, double tolerance_abs, double tolerance_rel)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return wanted == got;
    return fabsl(got - wanted) <= (long double)tolerance_abs + (long double)tolerance_rel * fabsl(wanted);
}
