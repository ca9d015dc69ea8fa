/* What the data files of cases/ cannot show: names looked up in folders, the list with a broken file in it, a
   file that changes during the run, a grid known only after loading. Works in a temporary folder. */
#include "lab/experiment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define KERNEL ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
#define GOOD                                                                                                \
    "return { summary = 'good', sweep = { cluster = { 1, 2 } },\n"                                          \
    "  buffers = function(p) return { out = { type = 'u32', count = p.count or 4 } } end,\n"                \
    "  launch = function(p) return { block = 32, grid = fit { per = 'cluster' }, args = { 'out' } } end,\n" \
    "  bytes = 16,\n"                                                                                       \
    "  columns = { { 'ctas', function(p, v, launch) return launch.ctas end } },\n"                          \
    "  predictions = { { 'rows came', function(rows) return #rows == 2 end } },\n"                          \
    "  variants = { { name = 'a', source = 'k.ptx' } } }\n"

static char folder[64];

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/clab-lab-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    setenv("CLUSTERLAB_PATH", folder, 1);
    write_file("k.ptx", KERNEL);
    write_file("orchard.lua", GOOD);
    write_file("broken.lua", "return {\n  summary = 7,\n}\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"k.ptx", "orchard.lua", "broken.lua"};
    char path[256];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void test_found_by_name(void **state)
{
    (void)state;
    json_t *plan = NULL;
    struct clab_error error = {0};
    assert_int_equal(clab_lab_plan(&(struct clab_lab_request){.experiment = "orchard"}, &plan, &error),
                     CLAB_OK);
    assert_string_equal(json_string_value(json_object_get(plan, "experiment")), "orchard");
    assert_int_equal(strlen(json_string_value(json_object_get(plan, "sha256"))), 64);
    json_decref(plan);
}

static void test_unknown_name(void **state)
{
    (void)state;
    json_t *plan = NULL;
    struct clab_error error = {0};
    assert_int_equal(clab_lab_plan(&(struct clab_lab_request){.experiment = "orchid"}, &plan, &error),
                     CLAB_EXPERIMENT);
    assert_null(plan);
    assert_non_null(strstr(error.message, "there is no experiment 'orchid'; did you mean 'orchard'?"));
    assert_non_null(strstr(error.message, "broken"));
    clab_error_clear(&error);
    assert_int_equal(clab_lab_plan(&(struct clab_lab_request){.experiment = "./none.lua"}, &plan, &error),
                     CLAB_EXPERIMENT);
    assert_non_null(strstr(error.message, "No such file"));
    clab_error_clear(&error);
    assert_int_equal(clab_lab_plan(&(struct clab_lab_request){.experiment = "/tmp/"}, &plan, &error),
                     CLAB_EXPERIMENT);
    clab_error_clear(&error);
}

static const json_t *listed(const json_t *list, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (strcmp(json_string_value(json_object_get(item, "name")), name) ==
                                          0) return item;
    return NULL;
}

static void test_list(void **state)
{
    (void)state;
    json_t *list = NULL;
    struct clab_error error = {0};
    assert_int_equal(clab_lab_list(&list, &error), CLAB_OK);
    const json_t *good = listed(list, "orchard"), *broken = listed(list, "broken");
    assert_non_null(good);
    assert_true(json_is_null(json_object_get(good, "error")));
    assert_int_equal(json_array_size(json_object_get(good, "variants")), 1);
    assert_non_null(broken);
    const char *reason = json_string_value(json_object_get(broken, "error"));
    assert_non_null(strstr(reason, "broken.lua:2"));
    assert_non_null(strstr(reason, "summary: wanted a string, got 7"));
    json_decref(list);
}

static void test_resolve(void **state)
{
    (void)state;
    json_t *plan = NULL, *row = NULL;
    struct clab_error error = {0};
    assert_int_equal(clab_lab_plan(&(struct clab_lab_request){.experiment = "orchard"}, &plan, &error),
                     CLAB_OK);
    const json_t *planned = json_array_get(json_object_get(plan, "rows"), 1);
    assert_true(json_is_null(json_object_get(json_object_get(planned, "launch"), "grid")));
    assert_true(json_is_null(json_object_get(json_object_get(planned, "columns"), "ctas")));
    assert_int_equal(clab_lab_resolve(plan, 1, (const uint32_t[3]){132, 1, 1}, &row, &error), CLAB_OK);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "columns"), "ctas")), 132);
    assert_int_equal(json_array_size(json_object_get(row, "buffer_list")), 1);
    json_decref(row);
    assert_int_equal(clab_lab_resolve(plan, 1, (const uint32_t[3]){131, 1, 1}, &row, &error),
                     CLAB_EXPERIMENT);
    assert_non_null(strstr(error.message, "x = 131 is not a multiple of 2"));
    clab_error_clear(&error);
    assert_int_equal(clab_lab_resolve(plan, 2, (const uint32_t[3]){1, 1, 1}, &row, &error), CLAB_INTERNAL);
    clab_error_clear(&error);
    json_decref(plan);
}

static void test_file_changes(void **state)
{
    (void)state;
    json_t *plan = NULL, *verdicts = NULL, *row = NULL, *rows = json_pack("[{},{}]");
    struct clab_error error = {0};
    assert_int_equal(clab_lab_plan(&(struct clab_lab_request){.experiment = "orchard"}, &plan, &error),
                     CLAB_OK);
    assert_int_equal(clab_lab_judge(plan, rows, &verdicts, &error), CLAB_OK);
    assert_string_equal(json_string_value(json_object_get(json_array_get(verdicts, 0), "verdict")), "held");
    json_decref(verdicts);
    write_file("orchard.lua", GOOD "-- one line more\n");
    assert_int_equal(clab_lab_judge(plan, rows, &verdicts, &error), CLAB_OK);
    const json_t *verdict = json_array_get(verdicts, 0);
    assert_string_equal(json_string_value(json_object_get(verdict, "verdict")), "not measured");
    assert_non_null(strstr(json_string_value(json_object_get(verdict, "detail")), "changed"));
    assert_int_equal(clab_lab_resolve(plan, 0, (const uint32_t[3]){2, 1, 1}, &row, &error), CLAB_EXPERIMENT);
    clab_error_clear(&error);
    json_decref(verdicts);
    json_decref(rows);
    json_decref(plan);
    write_file("orchard.lua", GOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_by_name), cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_list),          cmocka_unit_test(test_resolve),
        cmocka_unit_test(test_file_changes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
