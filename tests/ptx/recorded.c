/* The parser against ptxas's recorded verdicts. forms_recorded.tsv: a sample of every row of insn.def and of
   statements near it, accepted or refused on each of the 17 targets; tools/ptx-forms writes the file and
   checks all the forms. operands.tsv, statements.tsv: statements about operands and spellings, in the same
   form. modules.tsv, calls.tsv: modules written from the manual, and calls that pass everything for
   everything. tools/ptx-verdicts asks ptxas about these four, and describes them. */
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

enum { MAX_TARGETS = 17, MAX_LINES = 20000, FIRST_LINE = 2, SHOWN = 60 };

struct record {
    char *text;
    char *targets[MAX_TARGETS];
    char *preamble;
    char *rows[MAX_LINES], *verdicts[MAX_LINES], *statements[MAX_LINES];
    bool excused[MAX_LINES]; /* a reason is given: a difference is known */
    unsigned n_targets, n_lines;
};
struct judgement {
    const struct record *record;
    char refused[MAX_LINES];
};

static void record_read(struct record *record, const char *path)
{
    size_t bytes;
    record->text = clab_file_read(path, (size_t)64 << 20, &bytes);
    assert_non_null(record->text);
    char *save = NULL;
    for (char *line = strtok_r(record->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "# sm_", 5) == 0) {
            char *inner = NULL;
            for (char *t = strtok_r(line + 2, " ", &inner); t; t = strtok_r(NULL, " ", &inner)) {
                assert_true(record->n_targets < MAX_TARGETS);
                record->targets[record->n_targets++] = t;
            }
        } else if (line[0] == '!') {
            record->preamble = line + 1;
        } else if (line[0] != '#') {
            char *verdicts = strchr(line, '\t'), *statement = verdicts ? strchr(verdicts + 1, '\t') : NULL;
            assert_non_null(statement);
            assert_true(record->n_lines < MAX_LINES);
            *verdicts = *statement = 0;
            char *reason = strchr(statement + 1, '\t');
            record->excused[record->n_lines] = reason != NULL;
            if (reason)
                *reason = 0;
            record->rows[record->n_lines] = line;
            record->verdicts[record->n_lines] = verdicts + 1;
            record->statements[record->n_lines++] = statement + 1;
        }
    }
    assert_true(record->n_targets > 0);
    assert_non_null(record->preamble);
}

static void refuse(void *context, const struct clab_error *error)
{
    struct judgement *judgement = context;
    uint32_t index = error->line - FIRST_LINE;
    if (error->line >= FIRST_LINE && index < judgement->record->n_lines)
        judgement->refused[index] = 1;
}

static void every_statement(const char *path)
{
    struct record *record = calloc(1, sizeof *record);
    struct judgement *judgement = calloc(1, sizeof *judgement);
    assert_non_null(record);
    assert_non_null(judgement);
    record_read(record, path);
    judgement->record = record;
    unsigned failures = 0;
    for (unsigned t = 0; t < record->n_targets; t++) {
        struct clab_str text = {0};
        struct ptx_parse_options options = {.fault = refuse, .fault_context = judgement};
        struct ptx_module *module = NULL;
        struct clab_error error = {0};
        const char *mark = strstr(record->preamble, "TARGET");
        clab_str_add_bytes(&text, record->preamble, (size_t)(mark - record->preamble));
        clab_str_addf(&text, "%s%s\n", record->targets[t], mark + strlen("TARGET"));
        for (unsigned i = 0; i < record->n_lines; i++)
            clab_str_addf(&text, "%s\n", record->statements[i]);
        clab_str_add(&text, "ret; }\n");
        memset(judgement->refused, 0, sizeof judgement->refused);
        if (ptx_parse(text.text, text.bytes, "recorded", &options, &module, &error) != CLAB_OK)
            fail_msg("%s: line %u: %s", record->targets[t], (unsigned)error.line, error.message);
        for (unsigned i = 0; i < record->n_lines; i++) {
            bool accepts = record->verdicts[i][t] == '+';
            bool differs = accepts != (judgement->refused[i] == 0);
            if (differs != record->excused[i] && failures++ < SHOWN)
                print_error("%s %s: ptxas %s, we %s: %s\n", record->rows[i], record->targets[t],
                            accepts ? "accepts" : "refuses",
                            differs ? "do not" : "do too, although a difference is known",
                            record->statements[i]);
        }
        ptx_module_free(module);
        clab_str_free(&text);
    }
    free(record->text);
    free(record);
    free(judgement);
    assert_int_equal(failures, 0);
}

static void every_form(void **state)
{
    (void)state;
    every_statement("forms_recorded.tsv");
}

static void every_operand(void **state)
{
    (void)state;
    every_statement("operands.tsv");
}

static void every_spelling(void **state)
{
    (void)state;
    every_statement("statements.tsv");
}

/* Is the module good, with every function in it? */
static bool module_good(const char *text, size_t bytes, char *why, size_t size)
{
    struct ptx_module *module = NULL;
    struct clab_error error = {0};
    snprintf(why, size, "%s", "");
    if (ptx_parse(text, bytes, "module", NULL, &module, &error) != CLAB_OK)
        snprintf(why, size, "%s", error.message);
    for (uint32_t i = 0; module && i < module->n_functions && !why[0]; i++)
        if (module->functions[i]->error)
            snprintf(why, size, "%s", module->functions[i]->error->message);
    ptx_module_free(module);
    clab_error_clear(&error);
    return !why[0];
}

/* A line's text: \\n and its kind are characters, and a head comes before what does not name its version. */
static void module_text(struct clab_str *out, const char *line)
{
    if (strncmp(line, ".version", 8) != 0)
        clab_str_add(out, ".version 9.0\n.target sm_90\n.address_size 64\n");
    for (; *line; line++) {
        static const char letters[] = "nrtfv", characters[] = "\n\r\t\f\v";
        const char *letter = line[0] == '\\' && line[1] ? strchr(letters, line[1]) : NULL;
        clab_str_add_bytes(out, letter ? &characters[letter - letters] : line, 1);
        line += letter != NULL;
    }
}

static void modules_of(const char *path, unsigned least)
{
    size_t bytes;
    unsigned failures = 0, count = 0;
    char *all = clab_file_read(path, (size_t)64 << 20, &bytes), *save = NULL;
    assert_non_null(all);
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#')
            continue;
        assert_true((line[0] == '+' || line[0] == '-') && line[1] == '\t');
        char why[1100], *reason = strchr(line + 2, '\t');
        if (reason)
            *reason++ = 0;
        struct clab_str text = {0};
        module_text(&text, line + 2);
        bool good = module_good(text.text, text.bytes, why, sizeof why), accepts = line[0] == '+';
        count++;
        if ((good == accepts) == (reason != NULL) && failures++ < SHOWN)
            print_error("ptxas %s, we %s%s: %s\n  %s\n", accepts ? "accepts" : "refuses",
                        good ? "accept" : "refuse", reason ? ", although a difference is known" : "",
                        line + 2, why);
        clab_str_free(&text);
    }
    free(all);
    assert_true(count > least);
    assert_int_equal(failures, 0);
}

static void every_module(void **state)
{
    (void)state;
    modules_of("modules.tsv", 3000);
}

static void every_call(void **state)
{
    (void)state;
    modules_of("calls.tsv", 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form), cmocka_unit_test(every_operand),
                                       cmocka_unit_test(every_spelling), cmocka_unit_test(every_module),
                                       cmocka_unit_test(every_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
