/* Readable names: what c++filt (binutils 2.40) prints with -p, but for what is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/demangle.h"

static void expect(const char *symbol, const char *wanted, size_t bytes)
{
    char out[512];
    assert_string_equal(clab_demangle(symbol, out, bytes), wanted);
}

static void names(void **state)
{
    static const char *const cases[][2] = {
        {"saxpy", "saxpy"},
        {"_Z5saxpyiPKfPf", "saxpy"},
        {"_ZN2ns1kILi4EEEvPKf", "ns::k<4>"},
        {"_Z6reduceIfLj256ELb1EEvPKT_PS0_j", "reduce<float, 256u, true>"},
        {"_Z1kIJifEEvDpT_", "k<int, float>"},
        {"_Z1kIJEEvDpT_", "k<>"},
        {"_Z1kIN3cub17BlockReduceImplerIiLin1EEEEvT_", "k<cub::BlockReduceImpler<int, -1>>"},
        {"_ZZ5stagePKfE4tile", "stage::tile"},
        {"_ZZN2ns1kIiEEvPT_E4tile_0", "ns::k<int>::tile"},
        {"_ZN12_GLOBAL__N_11kEv", "(anonymous namespace)::k"},
        {"_ZN39_INTERNAL_0badcafe_4_k_cu_12345678_12341kEv", "(anonymous namespace)::k"},
        {"_Z1kIPFviEEvT_", "k<void (*)(int)>"},
        {"_Z1kIRA4_KfEvT_", "k<float const (&) [4]>"},
        {"_Z1kISt4plusIfES1_EvT_T0_", "k<std::plus<float>, std::plus<float>>"},
        {"_Z1kIN2ns1AIfEENS0_1BIS2_EEEvT_", "k<ns::A<float>, ns::B<ns::A<float>>>"},
        {"_Z1kILN2ns4KindE2EEvv", "k<(ns::Kind)2>"},
        {"_ZN1AIiEC1Ev", "A<int>::A"},
        {"_ZNK1AplERKS_", "A::operator+"},
        {"_Znwm", "operator new"},
        {"_ZN1AdlEPv", "A::operator delete"},
        {"_ZN2ns1kILXadL_Z1fvEEEEvv", "_ZN2ns1kILXadL_Z1fvEEEEvv"}, /* an expression */
        {"_Z", "_Z"},
        {"_Z99short", "_Z99short"},
        {"_ZN", "_ZN"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(cases[i][0], cases[i][1], 512);
    }
}

/* What does not fit: first the arguments inside others go, then all, then the middle. */
static void long_names(void **state)
{
    (void)state;
    const char *symbol = "_ZN7product6kernelIN4tile5shapeILi128ELi128ELi64EEENS1_7clusterILi2ELi1EEEEEvv";
    expect(symbol, "product::kernel<tile::shape<128, 128, 64>, tile::cluster<2, 1>>", 512);
    expect(symbol, "product::kernel<tile::shape<...>, tile::cluster<...>>", 60);
    expect(symbol, "product::kernel<...>", 32);
    expect("a_kernel_with_a_name_that_is_longer_than_the_room", "a_kernel_with_a_...ger_than_the_room", 37);
}

/* No depth and no length brings it down. */
static void hostile(void **state)
{
    char symbol[4096] = "_Z1kI", out[64];
    (void)state;
    memset(symbol + 5, 'P', 4000);
    strcpy(symbol + 4005, "iEvv");
    clab_demangle(symbol, out, sizeof out);
    assert_int_equal(strlen(out), sizeof out - 1);
    memset(symbol + 5, 'N', 4000);
    clab_demangle(symbol, out, sizeof out);
    memset(symbol + 5, 'J', 4000);
    clab_demangle(symbol, out, sizeof out);
}

/* Names made to take long or deep: told as they are, at once. */
static void long_or_deep(void **state)
{
    (void)state;
    static char symbol[200000], out[512];
    memset(symbol, 'Z', sizeof symbol - 1);
    symbol[0] = '_';
    clab_demangle(symbol, out, sizeof out);
    assert_memory_equal(out, "_ZZZ", 4);
    strcpy(symbol, "_Z1kI");
    for (int i = 0; i < 40; i++)
        strcat(symbol, "PF");
    strcat(symbol, "v");
    for (int i = 0; i < 40; i++)
        strcat(symbol, "vE");
    strcat(symbol, "EvT_");
    clab_demangle(symbol, out, sizeof out);
    assert_memory_equal(out, "_Z1kI", 5);
    strcpy(symbol, "_Z1kI");
    memset(symbol + 5, 'J', sizeof symbol - 6);
    clab_demangle(symbol, out, sizeof out);
    assert_memory_equal(out, "_Z1kIJ", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(long_names),
        cmocka_unit_test(hostile),
        cmocka_unit_test(long_or_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
