/* Accuses host/base/map.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"

#include <stdio.h>
#include <string.h>

static void test_many_keys(void **state)
{
    (void)state;
    enum { KEYS = 5000 };
    static char keys[KEYS][16];
    static int values[KEYS];
    struct clab_map map = {0};
    assert_null(clab_map_get(&map, "x", 1));
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "%%r%d", i);
        assert_true(clab_map_set(&map, keys[i], strlen(keys[i]), &values[i]));
    }
    assert_int_equal(map.count, KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(clab_map_get(&map, keys[i], strlen(keys[i])), &values[i]);
    assert_null(clab_map_get(&map, "%r5000", 6));
    clab_map_free(&map);
    assert_int_equal(map.count, 0);
    assert_null(clab_map_get(&map, keys[0], strlen(keys[0])));
}

static void test_replace_prefix_and_empty(void **state)
{
    (void)state;
    int a, b, c;
    struct clab_map map = {0};
    assert_true(clab_map_set(&map, "mapa", 4, &a));
    assert_true(clab_map_set(&map, "mapa", 3, &b)); /* "map": a key is its bytes, not its NUL */
    assert_true(clab_map_set(&map, "", 0, &c));
    assert_ptr_equal(clab_map_get(&map, "mapa", 4), &a);
    assert_ptr_equal(clab_map_get(&map, "map", 3), &b);
    assert_ptr_equal(clab_map_get(&map, NULL, 0), &c);
    assert_true(clab_map_set(&map, "mapa", 4, &c));
    assert_ptr_equal(clab_map_get(&map, "mapa", 4), &c);
    assert_int_equal(map.count, 3);
    assert_false(clab_map_set(&map, "mapa", 4, NULL));
    assert_ptr_equal(clab_map_get(&map, "mapa", 4), &c);
    clab_map_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_replace_prefix_and_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
