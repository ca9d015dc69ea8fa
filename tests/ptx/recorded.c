/* The parser against ptxas's recorded verdicts (forms_recorded.tsv): a sample of every row of insn.def and of
   statements near it, accepted or refused on each of the 17 targets. tools/ptx-forms writes the file and
   checks all the forms. */
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

enum { MAX_TARGETS = 17, MAX_LINES = 20000, FIRST_LINE = 2 };

struct record {
    char *text;
    char *targets[MAX_TARGETS];
    char *preamble;
    char *rows[MAX_LINES], *verdicts[MAX_LINES], *statements[MAX_LINES];
    unsigned n_targets, n_lines;
};
struct judgement {
    const struct record *record;
    char refused[MAX_LINES];
};

static void record_read(struct record *record)
{
    size_t bytes;
    record->text = clab_file_read("forms_recorded.tsv", (size_t)64 << 20, &bytes);
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
            record->rows[record->n_lines] = line;
            record->verdicts[record->n_lines] = verdicts + 1;
            record->statements[record->n_lines++] = statement + 1;
        }
    }
    assert_int_equal(record->n_targets, MAX_TARGETS);
    assert_non_null(record->preamble);
}

static void refuse(void *context, const struct clab_error *error)
{
    struct judgement *judgement = context;
    uint32_t index = error->line - FIRST_LINE;
    if (error->line >= FIRST_LINE && index < judgement->record->n_lines)
        judgement->refused[index] = 1;
}

static void every_statement(void **state)
{
    (void)state;
    struct record *record = calloc(1, sizeof *record);
    struct judgement *judgement = calloc(1, sizeof *judgement);
    assert_non_null(record);
    assert_non_null(judgement);
    record_read(record);
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
            if (accepts != (judgement->refused[i] == 0) && failures++ < 20)
                print_error("%s %s: ptxas %s, we do not: %s\n", record->rows[i], record->targets[t],
                            accepts ? "accepts" : "refuses", record->statements[i]);
        }
        ptx_module_free(module);
        clab_str_free(&text);
    }
    free(record->text);
    free(record);
    free(judgement);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_statement)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
