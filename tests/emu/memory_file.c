/* Reading and checking of memory/FILE.ptx (memory_file.h). */
#include "memory_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

const char *memory_file_line(const char *at, const char *tag, char *out_rest, size_t size)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "// %s: ", tag);
    at = strstr(at, prefix);
    if (!at) {
        return NULL;
    }
    at += strlen(prefix);
    const size_t bytes = strcspn(at, "\n");
    snprintf(out_rest, size, "%.*s", (int)bytes, at);
    return at + bytes;
}

static const char *launch_read(char *line, struct memory_file *out)
{
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        char name[16];
        unsigned value;
        if (sscanf(word, "%15[a-z]=%u", name, &value) != 2) {
            return "a LAUNCH word cannot be read";
        }
        uint32_t *to = !strcmp(name, "grid")      ? &out->grid
                       : !strcmp(name, "block")   ? &out->block
                       : !strcmp(name, "cluster") ? &out->cluster
                       : !strcmp(name, "smem")    ? &out->shared_bytes
                                                  : NULL;
        if (!to) {
            return "LAUNCH has an unknown word";
        }
        *to = value;
        out->clustered = out->clustered || to == &out->cluster;
    }
    return NULL;
}

const char *memory_file_read(const char *path, struct memory_file *out)
{
    char line[256];
    size_t bytes;
    *out = (struct memory_file){.grid = 1, .block = 32, .cluster = 1, .seeds = 1};
    out->text = clab_file_read(path, 1u << 20, &bytes);
    if (!out->text) {
        return "cannot be read";
    }
    snprintf(out->device, sizeof out->device, "sm_90");
    if (memory_file_line(out->text, "DEVICE", line, sizeof line)) {
        snprintf(out->device, sizeof out->device, "%.15s", line);
    }
    if (memory_file_line(out->text, "SEEDS", line, sizeof line)) {
        out->seeds = (uint32_t)strtoul(line, NULL, 10);
    }
    return memory_file_line(out->text, "LAUNCH", line, sizeof line) ? launch_read(line, out) : NULL;
}

void memory_file_free(struct memory_file *file)
{
    free(file->text);
    file->text = NULL;
}

struct expect {
    unsigned first, last;
    long long a, b; /* out[i] = a i + b */
};

static bool expect_read(const char *line, struct expect *out)
{
    int used = 0;
    *out = (struct expect){0};
    if (sscanf(line, "out[%u..%u] = %lli i + %lli%n", &out->first, &out->last, &out->a, &out->b, &used) !=
            4 ||
        line[used]) {
        out->a = 0;
        used = 0;
        if (sscanf(line, "out[%u..%u] = %lli%n", &out->first, &out->last, &out->b, &used) != 3 ||
            line[used]) {
            return false;
        }
    }
    return out->first <= out->last && out->last < MEMORY_WORDS;
}

/* Whether an H200 line speaks of word i. */
static bool overridden(const struct memory_file *file, unsigned i)
{
    char line[256];
    for (const char *at = file->text; (at = memory_file_line(at, "H200", line, sizeof line));) {
        struct expect expect;
        if (expect_read(line, &expect) && i >= expect.first && i <= expect.last) {
            return true;
        }
    }
    return false;
}

static bool tag_check(const struct memory_file *file, const char *tag, const uint32_t *out_words,
                      bool hardware, unsigned *out_checks, char *out_text, size_t size)
{
    char line[256];
    const bool is_expect = !strcmp(tag, "EXPECT");
    for (const char *at = file->text; (at = memory_file_line(at, tag, line, sizeof line));) {
        struct expect expect;
        if (!expect_read(line, &expect)) {
            if (is_expect) {
                snprintf(out_text, size, "cannot read EXPECT: %.200s", line);
                return false;
            }
            continue;
        }
        ++*out_checks;
        for (unsigned i = expect.first; i <= expect.last; i++) {
            const uint32_t wanted = (uint32_t)(expect.a * (long long)i + expect.b);
            if (out_words[i] != wanted && !(hardware && is_expect && overridden(file, i))) {
                snprintf(out_text, size, "out[%u] is 0x%x, wanted 0x%x (%.200s)", i, out_words[i], wanted,
                         line);
                return false;
            }
        }
    }
    return true;
}

bool memory_file_expects(const struct memory_file *file, const uint32_t *out_words, bool hardware,
                         unsigned *out_checks, char *out_text, size_t size)
{
    return tag_check(file, "EXPECT", out_words, hardware, out_checks, out_text, size) &&
           (!hardware || tag_check(file, "H200", out_words, true, out_checks, out_text, size));
}
