/* The texts, and the look into a log. Where libcu++ is there, types and limits are its own, so that a source
   may name both; without it they are the same by hand (int64_t is long long, as libcu++ has it under NVRTC).
   Leaves out what a device has no use for (streams, strings, containers that allocate, threads): a source
   that needs them is no kernel for NVRTC. */
#include "compile/host_headers.h"

#include <string.h>

#define ONCE "#pragma once\n"
#define LIBCUXX_OR(name, own) \
    "#if __has_include(<cuda/std/" name ">)\n#include <cuda/std/" name ">\n#else\n" own "#endif\n"
/* std::NAME is cuda::std::NAME. */
#define FROM_LIBCUXX(name) \
    ONCE "#include <cuda/std/" name ">\nnamespace std { using namespace ::cuda::std; }\n"
#define INTO_STD(names) "namespace std {\n" names "}\n"

#define STDINT                                                                                               \
    ONCE LIBCUXX_OR(                                                                                         \
        "cstdint",                                                                                           \
        "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long long "      \
        "int64_t;\n"                                                                                         \
        "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n" \
        "typedef unsigned long long uint64_t;\ntypedef int64_t intptr_t;\ntypedef uint64_t uintptr_t;\n"     \
        "typedef int64_t intmax_t;\ntypedef uint64_t uintmax_t;\n"                                           \
        "#define INT8_MAX 127\n#define INT8_MIN (-128)\n#define UINT8_MAX 255\n#define INT16_MAX 32767\n"    \
        "#define INT16_MIN (-32767-1)\n#define UINT16_MAX 65535\n#define INT32_MAX 2147483647\n"             \
        "#define INT32_MIN (-2147483647-1)\n#define UINT32_MAX 4294967295u\n"                                \
        "#define INT64_MAX 9223372036854775807ll\n#define INT64_MIN (-9223372036854775807ll-1)\n"            \
        "#define UINT64_MAX 18446744073709551615ull\n#define SIZE_MAX UINT64_MAX\n"                          \
        "#define UINTPTR_MAX UINT64_MAX\n#define INT32_C(c) c\n#define INT64_C(c) c##ll\n#define "           \
        "UINT32_C(c) c##u\n"                                                                                 \
        "#define UINT64_C(c) c##ull\n")
#define CSTDINT                                                                                           \
    ONCE "#include <stdint.h>\n" INTO_STD("using ::int8_t; using ::int16_t; using ::int32_t; using "      \
                                          "::int64_t;\nusing ::uint8_t; using ::uint16_t; "               \
                                          "using ::uint32_t; using ::uint64_t;\nusing ::intptr_t; using " \
                                          "::uintptr_t; using ::intmax_t; using ::uintmax_t;\n")

#define LIMITS                                                                                         \
    ONCE LIBCUXX_OR(                                                                                   \
        "climits",                                                                                     \
        "#define CHAR_BIT 8\n#define SCHAR_MAX 127\n#define SCHAR_MIN (-128)\n#define UCHAR_MAX 255\n" \
        "#define CHAR_MAX 127\n#define CHAR_MIN (-128)\n#define SHRT_MAX 32767\n"                      \
        "#define SHRT_MIN (-32767-1)\n#define USHRT_MAX 65535\n#define INT_MAX 2147483647\n"           \
        "#define INT_MIN (-2147483647-1)\n#define UINT_MAX 4294967295u\n"                              \
        "#define LLONG_MAX 9223372036854775807ll\n#define LLONG_MIN (-9223372036854775807ll-1)\n"      \
        "#define ULLONG_MAX 18446744073709551615ull\n#define LONG_MAX 9223372036854775807l\n"          \
        "#define LONG_MIN (-9223372036854775807l-1)\n#define ULONG_MAX 18446744073709551615ul\n")

#define FLOATS                                                                                            \
    ONCE "#ifndef FLT_MAX\n#define FLT_RADIX 2\n#define FLT_MANT_DIG 24\n#define FLT_DIG 6\n#define "     \
         "FLT_MIN_EXP (-125)\n"                                                                           \
         "#define FLT_MAX_EXP 128\n#define FLT_EPSILON 1.19209290e-7f\n#define FLT_MIN 1.17549435e-38f\n" \
         "#define FLT_MAX 3.40282347e+38f\n#define DBL_MANT_DIG 53\n#define DBL_DIG 15\n"                 \
         "#define DBL_MIN_EXP (-1021)\n#define DBL_MAX_EXP 1024\n#define DBL_EPSILON "                    \
         "2.2204460492503131e-16\n"                                                                       \
         "#define DBL_MIN 2.2250738585072014e-308\n#define DBL_MAX 1.7976931348623157e+308\n#endif\n"

#define STDDEF                                    \
    ONCE "#ifndef NULL\n#define NULL 0\n#endif\n" \
         "#ifndef offsetof\n#define offsetof(type, member) __INTADDR__(&(((type *)0)->member))\n#endif\n"
#define CSTDDEF                            \
    ONCE "#include <stddef.h>\n" INTO_STD( \
        "using ::size_t; using ::ptrdiff_t; using nullptr_t = decltype(nullptr);\n")

#define MATH                                                                                                 \
    ONCE "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"                           \
         "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"                                     \
         "#ifndef HUGE_VAL\n#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)\n#define HUGE_VALF " \
         "__int_as_float(0x7f800000)\n#endif\n"                                                              \
         "#ifndef M_PI\n#define M_E 2.7182818284590452354\n#define M_LOG2E 1.4426950408889634074\n"          \
         "#define M_LN2 0.69314718055994530942\n#define M_PI 3.14159265358979323846\n"                       \
         "#define M_PI_2 1.57079632679489661923\n#define M_PI_4 0.78539816339744830962\n"                    \
         "#define M_1_PI 0.31830988618379067154\n#define M_SQRT2 1.41421356237309504880\n"                   \
         "#define M_SQRT1_2 0.70710678118654752440\n#endif\n"
#define CMATH                                                                          \
    ONCE "#if __has_include(<cuda/std/cmath>)\n#pragma nv_diag_suppress 47\n#include " \
         "<cuda/std/cmath>\n#pragma nv_diag_default 47\n"                              \
         "namespace std { using namespace ::cuda::std; }\n#endif\n#include <math.h>\n"

/* What kernels want of the driver's header: tensor maps as parameters (CUDA Driver API 13.0: 128 bytes,
   aligned to 64), and the types that declarations beside them name. */
#define CUDA                                                                                          \
    ONCE "typedef unsigned long long CUdeviceptr;\ntypedef int CUdevice;\ntypedef struct CUctx_st "   \
         "*CUcontext;\n"                                                                              \
         "typedef struct CUmod_st *CUmodule;\ntypedef struct CUfunc_st *CUfunction;\n"                \
         "typedef struct CUstream_st *CUstream;\ntypedef struct CUevent_st *CUevent;\n"               \
         "#if __CUDACC_VER_MAJOR__ >= 13\n#define CLAB_MAP_ALIGN 128\n#else\n#define CLAB_MAP_ALIGN " \
         "64\n#endif\n"                                                                               \
         "typedef struct CUtensorMap_st { alignas(CLAB_MAP_ALIGN) unsigned long long opaque[16]; } "  \
         "CUtensorMap;\n"

#define HEADERS                                             \
    X("stdint.h", STDINT)                                   \
    X("inttypes.h", "#include <stdint.h>\n")                \
    X("sys/types.h", "#include <stdint.h>\n")               \
    X("limits.h", LIMITS)                                   \
    X("float.h", FLOATS)                                    \
    X("stddef.h", STDDEF)                                   \
    X("math.h", MATH)                                       \
    X("stdio.h", ONCE)                                      \
    X("stdlib.h", ONCE)                                     \
    X("string.h", ONCE)                                     \
    X("strings.h", ONCE)                                    \
    X("memory.h", ONCE)                                     \
    X("assert.h", ONCE)                                     \
    X("stdbool.h", ONCE)                                    \
    X("cuda.h", CUDA)                                       \
    X("cstdint", CSTDINT)                                   \
    X("cinttypes", "#include <cstdint>\n")                  \
    X("climits", "#include <limits.h>\n")                   \
    X("cfloat", "#include <float.h>\n")                     \
    X("cstddef", CSTDDEF)                                   \
    X("cmath", CMATH)                                       \
    X("cstdio", ONCE)                                       \
    X("cassert", ONCE)                                      \
    X("new", ONCE)                                          \
    X("cstdlib", FROM_LIBCUXX("cstdlib"))                   \
    X("cstring", FROM_LIBCUXX("cstring"))                   \
    X("array", FROM_LIBCUXX("array"))                       \
    X("atomic", FROM_LIBCUXX("atomic"))                     \
    X("bit", FROM_LIBCUXX("bit"))                           \
    X("complex", FROM_LIBCUXX("complex"))                   \
    X("concepts", FROM_LIBCUXX("concepts"))                 \
    X("functional", FROM_LIBCUXX("functional"))             \
    X("initializer_list", FROM_LIBCUXX("initializer_list")) \
    X("iterator", FROM_LIBCUXX("iterator"))                 \
    X("limits", FROM_LIBCUXX("limits"))                     \
    X("memory", FROM_LIBCUXX("memory"))                     \
    X("numeric", FROM_LIBCUXX("numeric"))                   \
    X("optional", FROM_LIBCUXX("optional"))                 \
    X("ratio", FROM_LIBCUXX("ratio"))                       \
    X("span", FROM_LIBCUXX("span"))                         \
    X("tuple", FROM_LIBCUXX("tuple"))                       \
    X("type_traits", FROM_LIBCUXX("type_traits"))           \
    X("utility", FROM_LIBCUXX("utility"))                   \
    X("variant", FROM_LIBCUXX("variant"))                   \
    X("algorithm", FROM_LIBCUXX("utility") "#include <functional>\n")

#define X(name, text) name,
static const char *const names[] = {HEADERS};
#undef X
#define X(name, text) text,
static const char *const texts[] = {HEADERS};
#undef X

size_t clab_host_headers(const char *const **out_names, const char *const **out_texts)
{
    *out_names = names;
    *out_texts = texts;
    return sizeof names / sizeof *names;
}

bool clab_host_header_missing(const char *log)
{
    static const char complaint[] = "cannot open source file \"";
    for (const char *at = log; at != NULL && (at = strstr(at, complaint)) != NULL;) {
        at += sizeof complaint - 1;
        const size_t bytes = strcspn(at, "\"\n");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strlen(names[i]) == bytes && memcmp(names[i], at, bytes) == 0)
                return true;
    }
    return false;
}
