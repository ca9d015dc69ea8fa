/* What flow_program.py's expressions call. On devices some are inline PTX, on the host the same in C: each is
   defined for every input. */
#ifndef HELPERS_H
#define HELPERS_H

#include "runtime.h"

typedef unsigned __int128 u128;
typedef __int128 i128;

#if defined(__NVPTX__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ON_DEVICE 1
#endif
#define NOINLINE __attribute__((noinline))
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TABLE __device__
#else
#define TABLE static
#endif

struct fields {
    uint32_t a : 5;
    int32_t b : 13;
    uint32_t c : 14;
    uint64_t d : 37;
    int64_t e : 20;
};

static inline uint64_t thread(void)
{
    return THREAD;
}

/* Unaligned, in parts: a device has no unaligned accesses. */
static inline uint64_t load16(const uint8_t *from)
{
    return (uint64_t)from[0] | (uint64_t)from[1] << 8;
}
static inline uint64_t load32(const uint8_t *from)
{
    return load16(from) | load16(from + 2) << 16;
}
static inline uint64_t load64(const uint8_t *from)
{
    return load32(from) | load32(from + 4) << 32;
}
static inline void store16(uint8_t *to, uint64_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}
static inline void store32(uint8_t *to, uint64_t value)
{
    store16(to, value);
    store16(to + 2, value >> 16);
}
static inline void store64(uint8_t *to, uint64_t value)
{
    store32(to, value);
    store32(to + 4, value >> 32);
}

static inline uint64_t hash_float(double x)
{
    union {
        double f;
        uint64_t u;
    } bits = {x};
    return x != x ? 0x7FFFFFFFFFFFFFFFul : bits.u;
}

static inline int64_t to_int(double x)
{
    return x > -1e15 && x < 1e15 ? (int64_t)x : 77;
}

#ifdef ON_DEVICE
#define PTX1(name, text, reg, type)            \
    static inline uint64_t name(uint64_t a)    \
    {                                          \
        type d;                                \
        asm(text : "=" reg(d) : reg((type)a)); \
        return (uint64_t)d;                    \
    }
#define PTX2(name, text, reg, type)                          \
    static inline uint64_t name(uint64_t a, uint64_t b)      \
    {                                                        \
        type d;                                              \
        asm(text : "=" reg(d) : reg((type)a), reg((type)b)); \
        return (uint64_t)d;                                  \
    }
#define PTX3(name, text, reg, type)                                        \
    static inline uint64_t name(uint64_t a, uint64_t b, uint64_t c)        \
    {                                                                      \
        type d;                                                            \
        asm(text : "=" reg(d) : reg((type)a), reg((type)b), reg((type)c)); \
        return (uint64_t)d;                                                \
    }
#define PTX4(name, text, reg, type)                                                      \
    static inline uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t e)          \
    {                                                                                    \
        type d;                                                                          \
        asm(text : "=" reg(d) : reg((type)a), reg((type)b), reg((type)c), reg((type)e)); \
        return (uint64_t)d;                                                              \
    }
#define HOST(...)
#else
#define PTX1(name, text, reg, type)         \
    static uint64_t name##_(type a);        \
    static inline uint64_t name(uint64_t a) \
    {                                       \
        return name##_((type)a);            \
    }                                       \
    static uint64_t name##_(type a)
#define PTX2(name, text, reg, type)                     \
    static uint64_t name##_(type a, type b);            \
    static inline uint64_t name(uint64_t a, uint64_t b) \
    {                                                   \
        return name##_((type)a, (type)b);               \
    }                                                   \
    static uint64_t name##_(type a, type b)
#define PTX3(name, text, reg, type)                                 \
    static uint64_t name##_(type a, type b, type c);                \
    static inline uint64_t name(uint64_t a, uint64_t b, uint64_t c) \
    {                                                               \
        return name##_((type)a, (type)b, (type)c);                  \
    }                                                               \
    static uint64_t name##_(type a, type b, type c)
#define PTX4(name, text, reg, type)                                             \
    static uint64_t name##_(type a, type b, type c, type e);                    \
    static inline uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t e) \
    {                                                                           \
        return name##_((type)a, (type)b, (type)c, (type)e);                     \
    }                                                                           \
    static uint64_t name##_(type a, type b, type c, type e)
#define HOST(...)   \
    {               \
        __VA_ARGS__ \
    }
#endif

PTX1(brev32, "brev.b32 %0, %1;", "r", uint32_t)
HOST(uint32_t d = 0; for (int i = 0; i < 32; i++) d |= (a >> i & 1) << (31 - i); return d;)
PTX1(brev64, "brev.b64 %0, %1;", "l", uint64_t)
HOST(uint64_t d = 0; for (int i = 0; i < 64; i++) d |= (a >> i & 1) << (63 - i); return d;)
PTX1(clz32, "clz.b32 %0, %1;", "r", uint32_t)
HOST(return a ? (uint64_t)__builtin_clz(a) : 32;)
PTX1(popc32, "popc.b32 %0, %1;", "r", uint32_t)
HOST(return (uint64_t)__builtin_popcount(a);)
PTX1(clz64, "{ .reg .b32 t; clz.b64 t, %1; cvt.u64.u32 %0, t; }", "l", uint64_t)
HOST(return a ? (uint64_t)__builtin_clzl(a) : 64;)
PTX1(popc64, "{ .reg .b32 t; popc.b64 t, %1; cvt.u64.u32 %0, t; }", "l", uint64_t)
HOST(return (uint64_t)__builtin_popcountl(a);)
PTX1(ffs64,
     "{ .reg .b32 t; .reg .b64 r; .reg .pred p; brev.b64 r, %1; bfind.shiftamt.u64 t, r; add.u32 t, t, 1; "
     "cvt.u64.u32 %0, t; }",
     "l", uint64_t)
HOST(return (uint64_t)__builtin_ffsl((int64_t)a);)
PTX2(mulhi32, "mul.hi.u32 %0, %1, %2;", "r", uint32_t)
HOST(return (uint64_t)a * b >> 32;)
PTX2(mulhi64, "mul.hi.u64 %0, %1, %2;", "l", uint64_t)
HOST(return (uint64_t)((u128)a * b >> 64);)
PTX2(smulhi32, "mul.hi.s32 %0, %1, %2;", "r", uint32_t)
HOST(return (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32);)
PTX2(smulhi64, "mul.hi.s64 %0, %1, %2;", "l", uint64_t)
HOST(return (uint64_t)((i128)(int64_t)a * (int64_t)b >> 64);)
PTX3(perm, "prmt.b32 %0, %1, %2, %3;", "r", uint32_t)
HOST(uint64_t both = (uint64_t)b << 32 | a; uint32_t d = 0; for (int i = 0; i < 4; i++) {
    uint32_t s = c >> 4 * i & 15;
    uint32_t byte = both >> 8 * (s & 7) & 255;
    d |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
} return d;)
PTX3(fshl, "shf.l.wrap.b32 %0, %1, %2, %3;", "r", uint32_t)
HOST(uint64_t both = (uint64_t)b << 32 | a; return (uint32_t)(both << (c & 31) >> 32);)
PTX3(fshr, "shf.r.clamp.b32 %0, %1, %2, %3;", "r", uint32_t)
HOST(uint64_t both = (uint64_t)b << 32 | a; uint32_t by = c > 32 ? 32 : c; return (uint32_t)(both >> by);)
PTX3(sad, "sad.s32 %0, %1, %2, %3;", "r", uint32_t)
HOST(return (uint32_t)(c + ((int32_t)a < (int32_t)b ? b - a : a - b));)
PTX3(dp4a, "dp4a.u32.s32 %0, %1, %2, %3;", "r", uint32_t)
HOST(for (int i = 0; i < 4; i++) c += (uint32_t)((int32_t)(a >> 8 * i & 255) * (int8_t)(b >> 8 * i));
     return c;)
PTX3(bfe_u, "bfe.u32 %0, %1, %2, %3;", "r", uint32_t)
HOST(uint32_t at = b & 255; uint32_t n = c & 255; if (n == 0 || at > 31) return 0; uint32_t d = a >> at;
     return n < 32 ? d & ((1u << n) - 1) : d;)
PTX3(bfe_s, "bfe.s64 %0, %1, 7, 9; add.u64 %0, %0, %2; xor.b64 %0, %0, %3;", "l", uint64_t)
HOST(return ((uint64_t)((int64_t)(a << 48) >> 55) + b) ^ c;)
PTX2(shl_clamp, "shl.b32 %0, %1, %2;", "r", uint32_t)
HOST(return b > 31 ? 0 : (uint32_t)(a << b);)
PTX2(shr_clamp, "shr.u32 %0, %1, %2;", "r", uint32_t)
HOST(return b > 31 ? 0 : a >> b;)
PTX2(sshr_clamp, "shr.s32 %0, %1, %2;", "r", uint32_t)
HOST(return (uint32_t)((int32_t)a >> (b > 31 ? 31 : b));)
PTX2(add2, "{ .reg .pred p; .reg .b32 z; mov.b32 z, 0; vadd2.u32.u32.u32.sat %0, %1, %2, z; }", "r", uint32_t)
HOST(uint32_t d = 0; for (int i = 0; i < 2; i++) {
    uint32_t s = (a >> 16 * i & 65535) + (b >> 16 * i & 65535);
    d |= (s > 65535 ? 65535 : s) << 16 * i;
} return d;)
PTX2(max4s, "{ .reg .b32 z; mov.b32 z, 0; vmax4.s32.s32.s32 %0, %1, %2, z; }", "r", uint32_t)
HOST(uint32_t d = 0; for (int i = 0; i < 4; i++) {
    int8_t x = (int8_t)(a >> 8 * i), y = (int8_t)(b >> 8 * i);
    d |= (uint32_t)(uint8_t)(x > y ? x : y) << 8 * i;
} return d;)
PTX2(avg4, "{ .reg .b32 z; mov.b32 z, 0; vavrg4.u32.u32.u32 %0, %1, %2, z; }", "r", uint32_t)
HOST(uint32_t d = 0;
     for (int i = 0; i < 4; i++) d |= (((a >> 8 * i & 255) + (b >> 8 * i & 255) + 1) >> 1) << 8 * i;
     return d;)
PTX2(absdiff4, "{ .reg .b32 z; mov.b32 z, 0; vabsdiff4.u32.u32.u32.add %0, %1, %2, z; }", "r", uint32_t)
HOST(uint32_t d = 0; for (int i = 0; i < 4; i++) {
    int x = a >> 8 * i & 255;
    int y = b >> 8 * i & 255;
    d += (uint32_t)(x > y ? x - y : y - x);
} return d;)
PTX2(sub_sat, "sub.sat.s32 %0, %1, %2;", "r", uint32_t)
HOST(int64_t d = (int64_t)(int32_t)a - (int32_t)b; return (uint32_t)(d > INT32_MAX   ? INT32_MAX
                                                                     : d < INT32_MIN ? INT32_MIN
                                                                                     : d);)
PTX3(lop, "lop3.b32 %0, %1, %2, %3, 0xCA;", "r", uint32_t)
HOST(return (a & b) | (~a & c);)
PTX4(bfi, "bfi.b32 %0, %1, %2, %3, %4;", "r", uint32_t)
HOST(uint32_t at = c & 255; uint32_t n = e & 255; if (n == 0 || at > 31) return b;
     if (at + n > 32) n = 32 - at; uint32_t m = (n < 32 ? (1u << n) - 1 : ~0u) << at;
     return (b & ~m) | (a << at & m);)
#endif
