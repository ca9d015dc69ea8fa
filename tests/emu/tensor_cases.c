/* Cases of tensor copies: the lines of tensor/FILE.cases, and the kernel of each (tensor_copies.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_copies.h"

/* --- lines */

static char wrong[600];

static unsigned numbers(const char *value, long long *out, unsigned max)
{
    unsigned n = 0;
    for (char *end; n < max && *value; value = *end == ',' ? end + 1 : end) {
        out[n++] = strtoll(value, &end, 0);
        if (end == value) {
            return 0;
        }
        if (*end && *end != ',') {
            return 0;
        }
    }
    return n;
}

#define COPY(to, type)               \
    for (unsigned i = 0; i < n; i++) \
    (to)[i] = (type)v[i]

static bool key_set(struct tensor_case *c, const char *key, const char *value, unsigned *n_at)
{
    long long v[2 * TENSOR_MAX_RANK] = {0};
    if (!strcmp(key, "mode")) {
        c->im2col = !strcmp(value, "im2col");
        return c->im2col || !strcmp(value, "tile");
    }
    if (!strcmp(key, "poke")) {
        char *end;
        for (const char *p = value; *p && c->n_pokes < TENSOR_MAX_POKES; p = *end == ',' ? end + 1 : end) {
            c->poke_at[c->n_pokes] = (unsigned)strtoul(p, &end, 0);
            if (*end != ':') {
                return false;
            }
            c->poke_value[c->n_pokes++] = (uint32_t)strtoul(end + 1, &end, 0);
        }
        return c->n_pokes;
    }
    const unsigned n = numbers(value, v, TENSOR_MAX_RANK);
    if (!strcmp(key, "type")) {
        c->type = (unsigned)v[0];
    } else if (!strcmp(key, "dims")) {
        COPY(c->dims, uint64_t);
        c->rank = c->map_rank = n;
    } else if (!strcmp(key, "strides")) {
        COPY(c->strides, uint64_t);
    } else if (!strcmp(key, "box")) {
        COPY(c->box, uint32_t);
    } else if (!strcmp(key, "steps")) {
        COPY(c->steps, uint32_t);
    } else if (!strcmp(key, "lower")) {
        COPY(c->lower, int);
        c->im2col = c->map_im2col = true;
    } else if (!strcmp(key, "upper")) {
        COPY(c->upper, int);
    } else if (!strcmp(key, "channels")) {
        c->channels = (uint32_t)v[0];
    } else if (!strcmp(key, "wide")) {
        c->wide = (unsigned)v[0];
    } else if (!strcmp(key, "pixels")) {
        c->pixels = (uint32_t)v[0];
    } else if (!strcmp(key, "interleave")) {
        c->interleave = (unsigned)v[0];
    } else if (!strcmp(key, "swizzle")) {
        c->swizzle = (unsigned)v[0];
    } else if (!strcmp(key, "fill")) {
        c->fill = (unsigned)v[0];
    } else if (!strcmp(key, "at")) {
        COPY(c->at, int);
        *n_at = n;
    } else if (!strcmp(key, "off")) {
        COPY(c->off, int);
    } else if (!strcmp(key, "to")) {
        c->to_bytes = (uint32_t)v[0];
    } else if (!strcmp(key, "hint")) {
        c->hint = v[0] != 0;
    } else if (!strcmp(key, "rank")) {
        c->rank = (unsigned)v[0];
    } else {
        return false;
    }
    return n > 0;
}
#undef COPY

static bool case_parse(const char *line, struct tensor_case *out)
{
    char buffer[512], *rest = buffer;
    unsigned n_at = 0;
    *out = (struct tensor_case){.steps = {1, 1, 1, 1, 1}};
    snprintf(buffer, sizeof buffer, "%s", line);
    const char *verb = strtok_r(rest, " ", &rest);
    out->verb = !strcmp(verb, "load") ? TENSOR_LOAD : !strcmp(verb, "store") ? TENSOR_STORE : TENSOR_REDUCE;
    snprintf(out->operation, sizeof out->operation, "%s", verb);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        if (!value) {
            return false;
        }
        *value++ = '\0';
        if (!key_set(out, word, value, &n_at)) {
            return false;
        }
    }
    out->text = strdup(line);
    return out->text && out->map_rank >= 1 && out->rank >= 1 && out->rank <= TENSOR_MAX_RANK &&
           n_at == out->rank && (!out->im2col || out->rank >= 3);
}

struct list {
    struct tensor_case *cases;
    size_t count;
};

/* Adds the cases of a line: the first `<<a|b>>` replaced by each alternative in turn. */
static bool line_add(struct list *list, const char *line)
{
    const char *open = strstr(line, "<<"), *close = open ? strstr(open, ">>") : NULL;
    if (!close) {
        for (size_t i = 0; i < list->count; i++) {
            if (!strcmp(list->cases[i].text, line)) {
                return true; /* another line's alternatives said so already */
            }
        }
        struct tensor_case *more = realloc(list->cases, (list->count + 1) * sizeof *more);
        if (!more) {
            return false;
        }
        list->cases = more;
        if (!case_parse(line, &more[list->count])) {
            free(more[list->count].text);
            return false;
        }
        list->count++;
        return true;
    }
    for (const char *at = open + 2; at <= close;) {
        const size_t length = strcspn(at, "|>");
        char chosen[512];
        snprintf(chosen, sizeof chosen, "%.*s%.*s%s", (int)(open - line), line, (int)length, at, close + 2);
        if (!line_add(list, chosen)) {
            return false;
        }
        at += length + 1;
    }
    return true;
}

const char *tensor_cases_read(const char *path, struct tensor_case **out_cases, size_t *out_count)
{
    struct list list = {NULL, 0};
    char line[512];
    unsigned number = 0;
    wrong[0] = '\0';
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(wrong, sizeof wrong, "%s: cannot be read", path);
        return wrong;
    }
    while (!wrong[0] && fgets(line, sizeof line, file)) {
        number++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] && line[0] != '#' && !line_add(&list, line)) {
            snprintf(wrong, sizeof wrong, "%s:%u: no case: %s", path, number, line);
        }
    }
    fclose(file);
    *out_cases = list.cases;
    *out_count = list.count;
    return wrong[0] ? wrong : NULL;
}

void tensor_cases_free(struct tensor_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(cases[i].text);
    }
    free(cases);
}

/* --- figures */

/* Of a CUtensorMapDataType. */
static unsigned element_bits(unsigned type)
{
    static const unsigned bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
    return bits[type < sizeof bits / sizeof *bits ? type : 0];
}

uint32_t tensor_box_bytes(const struct tensor_case *c)
{
    const uint32_t unit = c->interleave ? 128 * c->interleave : element_bits(c->type);
    if (c->map_im2col) {
        const uint32_t halo = (uint32_t)c->off[0], pixels = c->wide == 2   ? 128 + 4 * halo
                                                            : c->wide == 1 ? c->pixels + halo
                                                                           : c->pixels;
        return unit * pixels * (c->interleave ? 1 : c->channels) / 8;
    }
    uint32_t bits = unit;
    for (unsigned k = 0; k < c->map_rank; k++) {
        if (k == 0 && !c->interleave) {
            bits *= c->box[0];
        } else if (!c->interleave || k != c->map_rank - 2) {
            bits *= (c->box[k] + c->steps[k] - 1) / c->steps[k];
        }
    }
    return bits / 8;
}

/* --- the kernel */

static const char *mode_word(const struct tensor_case *c)
{
    return c->wide == 2 ? "im2col::w::128" : c->wide ? "im2col::w" : c->im2col ? "im2col" : "tile";
}

static void instruction(FILE *to, const struct tensor_case *c)
{
    char coordinates[64] = "", offsets[64] = "";
    for (unsigned k = 0; k < c->rank; k++) {
        snprintf(coordinates + strlen(coordinates), sizeof coordinates - strlen(coordinates), "%s%%c%u",
                 k ? ", " : "", k);
    }
    for (unsigned k = 0; c->im2col && k < (c->wide ? 2 : c->rank - 2); k++) {
        snprintf(offsets + strlen(offsets), sizeof offsets - strlen(offsets), "%s%%h%u", k ? ", " : "", k);
    }
    const char *hint = c->hint ? ".L2::cache_hint" : "", *policy = c->hint ? ", %policy" : "";
    if (c->verb == TENSOR_LOAD) {
        fprintf(
            to,
            "@%%p cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes%s [%%box], "
            "[%%map, {%s}], [bar]%s%s%s%s;\n",
            c->rank, mode_word(c), hint, coordinates, c->im2col ? ", {" : "", c->im2col ? offsets : "",
            c->im2col ? "}" : "", policy);
        fprintf(to, "mov.u32 %%i, 0;\n"
                    "again: mbarrier.try_wait.parity.shared.b64 %%q, [bar], 0;\n"
                    "add.u32 %%i, %%i, 1;\n"
                    "setp.lt.and.u32 %%r, %%i, 100, !%%q;\n"
                    "@%%r bra again;\n");
        return;
    }
    fprintf(
        to,
        "@%%p cp.%sasync.bulk.tensor.%ud.global.shared::cta%s%s.%s.bulk_group%s [%%map, {%s}], [%%box]%s;\n",
        c->verb == TENSOR_REDUCE ? "reduce." : "", c->rank, c->verb == TENSOR_REDUCE ? "." : "",
        c->verb == TENSOR_REDUCE ? c->operation : "", c->im2col ? "im2col_no_offs" : "tile", hint,
        coordinates, policy);
    fprintf(to, "cp.async.bulk.commit_group;\n"
                "cp.async.bulk.wait_group 0;\n"
                "setp.eq.u32 %%q, %%t, %%t;\n");
}

char *tensor_case_ptx(const struct tensor_case *c)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to) {
        return NULL;
    }
    const bool later = c->wide || c->type > 12 || c->swizzle > 3;
    fprintf(to, later ? ".version 8.6\n.target sm_100a\n" : ".version 8.0\n.target sm_90\n");
    fprintf(
        to,
        ".address_size 64\n"
        ".visible .entry copy(.param .u64 src, .param .u64 out, .param .align 4 .b8 at[20], "
        ".param .align 4 .b8 off[12], .param .u32 bytes, .param .u32 to, .param .align 64 .b8 map[128])\n{\n"
        ".shared .align 1024 .b8 boxes[16384];\n.shared .align 8 .b64 bar;\n"
        ".reg .b64 %%src, %%out, %%map, %%policy;\n.reg .b32 %%box, %%i, %%t, %%v, %%w, %%s, %%c<5>, %%o;\n"
        ".reg .b16 %%h<3>;\n.reg .pred %%p, %%q, %%r;\n"
        "ld.param.u64 %%src, [src];\nld.param.u64 %%out, [out];\ncvta.to.global.u64 %%src, %%src;\n"
        "cvta.to.global.u64 %%out, %%out;\n"
        "mov.b64 %%map, map;\ncvta.param.u64 %%map, %%map;\nmov.u32 %%t, %%tid.x;\n"
        "ld.param.u32 %%o, [to];\nmov.u32 %%box, boxes;\n");
    for (unsigned k = 0; k < TENSOR_MAX_RANK; k++) {
        fprintf(to, "ld.param.b32 %%c%u, [at+%u];\n", k, 4 * k);
    }
    for (unsigned k = 0; k < 3; k++) {
        fprintf(to, "ld.param.b32 %%v, [off+%u];\ncvt.u16.u32 %%h%u, %%v;\n", 4 * k, k);
    }
    fprintf(to,
            "mad.wide.u32 %%src, %%t, 4, %%src;\nmad.wide.u32 %%out, %%t, 4, %%out;\n"
            "mad.lo.u32 %%s, %%t, 4, %%box;\nadd.u32 %%box, %%box, %%o;\nmov.u32 %%i, 0;\n"
            "fill: ld.global.b32 %%v, [%%src];\nst.shared.b32 [%%s], %%v;\nadd.u64 %%src, %%src, 512;\n"
            "add.u32 %%s, %%s, 512;\nadd.u32 %%i, %%i, 1;\nsetp.lt.u32 %%q, %%i, 32;\n@%%q bra fill;\n"
            "setp.eq.u32 %%p, %%t, 0;\nld.param.u32 %%w, [bytes];\n@%%p mbarrier.init.shared.b64 [bar], 1;\n"
            "fence.proxy.async;\nbar.sync 0;\n"
            "createpolicy.fractional.L2::evict_first.b64 %%policy, 1.0;\n");
    if (c->verb == TENSOR_LOAD) {
        fprintf(to, "@%%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], %%w;\n");
    }
    instruction(to, c);
    fprintf(to, "bar.sync 0;\nsub.u32 %%s, %%s, 16384;\nmov.u32 %%i, 0;\n"
                "show: ld.shared.b32 %%v, [%%s];\nst.global.b32 [%%out], %%v;\nadd.u64 %%out, %%out, 512;\n"
                "add.u32 %%s, %%s, 512;\nadd.u32 %%i, %%i, 1;\nsetp.lt.u32 %%r, %%i, 32;\n@%%r bra show;\n"
                "selp.u32 %%v, 1, 0, %%q;\n@%%p st.global.b32 [%%out], %%v;\nret;\n}\n");
    fclose(to);
    return text;
}
