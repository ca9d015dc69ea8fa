/* The include scanner finds at least every file that a compiler could read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/cache.h"
#include "scratch.h"

/* The scan of a text as if it were DIR/src/k.cu, with DIR/inc searched; NULL where the list cannot be known.
 */
static char *scan(const char *text)
{
    struct clab_str found = {0};
    const char *dirs[] = {scratch_path("inc")};
    bool known = clab_scan_includes(scratch_path("src/k.cu"), text, dirs, 1, &found);
    char *list = clab_str_take(&found);
    if (known)
        return list;
    free(list);
    return NULL;
}

static bool lists(const char *text, const char *name)
{
    char *list = scan(text);
    assert_non_null(list);
    bool found = strstr(list, scratch_path(name)) != NULL;
    free(list);
    return found;
}

static int set_up(void **state)
{
    (void)state;
    scratch_make();
    scratch_write("src/k.cu", "");
    scratch_write("src/beside.h", "#include \"deep/one.h\"\n");
    scratch_write("src/deep/one.h", "#pragma once\n#include \"two.h\"\n#include \"one.h\"\n");
    scratch_write("src/deep/two.h", "int two;\n");
    scratch_write("inc/far.h", "#if 0\n#include <farther.h>\n#endif\n");
    scratch_write("inc/farther.h", "\n");
    scratch_write("inc/macro.h", "#include MACRO\n");
    return 0;
}

static void test_quotes_angles_and_recursion(void **state)
{
    (void)state;
    assert_true(lists("#include \"beside.h\"\n", "src/beside.h"));
    assert_true(lists("#include \"beside.h\"\n", "src/deep/two.h"));
    assert_true(lists("#include <far.h>\n", "inc/far.h"));
    assert_true(lists("#include <far.h>\n", "inc/farther.h")); /* conditionals are ignored */
    assert_false(lists("int x; // nothing\n", "inc/far.h"));
    assert_false(lists("#include <absent.h>\n", "absent.h"));
}

static void test_odd_spellings(void **state)
{
    (void)state;
    assert_true(lists("  #  include   <far.h>\n", "inc/far.h"));
    assert_true(lists("#inc\\\nlude <far.h>\n", "inc/far.h"));
    assert_true(lists("/* c */ #include <far.h>\n", "inc/far.h"));
    assert_true(lists("# /* c */ include /* d */ <far.h>\n", "inc/far.h"));
    assert_true(lists("%:include <far.h>\n", "inc/far.h"));
    assert_true(lists("#include_next <far.h>\n", "inc/far.h"));
    assert_true(lists("#if __has_include(<far.h>)\n#endif\n", "inc/far.h"));
    assert_true(lists("#include <far.h>", "inc/far.h"));
    assert_true(lists("#include \"../inc/far.h\"\r\n", "src/../inc/far.h"));
}

static void test_a_computed_name_cannot_be_known(void **state)
{
    (void)state;
    char *list = scan("#include NAME\n");
    assert_null(list);
    list = scan("#include <macro.h>\n");
    assert_null(list);
    list = scan("// the #include line and an include of a kind\n#ifdef __has_include\n#endif\n");
    assert_non_null(list);
    free(list);
}

static void test_content_is_part_of_the_list(void **state)
{
    (void)state;
    char *before = scan("#include <far.h>\n");
    scratch_write("inc/farther.h", "changed\n");
    char *after = scan("#include <far.h>\n");
    assert_string_not_equal(before, after);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_quotes_angles_and_recursion, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_odd_spellings, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_computed_name_cannot_be_known, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_content_is_part_of_the_list, set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
