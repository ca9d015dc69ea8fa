/* Runs every .ptx file in parse/: each says in its comments what the parser makes of it.

       // EXPECT: ok                                  the module and every function are good
       // EXPECT: module LINE:COLUMN text             ptx_parse fails there, its message contains text
       // EXPECT: function NAME LINE text             that function's error, the module is good
       // EXPECT: good NAME                           that function has no error
       // EXPECT: insns NAME N                        number of instructions
       // EXPECT: rows NAME ROW ROW …                 their rows, in order
       // EXPECT: cfg NAME 0>1,2 1>2 …                successors of each block
       // EXPECT: idom NAME 0:- 1:0 …                 immediate dominators, likewise ipdom
       // EXPECT: live NAME N                         modelled registers
       // EXPECT: bytes NAME hex                      initial bytes of a variable
       // EXPECT: reloc NAME OFFSET BYTES SHIFT SYMBOL+ADDEND [generic]
   A file that parses is also printed and parsed again, and the two printed texts must agree. A file without
   expectations is a failure. */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "ptx/ptx.h"

struct test {
    const char *path;
    struct ptx_module *module;
    struct clab_error error;
    unsigned failures;
};

static void complain(struct test *test, const char *expect, const char *format, ...) CLAB_PRINTF(3, 4);
static void complain(struct test *test, const char *expect, const char *format, ...)
{
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s: EXPECT: %s\n    got: %s\n", test->path, expect, text);
    test->failures++;
}

static const struct ptx_function *function_of(struct test *test, const char *expect, const char *name)
{
    const struct ptx_function *function = test->module ? ptx_function_get(test->module, name) : NULL;
    if (!test->module)
        complain(test, expect, "%u:%u %s", (unsigned)test->error.line, (unsigned)test->error.column,
                 test->error.message);
    else if (!function)
        complain(test, expect, "no function '%s'", name);
    return function;
}

static const struct ptx_var *var_of(struct test *test, const char *expect, const char *name)
{
    for (uint32_t i = 0; test->module && i < test->module->n_vars; i++)
        if (strcmp(test->module->vars[i]->name, name) == 0)
            return test->module->vars[i];
    complain(test, expect, "no variable '%s' (%s)", name, test->error.message);
    return NULL;
}

static void check_ok(struct test *test, const char *expect)
{
    if (!test->module) {
        complain(test, expect, "%u:%u %s", (unsigned)test->error.line, (unsigned)test->error.column,
                 test->error.message);
        return;
    }
    for (uint32_t i = 0; i < test->module->n_functions; i++)
        if (test->module->functions[i]->error)
            complain(test, expect, "function %s, line %u: %s", test->module->functions[i]->name,
                     (unsigned)test->module->functions[i]->error->line,
                     test->module->functions[i]->error->message);
}

static void check_graph(struct test *test, const char *expect, const char *kind,
                        const struct ptx_function *function, const char *wanted)
{
    struct clab_arena arena = {0};
    struct clab_error error = {0};
    struct ptx_cfg cfg;
    struct clab_str got = {0};
    assert_int_equal(ptx_cfg_build(function, &arena, &cfg, &error), CLAB_OK);
    if (strcmp(kind, "live") == 0) {
        uint32_t registers;
        assert_int_equal(ptx_live_estimate(function, &cfg, &arena, &registers, &error), CLAB_OK);
        clab_str_addf(&got, "%u", (unsigned)registers);
    }
    for (uint32_t b = 0; b < cfg.n_blocks && strcmp(kind, "live") != 0; b++) {
        const struct ptx_block *block = &cfg.blocks[b];
        clab_str_addf(&got, "%s%u", b ? " " : "", (unsigned)b);
        if (strcmp(kind, "cfg") == 0) {
            for (uint32_t s = 0; s < block->n_succ; s++)
                clab_str_addf(&got, "%c%u", s ? ',' : '>', (unsigned)block->succ[s]);
        } else {
            uint32_t dominator = strcmp(kind, "idom") == 0 ? block->idom : block->ipdom;
            if (dominator == UINT32_MAX)
                clab_str_add(&got, ":-");
            else
                clab_str_addf(&got, ":%u", (unsigned)dominator);
        }
    }
    if (strcmp(got.text ? got.text : "", wanted) != 0)
        complain(test, expect, "%s", got.text ? got.text : "");
    clab_str_free(&got);
    clab_arena_free(&arena);
}

static void check_rows(struct test *test, const char *expect, const struct ptx_function *function,
                       const char *wanted)
{
    struct clab_str got = {0};
    for (uint32_t i = 0; i < function->n_insns; i++)
        clab_str_addf(&got, "%s%s", i ? " " : "", ptx_rows[function->insns[i].row].name);
    if (strcmp(got.text ? got.text : "", wanted) != 0)
        complain(test, expect, "%s", got.text ? got.text : "");
    clab_str_free(&got);
}

static void check_reloc(struct test *test, const char *expect, const struct ptx_var *var, const char *wanted)
{
    char got[200] = "";
    for (uint32_t i = 0; i < var->n_relocs; i++) {
        const struct ptx_reloc *r = &var->relocs[i];
        snprintf(got, sizeof got, "%" PRIu64 " %u %u %s+%" PRId64 "%s", r->offset, r->bytes, r->shift,
                 r->var ? r->var->name : r->func->name, r->addend, r->generic ? " generic" : "");
        if (strcmp(got, wanted) == 0)
            return;
    }
    complain(test, expect, "%u relocations, the last one: %s", (unsigned)var->n_relocs, got);
}

static void check_expectation(struct test *test, const char *expect)
{
    char kind[32] = "", name[200] = "";
    int used = 0;
    sscanf(expect, "%31s %n", kind, &used);
    const char *rest = expect + used;
    if (strcmp(kind, "ok") == 0) {
        check_ok(test, expect);
        return;
    }
    if (strcmp(kind, "module") == 0) {
        unsigned line = 0, column = 0;
        sscanf(rest, "%u:%u %n", &line, &column, &used);
        rest += used;
        if (test->module)
            complain(test, expect, "the module is good");
        else if (test->error.line != line || test->error.column != column ||
                 !strstr(test->error.message, rest))
            complain(test, expect, "%u:%u %s", (unsigned)test->error.line, (unsigned)test->error.column,
                     test->error.message);
        return;
    }
    used = 0;
    sscanf(rest, "%199s %n", name, &used);
    rest += used;
    if (strcmp(kind, "bytes") == 0 || strcmp(kind, "reloc") == 0) {
        const struct ptx_var *var = var_of(test, expect, name);
        struct clab_str hex = {0};
        if (!var)
            return;
        if (strcmp(kind, "reloc") == 0) {
            check_reloc(test, expect, var, rest);
            return;
        }
        for (uint64_t i = 0; i < var->bytes && i < 64; i++)
            clab_str_addf(&hex, "%02x", var->data ? var->data[i] : 0);
        if (strcmp(hex.text ? hex.text : "", rest) != 0)
            complain(test, expect, "%s", hex.text ? hex.text : "");
        clab_str_free(&hex);
        return;
    }
    const struct ptx_function *function = function_of(test, expect, name);
    if (!function)
        return;
    if (strcmp(kind, "function") == 0) {
        unsigned line = 0;
        sscanf(rest, "%u %n", &line, &used);
        rest += used;
        if (!function->error)
            complain(test, expect, "no error");
        else if (function->error->line != line || !strstr(function->error->message, rest))
            complain(test, expect, "%u %s", (unsigned)function->error->line, function->error->message);
    } else if (function->error) {
        complain(test, expect, "line %u: %s", (unsigned)function->error->line, function->error->message);
    } else if (strcmp(kind, "insns") == 0) {
        if (function->n_insns != (uint32_t)atoi(rest))
            complain(test, expect, "%u", (unsigned)function->n_insns);
    } else if (strcmp(kind, "rows") == 0) {
        check_rows(test, expect, function, rest);
    } else if (strcmp(kind, "cfg") == 0 || strcmp(kind, "idom") == 0 || strcmp(kind, "ipdom") == 0 ||
               strcmp(kind, "live") == 0) {
        check_graph(test, expect, kind, function, rest);
    } else if (strcmp(kind, "good") != 0) {
        complain(test, expect, "unknown expectation '%s'", kind);
    }
}

/* print(parse(text)) must parse, and print the same again. */
static void check_round_trip(struct test *test)
{
    struct clab_str first = {0}, second = {0};
    struct clab_error error = {0};
    struct ptx_module *again = NULL;
    ptx_module_print(test->module, &first);
    assert_false(first.failed);
    if (ptx_parse(first.text, first.bytes, "printed", NULL, &again, &error) != CLAB_OK) {
        complain(test, "a round trip", "%u:%u %s\n    %s", (unsigned)error.line, (unsigned)error.column,
                 error.message, error.source_line);
    } else {
        for (uint32_t i = 0; i < again->n_functions; i++)
            if (again->functions[i]->error)
                complain(test, "a round trip", "%s\n    %s", again->functions[i]->error->message,
                         again->functions[i]->error->source_line);
        ptx_module_print(again, &second);
        size_t same = 0;
        while (first.text[same] && first.text[same] == second.text[same])
            same++;
        while (same > 0 && first.text[same - 1] != '\n')
            same--;
        if (strcmp(first.text, second.text) != 0)
            complain(test, "a round trip", "the second print differs:\n%.120s\n----\n%.120s",
                     first.text + same, second.text + same);
        ptx_module_free(again);
    }
    clab_error_clear(&error);
    clab_str_free(&first);
    clab_str_free(&second);
}

static void run_file(struct test *test)
{
    size_t bytes;
    char *text = clab_file_read(test->path, 64u << 20, &bytes);
    assert_non_null(text);
    ptx_parse(text, bytes, test->path, NULL, &test->module, &test->error);
    unsigned expectations = 0;
    for (const char *at = text; (at = strstr(at, "// EXPECT: ")) != NULL;) {
        char expect[600];
        at += strlen("// EXPECT: ");
        size_t length = strcspn(at, "\r\n");
        snprintf(expect, sizeof expect, "%.*s", (int)length, at);
        check_expectation(test, expect);
        expectations++;
    }
    if (expectations == 0)
        complain(test, "(none)", "a test file without expectations");
    if (test->module)
        check_round_trip(test);
    ptx_module_free(test->module);
    clab_error_clear(&test->error);
    free(text);
}

static void every_file(void **state)
{
    (void)state;
    struct dirent **entries;
    int count = scandir("parse", &entries, NULL, alphasort);
    unsigned failures = 0, files = 0;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char path[512];
        size_t length = strlen(entries[i]->d_name);
        snprintf(path, sizeof path, "parse/%s", entries[i]->d_name);
        struct test test = {.path = path};
        if (length > 4 && strcmp(entries[i]->d_name + length - 4, ".ptx") == 0) {
            run_file(&test);
            files++;
        }
        failures += test.failures;
        free(entries[i]);
    }
    free(entries);
    assert_true(files > 0);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
