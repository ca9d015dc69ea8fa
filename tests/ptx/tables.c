/* The tables themselves: insn.def is readable, mods.def lists exactly the qualifiers that insn.def uses,
   names are found and forgiven, and the target rules equal what ptxas 13.0 does with every pair of its
   targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/forms.h"
#include "ptx/match.h"

static void insn_def_is_readable(void **state)
{
    (void)state;
    const struct ptx_forms *forms = ptx_forms_get();
    assert_non_null(forms);
    if (forms->fault)
        fail_msg("row %s cannot be read", forms->fault);
    for (unsigned row = 0; row < PTX_ROW_COUNT; row++) {
        assert_true(ptx_rows[row].isa >= 10 && ptx_rows[row].isa <= 90);
        assert_true(ptx_rows[row].sm >= 10 && ptx_rows[row].sm <= 121);
        assert_true(strlen(ptx_rows[row].section) > 0);
    }
}

static void mods_are_all_used(void **state)
{
    (void)state;
    const struct ptx_forms *forms = ptx_forms_get();
    bool used[PTX_MOD_COUNT] = {false};
    for (unsigned r = 0; r < forms->n_roots; r++)
        for (unsigned v = 0; v < forms->roots[r].n_variants; v++)
            for (unsigned s = 0; s < forms->roots[r].variants[v].n_slots; s++)
                for (unsigned c = 0; c < forms->roots[r].variants[v].slots[s].n_choices; c++) {
                    ptx_word word = forms->roots[r].variants[v].slots[s].choices[c].word;
                    if ((word & PTX_WORD_KIND) == PTX_WORD_MOD)
                        used[ptx_word_index(word)] = true;
                }
    for (unsigned i = 0; i < PTX_MOD_COUNT; i++)
        if (!used[i])
            fail_msg("qualifier .%s is in no row", ptx_mod_text[i]);
}

static void words_are_distinct(void **state)
{
    (void)state;
    const struct ptx_forms *forms = ptx_forms_get();
    for (unsigned i = 0; i < forms->n_words; i++) {
        ptx_word word = ptx_word_get(forms->word_names[i], strlen(forms->word_names[i]));
        assert_string_equal(ptx_word_text(word), forms->word_names[i]);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(forms->word_names[i], forms->word_names[j]);
    }
    assert_int_equal(ptx_word_get("nosuchword", 10), 0);
}

/* Rows: .target of the PTX; columns: the architecture it is assembled for; as ptxas 13.0.88 decides. */
static const char *const targets[] = {"sm_90",   "sm_90a",  "sm_100", "sm_100f", "sm_100a", "sm_103",
                                      "sm_103f", "sm_103a", "sm_110", "sm_110f", "sm_110a", "sm_120",
                                      "sm_120f", "sm_120a", "sm_121", "sm_121f", "sm_121a"};
enum { N_TARGETS = sizeof targets / sizeof targets[0] };
static const char accepted[N_TARGETS][N_TARGETS + 1] = {
#include "targets_accepted.inc"
};

static void targets_like_ptxas(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_TARGETS; i++) {
        for (unsigned j = 0; j < N_TARGETS; j++) {
            struct ptx_target image, device;
            const char *reason = NULL;
            assert_true(ptx_target_parse(targets[i], strlen(targets[i]), &image));
            assert_true(ptx_target_parse(targets[j], strlen(targets[j]), &device));
            bool ours = ptx_target_accepts(image, device, &reason);
            if (ours != (accepted[i][j] == '+'))
                fail_msg(".target %s for %s: we say %s", targets[i], targets[j], ours ? "yes" : "no");
            assert_true(ours == (reason == NULL));
        }
    }
}

static void target_names(void **state)
{
    (void)state;
    struct ptx_target target;
    assert_true(ptx_target_parse("sm_101a", 7, &target));
    assert_int_equal(target.sm, 110);
    assert_int_equal(target.suffix, 'a');
    assert_false(ptx_target_parse("sm_", 3, &target));
    assert_false(ptx_target_parse("sm_90b", 6, &target));
    assert_false(ptx_target_parse("sm_99999", 8, &target));
    assert_false(ptx_target_parse("compute_90", 10, &target));
}

static void suggestions(void **state)
{
    (void)state;
    struct clab_arena arena = {0};
    struct ptx_opcode *opcode = ptx_opcode_read(&arena, "barier.cluster.arrive", 21, true);
    assert_non_null(opcode);
    assert_null(opcode->root);
    assert_non_null(strstr(opcode->fault, "did you mean 'barrier'"));
    opcode = ptx_opcode_read(&arena, "barrier.clustr.arrive", 21, true);
    assert_null(opcode->root);
    assert_non_null(strstr(opcode->fault, "did you mean '.cluster'"));
    opcode = ptx_opcode_read(&arena, "add.sat.u32", 11, true);
    assert_null(opcode->root);
    assert_non_null(strstr(opcode->fault, "add"));
    opcode = ptx_opcode_read(&arena, "add", 3, true);
    assert_null(opcode->root);
    assert_non_null(strstr(opcode->fault, "lacks"));
    opcode = ptx_opcode_read(&arena, "atom.add.acq_rel.gpu.s32", 24, true);
    assert_non_null(opcode->root);
    opcode = ptx_opcode_read(&arena, "ld.shared::cluster.acquire.cluster.u32", 38, true);
    assert_non_null(opcode->root);
    clab_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insn_def_is_readable), cmocka_unit_test(mods_are_all_used),
        cmocka_unit_test(words_are_distinct),   cmocka_unit_test(targets_like_ptxas),
        cmocka_unit_test(target_names),         cmocka_unit_test(suggestions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
