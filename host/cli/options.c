/* Option parsing for the subcommands: long options only, values by "=" or the next word. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"

static clab_status unknown(const struct clab_option *options, const char *word, struct clab_error *error)
{
    const char *names[64];
    size_t n = 0;
    for (const struct clab_option *o = options; o->name != NULL && n < 64; o++)
        names[n++] = o->name;
    const char *nearest = clab_nearest_name(word, names, n);
    clab_error_set(error, CLAB_USAGE, "unknown option %s", word);
    return nearest != NULL ? clab_error_remedy(error, "did you mean %s?", nearest)
                           : clab_error_remedy(error, "--help lists the options");
}

clab_status clab_options_parse(struct clab_option *options, int argc, char **argv, const char **positional,
                               size_t max_positional, size_t *out_positional, struct clab_error *error)
{
    bool only_positional = false;
    *out_positional = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_positional && word[0] == '-' && word[1] != '-' && word[1] != '\0')
            return unknown(options, word, error);
        if (only_positional || strncmp(word, "--", 2) != 0) {
            if (*out_positional == max_positional)
                return clab_error_set(error, CLAB_USAGE, "unexpected argument '%s'", word);
            positional[(*out_positional)++] = word;
            continue;
        }
        if (word[2] == '\0') {
            only_positional = true;
            continue;
        }
        const char *equals = strchr(word, '=');
        size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
        struct clab_option *option = options;
        while (option->name != NULL &&
               !(strlen(option->name) == length && memcmp(option->name, word, length) == 0))
            option++;
        if (option->name == NULL)
            return unknown(options, word, error);
        const bool again = option->set;
        option->set = true;
        if (option->kind == CLAB_OPTION_FLAG) {
            if (equals != NULL)
                return clab_error_set(error, CLAB_USAGE, "%s takes no value", option->name);
            continue;
        }
        const char *value = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (value == NULL || (value[0] == '\0' && equals != NULL))
            return clab_error_set(error, CLAB_USAGE, "%s needs a value", option->name);
        if (again && option->kind == CLAB_OPTION_TEXT)
            return clab_error_set(error, CLAB_USAGE, "%s was given twice: '%s' and '%s'", option->name,
                                  option->text, value);
        option->text = value;
        if (option->kind == CLAB_OPTION_LIST) {
            if (option->count == CLAB_MAX_REPEAT)
                return clab_error_set(error, CLAB_USAGE, "%s was given more than %d times", option->name,
                                      CLAB_MAX_REPEAT);
            option->list[option->count++] = value;
        }
    }
    return CLAB_OK;
}

const struct clab_option *clab_option_get(const struct clab_option *options, const char *name)
{
    static const struct clab_option absent = {0};
    for (const struct clab_option *o = options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return &absent;
}

clab_status clab_option_number(const struct clab_option *option, long long low, long long high,
                               long long *out_value, struct clab_error *error)
{
    char *end;
    errno = 0;
    long long value = strtoll(option->text, &end, 10);
    if (errno != 0 || end == option->text || *end != '\0' || value < low || value > high)
        return clab_error_set(error, CLAB_USAGE, "%s wants a number from %lld to %lld, got '%s'",
                              option->name, low, high, option->text);
    *out_value = value;
    return CLAB_OK;
}

clab_status clab_cli_source_check(const char *path, struct clab_error *error)
{
    static const char *const endings[] = {".cu", ".ptx", ".cubin", ".fatbin"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (dot != NULL && strcmp(dot, endings[i]) == 0)
            return CLAB_OK;
    clab_error_set(error, CLAB_USAGE,
                   "%s is not a kernel file: its name ends in none of .cu, .ptx, .cubin, .fatbin", path);
    return CLAB_USAGE;
}

clab_status clab_cli_file_check(const char *path, struct clab_error *error)
{
    struct stat info;
    int code = stat(path, &info) != 0 ? errno : 0;
    if (code == 0 && S_ISDIR(info.st_mode))
        code = EISDIR;
    else if (code == 0 && !S_ISREG(info.st_mode)) /* a pipe that nobody writes to would be waited for */
        return clab_error_set(error, CLAB_USAGE, "cannot read %s: it is no regular file", path);
    else if (code == 0 && access(path, R_OK) != 0)
        code = errno;
    return code == 0 ? CLAB_OK
                     : clab_error_set(error, CLAB_USAGE, "cannot read %s: %s", path, strerror(code));
}

/* Options whose value is a word for a compiler, left as it is. */
static bool takes_raw(const char *word)
{
    return strcmp(word, "--option") == 0 || strcmp(word, "--a") == 0 || strcmp(word, "--b") == 0;
}

/* A copy of argv in which the short options have their long forms. Heap array; NULL when memory is out. */
static char **lengthen(int argc, char **argv, int *out_argc)
{
    char **words = calloc((size_t)argc * 2 + 1, sizeof *words);
    int n = 0;
    for (int i = 0; i < argc && words != NULL; i++) {
        const char *option = strncmp(argv[i], "-I", 2) == 0   ? "--include"
                             : strncmp(argv[i], "-D", 2) == 0 ? "--define"
                             : strncmp(argv[i], "-o", 2) == 0 ? "--out"
                                                              : NULL;
        if (option == NULL || (i > 0 && takes_raw(argv[i - 1]))) {
            words[n++] = argv[i];
            continue;
        }
        words[n++] = (char *)(uintptr_t)option;
        if (argv[i][2] != '\0')
            words[n++] = argv[i] + 2;
    }
    *out_argc = n;
    return words;
}

clab_status clab_options_parse_compiler(struct clab_option *options, int argc, char **argv,
                                        const char **positional, size_t max_positional,
                                        size_t *out_positional, struct clab_error *error)
{
    int count = 0;
    char **words = lengthen(argc, argv, &count);
    *out_positional = 0;
    if (words == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the options");
    clab_status status =
        clab_options_parse(options, count, words, positional, max_positional, out_positional, error);
    free(words); /* the values are argv's own text */
    return status;
}

void clab_cli_compiler_words(const struct clab_option *options, struct clab_compile_request *request)
{
    const struct clab_option *include = clab_option_get(options, "--include"),
                             *define = clab_option_get(options, "--define"),
                             *raw = clab_option_get(options, "--option");
    request->include_dirs = include->list;
    request->include_dir_count = include->count;
    request->defines = define->list;
    request->define_count = define->count;
    request->options = raw->list;
    request->option_count = raw->count;
}
