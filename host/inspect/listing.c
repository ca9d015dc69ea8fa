/* What both readers of code share: names of levels and groups, the tokens of operands, globs. */
#include "inspect/listing.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *clab_level_name(enum clab_level level)
{
    return level == CLAB_LEVEL_PTX ? "ptx" : "sass";
}

static const struct {
    const char *text;
    bool is_critical;
} groups[CLAB_GROUP_COUNT] = {
#define GROUP(id, text, is_critical) {text, is_critical},
#include "inspect/groups.def"
#undef GROUP
};

const char *clab_group_name(enum clab_group group)
{
    return groups[group].text;
}

bool clab_group_is_critical(enum clab_group group)
{
    return groups[group].is_critical;
}

static bool starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static bool goes_on(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* A dot belongs to a SASS label (.L_x_3) at its start only: "R2.64" is a register and a suffix, "%tid.x" a
   name and a suffix. */
size_t clab_token(const char *at, bool *out_is_name)
{
    const char *end = at + 1;
    *out_is_name = starts_name(*at) && (*at != '.' || at[1] == 'L');
    if (*out_is_name || isdigit((unsigned char)*at))
        while (goes_on(*end))
            end++;
    return (size_t)(end - at);
}

static bool is_digits(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return bytes > 0;
}

struct clab_name clab_name_get(const struct clab_listing *listing, const char *text, size_t bytes)
{
    const struct clab_name *known = clab_map_get(&listing->names, text, bytes);
    if (known != NULL)
        return *known;
    static const struct {
        const char *sass, *prefix;
    } files[] = {{"UR", "ur"}, {"UP", "up"}, {"R", "r"}, {"P", "p"}, {"B", "b"}, {"SB", "sb"}};
    for (size_t i = 0; listing->level == CLAB_LEVEL_SASS && i < sizeof files / sizeof *files; i++) {
        const size_t length = strlen(files[i].sass);
        if (bytes > length && memcmp(text, files[i].sass, length) == 0 &&
            is_digits(text + length, bytes - length))
            return (struct clab_name){.kind = CLAB_NAME_REGISTER, .prefix = files[i].prefix};
    }
    return (struct clab_name){.kind = CLAB_NAME_OTHER};
}

bool clab_operand(const char *operands, uint32_t index, const char **out_start, size_t *out_bytes)
{
    const char *start = operands;
    int depth = 0;
    if (*operands == '\0')
        return false;
    for (const char *at = operands;; at++) {
        if (*at == '[' || *at == '{' || *at == '(')
            depth++;
        else if (*at == ']' || *at == '}' || *at == ')')
            depth--;
        if (*at != '\0' && (*at != ',' || depth > 0))
            continue;
        if (index-- == 0) {
            while (*start == ' ')
                start++;
            *out_start = start;
            *out_bytes = (size_t)(at - start);
            return true;
        }
        if (*at == '\0')
            return false;
        start = at + 1;
    }
}

bool clab_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

void clab_code_text(const struct clab_code_insn *insn, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s%s%s%s%s", insn->guard, insn->guard[0] != '\0' ? " " : "", insn->opcode,
             insn->operands[0] != '\0' ? " " : "", insn->operands);
}

void clab_listing_free(struct clab_listing *listing)
{
    clab_map_free(&listing->names);
    clab_arena_free(&listing->arena);
    memset(listing, 0, sizeof *listing);
}
