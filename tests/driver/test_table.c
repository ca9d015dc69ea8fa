/* cuda.def against cuda.h, cudaTypedefs.h and the stub libcuda: every exported name is a row, once, and the
   version in a row is the one whose typedef has the symbol's type. */
#include "driver/cuda_names.h"

#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "driver/driver.h"

/* The pairing of symbols and versions, proved by type. Rows of the per-thread forms have other typedef names.
 */
#define CU(symbol, base, since, required)                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol) *, PFN_##base##_v##since), \
                   #symbol " does not have the type of version " #since);
#define CU_PT(symbol, base, since, required)
#include "driver/cuda.def"

struct row {
    const char *symbol, *base;
    int since, required;
    bool per_thread;
};
static const struct row rows[] = {
#define CU(symbol, base, since, required)    {#symbol, #base, since, required, false},
#define CU_PT(symbol, base, since, required) {#symbol, #base, since, required, true},
#define CU_EXPORT_ONLY(symbol, base, since)  {#symbol, #base, since, 0, false},
#include "driver/cuda.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void test_names_are_unique_and_begin_with_their_base(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_memory_equal(rows[i].symbol, rows[i].base, strlen(rows[i].base));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rows[i].symbol, rows[j].symbol);
    }
}

static void test_a_base_has_each_version_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(rows[i].base, rows[j].base) == 0 && rows[i].per_thread == rows[j].per_thread)
                assert_int_not_equal(rows[i].since, rows[j].since);
}

static void test_macros_would_have_misled(void **state)
{
    (void)state;
    /* The case that the header trick is for: the plain symbol is the oldest form. */
    assert_true(__builtin_types_compatible_p(__typeof__(cuCtxCreate) *, PFN_cuCtxCreate_v2000));
    assert_true(__builtin_types_compatible_p(__typeof__(cuCtxCreate_v4) *, PFN_cuCtxCreate_v12050));
    assert_int_equal(clab_driver_symbol_since("cuCtxCreate_v4"), 12050);
    assert_int_equal(clab_driver_symbol_since("cuNothing"), 0);
}

#ifdef STUB_LIBCUDA
/* Every function that the stub's dynamic symbol table defines, by reading the file. */
static void test_every_export_of_the_stub_is_a_row(void **state)
{
    (void)state;
    size_t bytes, found = 0;
    char *file = clab_file_read(STUB_LIBCUDA, (size_t)64 << 20, &bytes);
    assert_non_null(file);
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    for (size_t s = 0; s < header->e_shnum; s++) {
        if (sections[s].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbols = (const void *)(file + sections[s].sh_offset);
        const char *names = file + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++) {
            if (symbols[i].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC)
                continue;
            const char *name = names + symbols[i].st_name;
            bool row = false;
            for (size_t r = 0; r < ROWS && !row; r++)
                row = strcmp(rows[r].symbol, name) == 0;
            if (!row)
                print_error("the stub exports %s, cuda.def has no such row\n", name);
            assert_true(row);
            found++;
        }
    }
    free(file);
    assert_int_equal(found, ROWS);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_unique_and_begin_with_their_base),
        cmocka_unit_test(test_a_base_has_each_version_once),
        cmocka_unit_test(test_macros_would_have_misled),
#ifdef STUB_LIBCUDA
        cmocka_unit_test(test_every_export_of_the_stub_is_a_row),
#endif
    };
#ifndef STUB_LIBCUDA
    print_message("skipped: every_export_of_the_stub_is_a_row (this toolkit has no stub libcuda)\n");
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
