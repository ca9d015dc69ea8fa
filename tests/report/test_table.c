/* The table of a run (host/report/table.c): what stands in each column for the kinds of rows that there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/table.h"

/* The n-th line after the rule, of the table of a JSON array of rows; valid until the next call. */
static const char *line_of(const char *rows_text, size_t n)
{
    static char line[512];
    json_t *rows = json_loads(rows_text, 0, NULL);
    assert_non_null(rows);
    struct clab_str table = {0};
    clab_run_table(rows, &table);
    json_decref(rows);
    const char *start = strstr(table.text, "---");
    assert_non_null(start);
    for (size_t i = 0; i <= n; i++) {
        start = strchr(start, '\n');
        assert_non_null(start);
        start++;
    }
    snprintf(line, sizeof line, "%.*s", (int)strcspn(start, "\n"), start);
    clab_str_free(&table);
    return line;
}

/* Whether the line has the words, one after the other, with only blanks between them. */
static void assert_words(const char *line, const char *words)
{
    char squeezed[512];
    size_t n = 0;
    for (const char *p = line; *p != '\0'; p++)
        if (*p != ' ' || (n > 0 && squeezed[n - 1] != ' '))
            squeezed[n++] = *p;
    squeezed[n] = '\0';
    assert_string_equal(squeezed, words);
}

static void a_waived_row_shows_the_cluster_that_was_asked_for(void **state)
{
    (void)state;
    static const char rows[] =
        "[{\"variant\":\"a\",\"status\":\"waived\",\"reason\":\"no\",\"params\":{\"cluster\":8},"
        "\"launch\":{\"grid\":null,\"cluster\":null}},"
        "{\"variant\":\"b\",\"status\":\"waived\",\"reason\":\"no\",\"params\":{\"cluster\":[4,2,1]},"
        "\"launch\":{\"grid\":null,\"cluster\":null}},"
        "{\"variant\":\"c\",\"status\":\"waived\",\"reason\":\"no\",\"params\":{},\"launch\":null}]";
    assert_words(line_of(rows, 0), "a 8 waived: no");
    assert_words(line_of(rows, 1), "b 4x2 waived: no");
    assert_words(line_of(rows, 2), "c - waived: no");
}

static void a_launched_row_shows_its_own(void **state)
{
    (void)state;
    static const char rows[] = "[{\"variant\":\"a\",\"status\":\"ok\",\"params\":{\"cluster\":8},"
                               "\"launch\":{\"grid\":[8,1,1],\"cluster\":[2,2,2]}},"
                               "{\"variant\":\"b\",\"status\":\"ok\",\"params\":{\"cluster\":8},"
                               "\"launch\":{\"grid\":[8,1,1],\"cluster\":null}}]";
    assert_words(line_of(rows, 0), "a 2x2x2 ok");
    assert_words(line_of(rows, 1), "b - ok");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waived_row_shows_the_cluster_that_was_asked_for),
        cmocka_unit_test(a_launched_row_shows_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
