/* Texts: hostile disassemblies, operands, globs, what PTX becomes, colours, and a probe that needs just the
   registers it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/occupancy.h"
#include "inspect/diff.h"
#include "inspect/graph.h"
#include "inspect/lowered.h"
#include "inspect/show.h"

static void listing_of(const char *text, struct clab_listing *out)
{
    struct clab_error error = {0};
    if (clab_sass_listing(text, "k", NULL, out, &error) != CLAB_OK)
        fail_msg("%s", error.message);
}

/* A real dump with bytes changed, lines doubled and lost: a listing or an error, never a crash. */
static void hostile_text_is_survived(void **state)
{
    (void)state;
    size_t bytes;
    char *text = clab_file_read("listing/forms.sass", 1 << 24, &bytes);
    assert_non_null(text);
    uint32_t seed = 1;
    for (unsigned round = 0; round < 60; round++) {
        char *copy = strdup(text);
        assert_non_null(copy);
        for (unsigned i = 0; i < 40; i++) {
            seed = seed * 1664525 + 1013904223;
            const size_t at = seed % bytes;
            static const char bad[] = "\n;[](){}`@!,*/:\"RUP0.\t";
            copy[at] = bad[(seed >> 8) % (sizeof bad - 1)];
        }
        if (round % 4 == 0)
            copy[seed % bytes] = '\0';
        struct clab_listing listing, whole;
        struct clab_diff diff;
        if (clab_sass_listing(copy, "k", NULL, &listing, NULL) == CLAB_OK) {
            listing_of(text, &whole);
            assert_int_equal(clab_diff_make(&listing, &whole, &diff, NULL), CLAB_OK);
            clab_diff_free(&diff);
            clab_listing_free(&whole);
            clab_listing_free(&listing);
        }
        free(copy);
    }
    free(text);
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    struct clab_listing listing;
    struct clab_error error = {0};
    assert_int_equal(clab_sass_listing("garbage\n", "k", NULL, &listing, &error), CLAB_LOAD);
    assert_int_equal(clab_sass_listing("\t.section\t.text.other,\"ax\"\n\t.section\t.text.one,\"ax\"\n", "k",
                                       NULL, &listing, &error),
                     CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "other, one"));
    clab_error_clear(&error);
}

static void globs_and_operands(void **state)
{
    (void)state;
    assert_true(clab_glob("LD*.E", "LDG.E"));
    assert_true(clab_glob("*", ""));
    assert_true(clab_glob("a*b*c", "a-b-b-c"));
    assert_false(clab_glob("a*b", "a-b-c"));
    assert_false(clab_glob("LD.?", "LD."));
    const char *start;
    size_t bytes;
    assert_true(clab_operand("{a, b}, [c, {d, e}], f", 1, &start, &bytes));
    assert_int_equal(bytes, strlen("[c, {d, e}]"));
    assert_true(clab_operand("{a, b}, [c, {d, e}], f", 2, &start, &bytes));
    assert_false(clab_operand("{a, b}, [c, {d, e}], f", 3, &start, &bytes));
    assert_false(clab_operand("", 0, &start, &bytes));
}

#define HEAD "\t.section\t.text.k,\"ax\"\n"

static void ptx_is_found_in_sass(void **state)
{
    (void)state;
    static const struct {
        const char *name, *sass;
        enum clab_found found;
    } cases[] = {
        {"mapa", "/*0000*/ PRMT R4, R7, 0x654, R2 ;\n", CLAB_FOUND},
        {"mapa.shared::cluster", "/*0000*/ UPRMT UR4, UR7, 0x654, UR2 ;\n", CLAB_FOUND},
        {"mapa", "/*0000*/ PRMT R4, R7, 0x7771, R2 ;\n", CLAB_NOT_THERE},
        {"barrier.cluster", "/*0000*/ UCGABAR_ARV ;\n", CLAB_FOUND},
        {"barrier.cluster.wait", "/*0000*/ UCGABAR_ARV ;\n", CLAB_NOT_THERE},
        {"ld.shared::cluster", "/*0000*/ LD.E R4, [R4] ;\n", CLAB_FOUND},
        {"ld.shared::cluster", "/*0000*/ LD.E R4, desc[UR4][R4.64] ;\n", CLAB_NOT_THERE},
        {"mapa", "/*0000*/ CALL.ABS.NOINC R2 ;\n", CLAB_NOT_JUDGED},
        {"add.u32", "/*0000*/ IADD3 R1, R2, R3, RZ ;\n", CLAB_NOT_JUDGED},
        {"mapalot", "/*0000*/ NOP ;\n/*0010*/ EXIT ;\n", CLAB_NOT_JUDGED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clab_listing listing;
        const char *patterns;
        char text[256];
        snprintf(text, sizeof text, HEAD "%s/*0020*/ EXIT ;\n", cases[i].sass);
        listing_of(text, &listing);
        if (clab_lowered_find(&listing, cases[i].name, &patterns) != cases[i].found)
            fail_msg("%s in %s", cases[i].name, cases[i].sass);
        clab_listing_free(&listing);
    }
}

static void colours_only_where_wanted(void **state)
{
    (void)state;
    struct clab_str text = {0};
    struct clab_show show = {.out = &text, .colour = true};
    clab_paint(&show, CLAB_RED, "x", 3, false);
    assert_string_equal(text.text, "\033[31mx\033[0m  ");
    clab_str_free(&text);
    show.colour = false;
    clab_paint(&show, CLAB_RED, "x", 3, false);
    clab_paint(&show, CLAB_PLAIN, "a long text", 6, true);
    assert_string_equal(text.text, "x  a lon…");
    clab_str_free(&text);
}

static void a_graph_names_every_edge(void **state)
{
    (void)state;
    struct clab_listing listing;
    struct clab_str dot = {0};
    listing_of(HEAD "/*0000*/ @P0 BRA `(.L_x_0) ;\n/*0010*/ MEMBAR.ALL.GPU ;\n.L_x_0:\n/*0020*/ EXIT ;\n",
               &listing);
    clab_graph_dot(&listing, &dot);
    assert_non_null(strstr(dot.text, "b0 -> b1 [style=dashed];"));
    assert_non_null(strstr(dot.text, "b0 -> b2;"));
    assert_non_null(strstr(dot.text, "b1 -> b2"));
    assert_non_null(strstr(dot.text, "b1 [fillcolor=mistyrose"));
    clab_str_free(&dot);
    clab_listing_free(&listing);
}

/* The stand-in driver estimates registers by ptx_live_estimate. */
static void the_probe_needs_as_many_registers(void **state)
{
    (void)state;
    for (int registers = 3; registers <= 255; registers += 21) {
        struct clab_str text = {0};
        struct ptx_module *module;
        struct clab_resources r;
        clab_occupancy_probe(registers, 512, &text);
        assert_int_equal(ptx_parse(text.text, text.bytes, "probe", NULL, &module, NULL), CLAB_OK);
        const struct ptx_function *entry = ptx_function_get(module, "clab_occupancy_probe");
        assert_non_null(entry);
        assert_null(entry->error);
        clab_resources_init(&r);
        assert_int_equal(clab_resources_of_ptx(module, entry, &r, NULL), CLAB_OK);
        assert_int_equal(r.registers_model, registers);
        assert_int_equal(r.static_smem_bytes, 512);
        ptx_module_free(module);
        clab_str_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_text_is_survived),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(globs_and_operands),
        cmocka_unit_test(ptx_is_found_in_sass),
        cmocka_unit_test(colours_only_where_wanted),
        cmocka_unit_test(a_graph_names_every_edge),
        cmocka_unit_test(the_probe_needs_as_many_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
