/* host/emu/cost.c: when the instructions of a stretch would issue. Latencies are cost.def's; the cases are
   about what is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "emu/cost.h"

#define HEAD                                                                                                 \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .u32 a, b, " \
    "c;\n"                                                                                                   \
    ".reg .u64 x;\n.reg .pred p;\n"

/* Cycles before each of the first n instructions, and after the last, of the kernel with this body. */
static void schedule(const char *body, uint32_t *out_before, uint32_t n)
{
    char text[2048];
    struct ptx_module *module = NULL;
    struct ptx_cfg cfg;
    struct clab_error error = {0};
    struct clab_arena arena = {0}, scratch = {0};
    const struct ptx_parse_options options = {0};
    snprintf(text, sizeof text, "%s%sret;\n}\n", HEAD, body);
    assert_int_equal(ptx_parse(text, strlen(text), "test", &options, &module, &error), CLAB_OK);
    const struct ptx_function *function = ptx_function_get(module, "k");
    assert_non_null(function);
    assert_null(function->error);
    assert_int_equal(ptx_cfg_build(function, &arena, &cfg, &error), CLAB_OK);
    const uint32_t *before = emu_cost_schedule(function, &cfg, &arena, &scratch);
    assert_non_null(before);
    assert_true(n <= function->n_insns);
    memcpy(out_before, before, n * sizeof *before);
    clab_arena_free(&arena);
    clab_arena_free(&scratch);
    ptx_module_free(module);
}

/* An instruction issues a cycle after the one before, unless it reads what has not arrived. */
static void test_chain(void **state)
{
    (void)state;
    uint32_t at[6];
    schedule("add.u32 a, b, 1;\nadd.u32 b, c, 1;\nmad.lo.u32 a, a, b, c;\nmad.lo.u32 a, a, b, c;\nadd.u32 c, "
             "c, 1;\n",
             at, 6);
    assert_int_equal(at[1] - at[0], EMU_COST_ISSUE);
    assert_int_equal(at[2] - at[0], 2 * EMU_COST_ISSUE);
    /* The first mad waits for b, which issued at 1. */
    assert_int_equal(at[3] - at[0], EMU_COST_ISSUE + EMU_COST_ALU + EMU_COST_ISSUE);
    assert_int_equal(at[4] - at[3], EMU_COST_ALU);
    assert_int_equal(at[5] - at[4], EMU_COST_ISSUE);
}

/* Two loads overlap; what is read from a block's loads at its end is waited for once. */
static void test_loads(void **state)
{
    (void)state;
    uint32_t at[5];
    schedule("ld.global.u32 a, [x];\nld.global.u32 b, [x+4];\nadd.u32 c, a, b;\nst.global.u32 [x], c;\n", at,
             5);
    assert_int_equal(at[2] - at[0], 2 * EMU_COST_ISSUE);
    assert_int_equal(at[3] - at[0], EMU_COST_ISSUE + EMU_COST_GLOBAL + EMU_COST_ISSUE);
}

/* At the end of a block that branches; the loop's next round needs what it loads. */
static void test_block_end(void **state)
{
    (void)state;
    uint32_t at[4];
    schedule("L:\nld.global.u32 a, [x];\nsetp.ne.u32 p, a, 0;\n@p bra L;\nadd.u32 b, b, 1;\n", at, 4);
    assert_int_equal(at[3] - at[0], EMU_COST_GLOBAL + EMU_COST_ALU + EMU_COST_ISSUE + EMU_COST_BRANCH);
}

/* The silent twin: nobody reads what the atomic returns, so nobody waits for it (ptxas makes it a red). */
static void test_not_read(void **state)
{
    (void)state;
    uint32_t read[4], not_read[4];
    schedule("atom.global.add.u32 a, [x], 1;\nbra L;\nL:\nadd.u32 b, b, 1;\n", not_read, 3);
    schedule("atom.global.add.u32 b, [x], 1;\nbra L;\nL:\nadd.u32 b, b, 1;\n", read, 3);
    assert_true(not_read[2] - not_read[0] < EMU_COST_GLOBAL_ATOMIC);
    assert_true(read[2] - read[0] >= EMU_COST_GLOBAL_ATOMIC);
}

/* A barrier is not gone past. */
static void test_barrier(void **state)
{
    (void)state;
    uint32_t at[3];
    schedule("bar.sync 0;\nadd.u32 b, b, 1;\n", at, 2);
    assert_int_equal(at[1] - at[0], EMU_COST_BARRIER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),    cmocka_unit_test(test_loads),   cmocka_unit_test(test_block_end),
        cmocka_unit_test(test_not_read), cmocka_unit_test(test_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
