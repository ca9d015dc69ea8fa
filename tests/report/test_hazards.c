/* The text of a hazard, pinned, and what suppression files may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/hazards.h"

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *value = json_load_file(path, 0, &error);
    assert_non_null(value);
    return value;
}

static char *print(const char *path, const char *again, unsigned cluster_ctas, bool colour)
{
    struct clab_str out = {0};
    json_t *hazard = load(path);
    clab_hazard_print(hazard, "split (cluster 4)", again, cluster_ctas, colour, &out);
    json_decref(hazard);
    return clab_str_take(&out);
}

static void test_text(void **state)
{
    (void)state;
    size_t bytes;
    char *got = print("data/remote.json", "clusterlab check x --seed 3", 4, false);
    char *wanted = clab_file_read("data/remote.txt", 1 << 16, &bytes);
    assert_non_null(wanted);
    assert_string_equal(got, wanted);
    free(got);
    free(wanted);
}

/* Colours only add to the text; without a cluster there is no picture. */
static void test_variants(void **state)
{
    (void)state;
    char *plain = print("data/remote.json", NULL, 0, false),
         *coloured = print("data/remote.json", NULL, 0, true);
    assert_null(strchr(plain, '\033'));
    assert_non_null(strstr(coloured, "\033[1;31mhazard  remote-after-exit\033[0m"));
    assert_null(strstr(plain, "[ rank"));
    assert_null(strstr(plain, "again"));
    free(plain);
    free(coloured);
}

static clab_status suppressions(const char *text, json_t **out_list, struct clab_error *error);

static void test_suppression_of_a_local(void **state)
{
    (void)state;
    struct clab_error error = {0};
    json_t *list,
        *hazard = json_pack("{s:s,s:{s:s}}", "kind", "race-shared", "address", "symbol", "_ZZ1kE4part");
    assert_int_equal(
        suppressions("* symbol=k::par # no\n* symbol=k::part # as the report prints it\n", &list, &error),
        CLAB_OK);
    const json_t *found = clab_suppression_find(list, hazard, NULL);
    assert_int_equal(json_integer_value(json_object_get(found, "at")), 2);
    json_decref(list);
    assert_int_equal(suppressions("* symbol=_ZZ1kE4part # the symbol\n", &list, &error), CLAB_OK);
    assert_non_null(clab_suppression_find(list, hazard, NULL));
    json_decref(list);
    json_decref(hazard);
}

/* Reads a suppression file of this text. */
static clab_status suppressions(const char *text, json_t **out_list, struct clab_error *error)
{
    char path[] = "/tmp/clusterlab-suppress-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    clab_status status = clab_suppressions_read(path, out_list, error);
    unlink(path);
    return status;
}

static void assert_covers(const char *text, bool covers)
{
    struct clab_error error = {0};
    json_t *list, *hazard = load("data/remote.json");
    assert_int_equal(suppressions(text, &list, &error), CLAB_OK);
    assert_int_equal(clab_suppression_find(list, hazard, "split") != NULL, covers);
    struct clab_str unused = {0};
    clab_suppressions_unused(list, &unused);
    assert_int_equal(unused.text == NULL, covers);
    clab_str_free(&unused);
    json_decref(list);
    json_decref(hazard);
}

static void test_suppression(void **state)
{
    (void)state;
    assert_covers("# a comment\n\nremote-after-exit # known\n", true);
    assert_covers("* kernel=k symbol=tile variant=split # known\r\n", true);
    assert_covers("* file=two_lines.txt line=2 # known", true);
    assert_covers("* file=data/nowhere.ptx line=9 # known", true);
    assert_covers("* line=2 file=nowhere.ptx # no party is there", false);
    assert_covers("* file=lines.txt # not at a folder's border", false);
    assert_covers("race-shared # another kind", false);
    assert_covers("* kernel=other # another kernel", false);
    assert_covers("* variant=other # another variant", false);
    assert_covers("* symbol=til # another variable", false);
}

static void assert_refused(const char *text, uint32_t line, const char *words)
{
    struct clab_error error = {0};
    json_t *list;
    assert_int_equal(suppressions(text, &list, &error), CLAB_USAGE);
    assert_int_equal(error.line, line);
    assert_non_null(strstr(error.message, words));
    clab_error_clear(&error);
}

static void test_refused(void **state)
{
    (void)state;
    struct clab_error error = {0};
    json_t *list;
    assert_refused("* # all\nrace-shard # typing\n", 2, "no kind of hazard 'race-shard'");
    assert_refused("* kernel # what of it\n", 1, "'kernel' is no condition");
    assert_refused("* kernel= # empty\n", 1, "is no condition");
    assert_refused("* kernel=a kernel=b # twice\n", 1, "is no condition");
    assert_refused("* line=0 # none\n", 1, "is no condition");
    assert_refused("\n\n* line=x # none\n", 3, "is no condition");
    assert_refused("race-shared\n", 1, "says why");
    assert_refused("race-shared #  \n", 1, "says why");
    assert_int_equal(clab_suppressions_read("data/nowhere.txt", &list, &error), CLAB_USAGE);
    clab_error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_variants),
                                       cmocka_unit_test(test_suppression_of_a_local),
                                       cmocka_unit_test(test_suppression), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
