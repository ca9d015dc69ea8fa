/* Looking for PTX instructions in SASS, by lowered.def. */
#include "inspect/lowered.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *patterns;
} rows[] = {
#define LOWERED(name, patterns) {name, patterns},
#include "inspect/lowered.def"
#undef LOWERED
};

/* The patterns of the longest row that begins `name`, or NULL. */
static const char *patterns_of(const char *name)
{
    const char *best = NULL;
    size_t best_bytes = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t bytes = strlen(rows[i].name);
        if (strncmp(name, rows[i].name, bytes) == 0 && (name[bytes] == '\0' || name[bytes] == '.') &&
            bytes > best_bytes) {
            best = rows[i].patterns;
            best_bytes = bytes;
        }
    }
    return best;
}

static bool fits_one_of(const struct clab_code_insn *insn, const char *patterns)
{
    char text[1024], one[128];
    snprintf(text, sizeof text, "%s %s", insn->opcode, insn->operands);
    for (const char *at = patterns; *at != '\0';) {
        const size_t bytes = strcspn(at, "|");
        snprintf(one, sizeof one, "%.*s", (int)bytes, at);
        if (one[0] == '=' ? clab_glob(one + 1, insn->what) : clab_glob(one, text))
            return true;
        at += bytes + (at[bytes] == '|');
    }
    return false;
}

enum clab_found clab_lowered_find(const struct clab_listing *sass, const char *name,
                                  const char **out_patterns)
{
    bool calls_outside = false;
    *out_patterns = patterns_of(name);
    if (*out_patterns == NULL)
        return CLAB_NOT_JUDGED;
    for (uint32_t i = 0; i < sass->n_insns; i++) {
        if (fits_one_of(&sass->insns[i], *out_patterns))
            return CLAB_FOUND;
        calls_outside = calls_outside || strncmp(sass->insns[i].opcode, "CALL.ABS", 8) == 0;
    }
    return calls_outside ? CLAB_NOT_JUDGED : CLAB_NOT_THERE;
}
