/* What a generated program stands on, the same for the host's compiler, NVRTC or nvcc, and clang's nvptx
   target: integer types, csmith's safe arithmetic (from csmith's own safe_math.h), and a checksum instead of
   csmith's CRC. No standard header is needed on a device. A program defines `run(out, vary)`; two words of
   `out` a thread. */
#ifndef RUNTIME_H
#define RUNTIME_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ENTRY  extern "C" __global__ void
#define THREAD (threadIdx.x)
#elif defined(__NVPTX__)
#define ENTRY  extern "C" void
#define THREAD ((unsigned)__nvvm_read_ptx_sreg_tid_x())
#else
#define ENTRY  extern "C" void
static unsigned host_thread;
#define THREAD (host_thread)
#endif

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned uint32_t;
typedef unsigned long uint64_t;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define copy_bytes memcpy
#else
#define copy_bytes __builtin_memcpy
#endif

#define INT8_MIN   (-128)
#define INT8_MAX   (127)
#define UINT8_MAX  (255)
#define INT16_MIN  (-32767 - 1)
#define INT16_MAX  (32767)
#define UINT16_MAX (65535)
#define INT_MAX    (2147483647)
#define INT32_MIN  (-2147483647 - 1)
#define INT32_MAX  (2147483647)
#define UINT32_MAX (4294967295U)
#define INT64_MIN  (-9223372036854775807L - 1)
#define INT64_MAX  (9223372036854775807L)
#define UINT64_MAX (18446744073709551615UL)
#define CHAR_BIT   8
#define FLT_MAX    3.40282346638528859812e+38F
#define DBL_MAX    1.79769313486231570814e+308

#ifdef SAFE_MATH
#define STATIC           static
#define UNDEFINED(value) (value)
#define LOG_INDEX
#define LOG_EXEC
#define FUNC_NAME(x)  safe_##x
#define fabs(x)       ((x) < 0 ? -(x) : (x))
#define fabsf(x)      ((x) < 0 ? -(x) : (x))
#define ldexp(x, by)  times_power_of_two((x), (by))
#define ldexpf(x, by) ((float)times_power_of_two((x), (by)))
static inline double times_power_of_two(double x, int by)
{
    for (; by > 0; by--) {
        x *= 2;
    }
    for (; by < 0; by++) {
        x /= 2;
    }
    return x;
}
#include "safe_math.h"
#undef FUNC_NAME
#undef fabs
#undef fabsf
#undef ldexp
#undef ldexpf
#endif
#define INT_BIT             32
#define _CSMITH_BITFIELD(x) (((x) > INT_BIT) ? ((x) % INT_BIT) : (x))

struct checksum {
    uint64_t state;
};

static inline void mix(struct checksum *sum, uint64_t value)
{
    sum->state = (sum->state ^ value) * 0x9E3779B97F4A7C15UL;
    sum->state ^= sum->state >> 29;
}

/* A NaN is one value: its sign and payload are each machine's own. */
static inline void mix_float(struct checksum *sum, float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {value};
    mix(sum, value != value ? 0x7FFFFFFFU : bits.u);
}

static inline void mix_double(struct checksum *sum, double value)
{
    union {
        double f;
        uint64_t u;
    } bits = {value};
    mix(sum, value != value ? 0x7FFFFFFFFFFFFFFFUL : bits.u);
}
#endif
