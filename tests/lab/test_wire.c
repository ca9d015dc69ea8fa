/* Errors and counters survive the pipe between worker and parent (host/lab/wire.c); proof.c finds
 * instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/proof.h"
#include "lab/wire.h"

static void an_error_survives_the_pipe(void **state)
{
    (void)state;
    struct clab_error sent = {0}, got = {0};
    clab_error_set(&sent, CLAB_FAULT, "access to a CTA that has exited");
    clab_error_at(&sent, "k.ptx", 12, 5);
    clab_error_remedy(&sent, "add a cluster barrier");
    clab_error_native(&sent, "cuStreamSynchronize", 719, "CUDA_ERROR_LAUNCH_FAILED");
    clab_error_log(&sent, "line one\nline two", SIZE_MAX);
    snprintf(sent.kernel, sizeof sent.kernel, "reduce");
    snprintf(sent.space, sizeof sent.space, "shared::cluster");
    sent.has_address = true;
    sent.address = UINT64_C(0xfffffffff1000400); /* does not fit a signed number */
    sent.where = (struct clab_where){.has_cta = true,
                                     .has_warp = true,
                                     .has_lane = true,
                                     .cluster = {1, 2, 3},
                                     .cta = {4, 5, 6},
                                     .cta_rank = 1,
                                     .warp = 7,
                                     .lane = 31};
    json_t *object = clab_error_to_json(&sent);
    assert_string_equal(clab_json_text(object, "status", ""), "FAULT");
    char *text = json_dumps(object, JSON_COMPACT);
    json_t *parsed = json_loads(text, 0, NULL);
    assert_int_equal(clab_error_from_json(parsed, &got), CLAB_FAULT);
    assert_string_equal(got.message, sent.message);
    assert_string_equal(got.file, "k.ptx");
    assert_int_equal(got.line, 12);
    assert_int_equal(got.column, 5);
    assert_string_equal(got.remedy, sent.remedy);
    assert_string_equal(got.native_name, sent.native_name);
    assert_int_equal(got.native_code, 719);
    assert_string_equal(got.log, "line one\nline two");
    assert_true(got.has_address && got.address == sent.address);
    assert_memory_equal(got.where.cta, sent.where.cta, sizeof got.where.cta);
    assert_memory_equal(got.where.cluster, sent.where.cluster, sizeof got.where.cluster);
    assert_int_equal(got.where.lane, 31);
    free(text);
    json_decref(object);
    json_decref(parsed);
    clab_error_clear(&sent);
    clab_error_clear(&got);
}

static void text_that_is_not_utf8_is_not_lost(void **state)
{
    (void)state;
    struct clab_error sent = {0};
    clab_error_set(&sent, CLAB_COMPILE, "bad byte \xff here");
    json_t *object = clab_error_to_json(&sent);
    assert_string_equal(clab_json_text(object, "message", ""), "bad byte ? here");
    json_decref(object);
    clab_error_clear(&sent);
}

static void an_answer_without_status_is_an_internal_error(void **state)
{
    (void)state;
    struct clab_error got = {0};
    json_t *empty = json_object();
    assert_int_equal(clab_error_from_json(empty, &got), CLAB_INTERNAL);
    assert_int_equal(clab_error_from_json(NULL, &got), CLAB_INTERNAL);
    json_decref(empty);
    clab_error_clear(&got);
}

/* Every id finds its status again; what is no id, a number of old or "OK" is no error's status. */
static void a_status_travels_by_its_id(void **state)
{
    (void)state;
    for (int i = 1; i < CLAB_STATUS_COUNT; i++) {
        struct clab_error sent = {0}, got = {0};
        clab_error_set(&sent, (clab_status)i, "x");
        json_t *object = clab_error_to_json(&sent);
        assert_true(json_is_string(json_object_get(object, "status")));
        assert_int_equal(clab_error_from_json(object, &got), i);
        json_decref(object);
        clab_error_clear(&got);
    }
    json_t *const wrong[] = {json_pack("{s:i}", "status", 10), json_pack("{s:s}", "status", "OK"),
                             json_pack("{s:s}", "status", "ptx_syntax")};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct clab_error got = {0};
        assert_int_equal(clab_error_from_json(wrong[i], &got), CLAB_INTERNAL);
        json_decref(wrong[i]);
        clab_error_clear(&got);
    }
}

static void counters_have_names(void **state)
{
    (void)state;
    struct clab_counters counters = {.atomics_global = 4096};
    counters.loads[CLAB_SPACE_REMOTE].bytes = 28;
    counters.stores[CLAB_SPACE_GLOBAL].accesses = 3;
    uint64_t value = 0;
    assert_true(clab_counter_get(&counters, "atomics_global", &value));
    assert_int_equal(value, 4096);
    assert_true(clab_counter_get(&counters, "loads_remote_bytes", &value));
    assert_int_equal(value, 28);
    assert_true(clab_counter_get(&counters, "stores_global", &value));
    assert_int_equal(value, 3);
    assert_false(clab_counter_get(&counters, "no_such_counter", &value));
    json_t *object = clab_counters_to_json(&counters);
    assert_int_equal(clab_json_int(object, "loads_remote_bytes", -1), 28);
    assert_int_equal(clab_json_int(object, "barriers", -1), 0);
    json_decref(object);
}

/* Instructions that are there, and names that only look like it. */
static void proof_wants_instructions(void **state)
{
    (void)state;
    char text[] =
        "// mapa in a comment; mapa.u64 x;\n.visible .entry mapa_kernel() {\n@%p1 barrier.cluster.arrive;\n"
        "L1: ld.shared::cluster.u32 %r1, [%r2]; /* red.async */ mapped: mov.b32 %mapa, 0;\n}\n";
    struct clab_image image = {.kind = CLAB_IMAGE_PTX, .data = text, .bytes = sizeof text - 1};
    static const struct {
        const char *name;
        bool there;
    } cases[] = {{"barrier.cluster", true},
                 {"barrier.cluster.arrive", true},
                 {"ld.shared::cluster", true},
                 {"mov", true},
                 {"mapa", false},
                 {"red.async", false},
                 {"barrier.clus", false},
                 {"barrier.cluster.wait", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clab_error error = {0};
        json_t *names = json_pack("[s]", cases[i].name);
        assert_int_equal(clab_proof_check(&image, names, NULL, NULL, NULL, &error),
                         cases[i].there ? CLAB_OK : CLAB_COMPILE);
        if (!cases[i].there)
            assert_non_null(strstr(error.message, cases[i].name));
        json_decref(names);
        clab_error_clear(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_survives_the_pipe),
        cmocka_unit_test(text_that_is_not_utf8_is_not_lost),
        cmocka_unit_test(an_answer_without_status_is_an_internal_error),
        cmocka_unit_test(a_status_travels_by_its_id),
        cmocka_unit_test(counters_have_names),
        cmocka_unit_test(proof_wants_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
