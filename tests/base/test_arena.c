/* Accuses host/base/arena.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

#include <string.h>

static void test_items_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct clab_arena arena = {0};
    enum { ITEMS = 3000 };
    static unsigned char *items[ITEMS];
    for (size_t i = 0; i < ITEMS; i++) {
        size_t bytes = i % 7 == 0 ? i * 3 : i % 97;
        items[i] = clab_arena_alloc(&arena, bytes);
        assert_non_null(items[i]);
        assert_int_equal((uintptr_t)items[i] % 16, 0);
        for (size_t b = 0; b < bytes; b++)
            assert_int_equal(items[i][b], 0);
        memset(items[i], (int)(i & 255), bytes);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        size_t bytes = i % 7 == 0 ? i * 3 : i % 97;
        for (size_t b = 0; b < bytes; b++)
            assert_int_equal(items[i][b], i & 255);
    }
    assert_true(arena.total_bytes > 0);
    clab_arena_free(&arena);
    assert_int_equal(arena.total_bytes, 0);
    assert_non_null(clab_arena_alloc(&arena, 1)); /* usable again */
    clab_arena_free(&arena);
}

static void test_limit_holds(void **state)
{
    (void)state;
    struct clab_arena arena = {.limit_bytes = 100000};
    size_t got_bytes = 0;
    while (clab_arena_alloc(&arena, 1000))
        got_bytes += 1000;
    assert_true(got_bytes <= 100000);
    assert_true(got_bytes >= 80000); /* the limit is for use, not for slack */
    assert_true(arena.total_bytes <= 100000);
    assert_null(clab_arena_alloc(&arena, 100001));
    clab_arena_free(&arena);
    assert_non_null(clab_arena_alloc(&arena, 90000));
    clab_arena_free(&arena);
}

static void test_sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct clab_arena arena = {0};
    size_t capacity = 0;
    assert_null(clab_arena_alloc(&arena, SIZE_MAX));
    assert_null(clab_arena_alloc(&arena, SIZE_MAX - 15));
    assert_null(clab_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(clab_arena_strndup(&arena, "", SIZE_MAX));
    assert_null(clab_arena_grow(&arena, NULL, SIZE_MAX - 1, &capacity, 1));
    assert_int_equal(capacity, 0);
    clab_arena_free(&arena);
}

static void test_text(void **state)
{
    (void)state;
    struct clab_arena arena = {0};
    assert_string_equal(clab_arena_strdup(&arena, "cluster"), "cluster");
    assert_string_equal(clab_arena_strndup(&arena, "cluster", 3), "clu");
    assert_string_equal(clab_arena_strndup(&arena, NULL, 0), "");
    assert_string_equal(clab_arena_printf(&arena, "%s_%d", "sm", 90), "sm_90");
    clab_arena_free(&arena);
}

static void test_array_grows_and_keeps_its_items(void **state)
{
    (void)state;
    struct clab_arena arena = {0};
    uint32_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        items = clab_arena_grow(&arena, items, i, &capacity, sizeof *items);
        assert_non_null(items);
        assert_true(capacity > i);
        items[i] = i * 3;
    }
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(items[i], i * 3);
    assert_true(capacity < 2 * 5000 + 8); /* doubling, not more */
    clab_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_zeroed_aligned_and_apart), cmocka_unit_test(test_limit_holds),
        cmocka_unit_test(test_sizes_that_overflow_are_refused),    cmocka_unit_test(test_text),
        cmocka_unit_test(test_array_grows_and_keeps_its_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
