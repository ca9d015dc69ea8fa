/* Runs the data files of cases/: experiment files whose comments say how they are asked for and what must
   come of it.

     -- RUN: --set n=0 --cluster 2,4 --variant a --with k.ptx:e --check --device {"cc":"8.0"} --timeout 300
   --memory 8
     -- EXPECT: error experiment 12 buffers.input.count: wanted     status, line (0: none), part of the
   message
     -- EXPECT: remedy did you mean                                  part of the error's remedy
     -- EXPECT: rows[1].launch.grid[0] = 32768                       a value of the plan
     -- EXPECT: count rows = 4                                       the length of a list of the plan
     -- ROWS: [{...}]                                                judge the predictions with these records
     -- EXPECT: verdict 1 held "detail                               verdict of the first, part of its detail
     -- TWIN: plan.ok.lua                                            the silent twin, when it is not X.ok.lua

   RUN and ROWS may be repeated; the EXPECT lines after one belong to it. A file with no EXPECT is an error,
   and every file X.lua that expects an error has a silent twin, X.ok.lua or the one it names, which expects
   none. Run from the folder of this file: test_lab_cases [CASE]. */
#include "base/str.h"
#include "lab/experiment.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 64

struct group {
    char *words[MAX_WORDS]; /* of RUN */
    size_t n_words;
    char *rows;
    json_t *plan, *verdicts;
    clab_status status;
    struct clab_error error;
    bool ran;
};

static const char *status_name(clab_status status)
{
    switch (status) {
    case CLAB_OK:
        return "ok";
    case CLAB_USAGE:
        return "usage";
    case CLAB_EXPERIMENT:
        return "experiment";
    case CLAB_INTERNAL:
        return "internal";
    case CLAB_NO_MEMORY:
        return "memory";
    default:
        return "other";
    }
}

static void group_fini(struct group *group)
{
    for (size_t i = 0; i < group->n_words; i++)
        free(group->words[i]);
    free(group->rows);
    json_decref(group->plan);
    json_decref(group->verdicts);
    clab_error_clear(&group->error);
    memset(group, 0, sizeof *group);
}

static void group_run(const char *path, struct group *group)
{
    const char *sets[MAX_WORDS], *variants[MAX_WORDS], *withs[MAX_WORDS];
    struct clab_lab_request request = {
        .experiment = path, .sets = sets, .variants = variants, .withs = withs};
    json_t *device = NULL;
    for (size_t i = 0; i < group->n_words; i++) {
        const char *word = group->words[i], *value = i + 1 < group->n_words ? group->words[i + 1] : "";
        if (strcmp(word, "--check") == 0) {
            request.check = true;
            continue;
        }
        i++;
        if (strcmp(word, "--set") == 0)
            sets[request.n_sets++] = value;
        else if (strcmp(word, "--cluster") == 0)
            request.clusters = value;
        else if (strcmp(word, "--variant") == 0)
            variants[request.n_variants++] = value;
        else if (strcmp(word, "--with") == 0)
            withs[request.n_withs++] = value;
        else if (strcmp(word, "--device") == 0)
            device = json_loads(value, 0, NULL);
        else if (strcmp(word, "--timeout") == 0)
            request.timeout_ms = atoi(value);
        else if (strcmp(word, "--memory") == 0)
            request.max_bytes = (size_t)atoi(value) << 20;
        else
            fprintf(stderr, "unknown word in RUN: %s\n", word);
    }
    request.device = device;
    group->status = clab_lab_plan(&request, &group->plan, &group->error);
    if (group->status == CLAB_OK && group->rows != NULL) {
        json_t *rows = json_loads(group->rows, 0, NULL);
        group->status = clab_lab_judge(group->plan, rows, &group->verdicts, &group->error);
        json_decref(rows);
    }
    json_decref(device);
    group->ran = true;
}

/* The plan's value at "rows[1].launch.grid[0]"; NULL: there is none. */
static const json_t *plan_value(const json_t *value, const char *path)
{
    while (value != NULL && *path != '\0') {
        char key[64];
        size_t bytes = strcspn(path, ".[");
        if (*path == '[') {
            value = json_array_get(value, strtoul(path + 1, (char **)&path, 10));
            path += *path == ']';
        } else {
            snprintf(key, sizeof key, "%.*s", (int)bytes, path);
            value = json_object_get(value, key);
            path += bytes;
        }
        path += *path == '.';
    }
    return value;
}

static bool check_value(const struct group *group, const char *expect, char *why, size_t why_bytes)
{
    bool count = strncmp(expect, "count ", 6) == 0;
    const char *equals = strstr(expect, " = ");
    char path[128];
    if (equals == NULL) {
        snprintf(why, why_bytes, "cannot be understood");
        return false;
    }
    snprintf(path, sizeof path, "%.*s", (int)(equals - expect) - (count ? 6 : 0), expect + (count ? 6 : 0));
    const json_t *got = plan_value(group->plan, path);
    char *dump = NULL;
    if (count && got != NULL) {
        if (asprintf(&dump, "%zu", json_array_size(got)) < 0)
            dump = NULL;
    } else if (got != NULL) {
        dump = json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    }
    bool same = dump != NULL && strcmp(dump, equals + 3) == 0;
    snprintf(why, why_bytes, "got %s", dump != NULL ? dump : "nothing");
    free(dump);
    return same;
}

static bool check_expect(const struct group *group, const char *expect, char *why, size_t why_bytes)
{
    char status[32] = "", verdict[32] = "";
    unsigned number = 0;
    int used = 0;
    const struct clab_error *error = &group->error;
    if (sscanf(expect, "error %31s %u %n", status, &number, &used) == 2) {
        snprintf(why, why_bytes, "got %s %u %s", status_name(group->status), error->line, error->message);
        return strcmp(status, status_name(group->status)) == 0 && error->line == number &&
               group->status != CLAB_OK && strstr(error->message, expect + used) != NULL &&
               (number == 0 || strstr(error->file, ".lua") != NULL);
    }
    if (strncmp(expect, "remedy ", 7) == 0) {
        snprintf(why, why_bytes, "got '%s'", error->remedy);
        return strstr(error->remedy, expect + 7) != NULL;
    }
    if (group->status != CLAB_OK) {
        snprintf(why, why_bytes, "got error %s %u %s", status_name(group->status), error->line,
                 error->message);
        return false;
    }
    if (strncmp(expect, "verdict ", 8) == 0) {
        const char *rest = strstr(expect, "\"");
        if (rest == NULL || sscanf(expect, "verdict %u %n", &number, &used) != 1 || number == 0)
            return false;
        snprintf(verdict, sizeof verdict, "%.*s", (int)(rest - expect) - used - 1, expect + used);
        const json_t *judged = json_array_get(group->verdicts, number - 1);
        const char *got = json_string_value(json_object_get(judged, "verdict")),
                   *detail = json_string_value(json_object_get(judged, "detail"));
        snprintf(why, why_bytes, "got %s \"%s", got != NULL ? got : "none", detail != NULL ? detail : "");
        return got != NULL && strcmp(got, verdict) == 0 && strstr(detail, rest + 1) != NULL;
    }
    return check_value(group, expect, why, why_bytes);
}

/* Splits RUN's text at blanks; braces keep a JSON text together. */
static void split_words(struct group *group, const char *text)
{
    while (*text != '\0' && group->n_words < MAX_WORDS) {
        size_t bytes = 0;
        int depth = 0;
        text += strspn(text, " ");
        for (; text[bytes] != '\0' && (depth > 0 || text[bytes] != ' '); bytes++)
            depth += (text[bytes] == '{') - (text[bytes] == '}');
        if (bytes > 0)
            group->words[group->n_words++] = strndup(text, bytes);
        text += bytes;
    }
}

/* *out_expects_error: whether an error is expected; `twin` gets the path of the silent twin
   when the file names it. */
static unsigned run_case(const char *path, bool *out_expects_error, char twin[300])
{
    size_t bytes;
    char *text = clab_file_read(path, 1 << 20, &bytes), *save = NULL, why[1400];
    unsigned failed = 0, expects = 0;
    struct group group = {0};
    *out_expects_error = false;
    for (char *line = text != NULL ? strtok_r(text, "\n", &save) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "-- RUN:", 7) == 0) {
            group_fini(&group);
            split_words(&group, line + 7);
        } else if (strncmp(line, "-- TWIN: ", 9) == 0) {
            snprintf(twin, 300, "cases/%.200s", line + 9);
        } else if (strncmp(line, "-- ROWS:", 8) == 0) {
            group_fini(&group);
            group.rows = strdup(line + 8);
        } else if (strncmp(line, "-- EXPECT: ", 11) == 0) {
            expects++;
            *out_expects_error = *out_expects_error || strncmp(line + 11, "error ", 6) == 0;
            if (!group.ran)
                group_run(path, &group);
            if (!check_expect(&group, line + 11, why, sizeof why)) {
                failed++;
                printf("%s\n- %s\n+ %s\n", path, line + 11, why);
            }
        }
    }
    group_fini(&group);
    free(text);
    if (expects == 0) {
        printf("%s: has no EXPECT\n", path);
        failed++;
    }
    if (failed > 0)
        printf("  again: cd tests/lab && test_lab_cases %s\n", path);
    return failed;
}

static int is_case(const struct dirent *entry)
{
    size_t bytes = strlen(entry->d_name);
    return bytes > 4 && strcmp(entry->d_name + bytes - 4, ".lua") == 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    unsigned failed = 0;
    bool expects_error;
    char twin[300];
    if (argc > 1)
        return run_case(argv[1], &expects_error, twin) > 0;
    int n = scandir("cases", &entries, is_case, alphasort);
    for (int i = 0; i < n; i++) {
        char path[300];
        snprintf(path, sizeof path, "cases/%s", entries[i]->d_name);
        snprintf(twin, sizeof twin, "%.*s.ok.lua", (int)strlen(path) - 4, path);
        failed += run_case(path, &expects_error, twin) > 0;
        if (expects_error && strstr(path, ".ok.lua") != NULL) {
            printf("%s: a silent twin must expect no error\n", path);
            failed++;
        } else if (expects_error && (access(twin, R_OK) != 0 || strstr(twin, ".ok.lua") == NULL)) {
            printf("%s: has no silent twin %s\n", path, twin);
            failed++;
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    printf("%d files, %u failed\n", n, failed);
    return n <= 0 || failed > 0;
}
