/* Canonical texts: what two aligned instructions are compared by and shown as. A register gets a name where
   it is written; where two instructions that belong together write, both get the same. A name thus stands for
   a value, not for a register, and an allocation that differs leaves no trace. Labels are named by the blocks
   that belong together, parameters by their number, variables by where they are first used. PTX types whose
   sign does not matter lose it (add.s32 and add.u32 are add.b32). Left out: .reuse, a hint to the operand
   collector. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/diff.h"

/* What a register holds: the value's number, and which word of it. */
struct slot {
    uint32_t value; /* 0 none yet */
    uint32_t word;
};
struct side {
    const struct clab_listing *listing;
    struct clab_map slots;
    const uint32_t *partner;
    const char **labels;
};
struct canon {
    struct clab_arena *arena;
    struct side sides[2];
    uint32_t n_values;
    bool failed;
};

static struct slot *slot_of(struct canon *canon, struct side *side, const char *name, size_t bytes)
{
    struct slot *slot = clab_map_get(&side->slots, name, bytes);
    if (slot != NULL)
        return slot;
    slot = clab_arena_alloc(canon->arena, sizeof *slot);
    char *key = clab_arena_strndup(canon->arena, name, bytes);
    if (slot == NULL || key == NULL || !clab_map_set(&side->slots, key, bytes, slot)) {
        canon->failed = true;
        return NULL;
    }
    return slot;
}

/* Words of a SASS result: from the opcode's width. */
static uint32_t words_of(const char *opcode)
{
    static const struct {
        const char *part;
        uint32_t words;
    } widths[] = {{".128", 4}, {".64", 2}, {".WIDE", 2}, {"CS2R ", 2}, {"DFMA", 2}, {"DADD", 2}, {"DMUL", 2}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (strstr(opcode, widths[i].part) != NULL)
            return widths[i].words;
    return 1;
}

/* First byte of kernel parameters in constant bank 0: 0x210 on sm_90, 0x380 from sm_100 on (ptxas 13.0.88).
 */
static unsigned long parameter_base(const struct clab_listing *listing)
{
    return listing->target.sm >= 100 ? 0x380 : 0x210;
}

static void put_register(struct canon *canon, struct side *side, const char *at, size_t bytes,
                         const char *prefix, struct clab_str *out)
{
    struct slot *slot = slot_of(canon, side, at, bytes);
    if (slot == NULL)
        return;
    if (slot->value == 0)
        slot->value = ++canon->n_values;
    clab_str_addf(out, "%s%u", prefix, (unsigned)slot->value);
    if (slot->word > 0)
        clab_str_addf(out, "+%u", (unsigned)slot->word);
}

/* One stretch of operands with names replaced. */
static void put_canonical(struct canon *canon, struct side *side, const char *at, const char *end,
                          struct clab_str *out)
{
    bool is_name;
    while (at < end) {
        const size_t bytes = clab_token(at, &is_name);
        const struct clab_name name =
            is_name ? clab_name_get(side->listing, at, bytes) : (struct clab_name){0};
        char *stop;
        if (side->listing->level == CLAB_LEVEL_SASS && strncmp(at, ".reuse", 6) == 0) {
            at += 6;
            continue;
        }
        if (side->listing->level == CLAB_LEVEL_SASS && strncmp(at, "c[0x0][0x", 9) == 0) {
            const unsigned long offset = strtoul(at + 7, &stop, 16), base = parameter_base(side->listing);
            if (*stop == ']' && offset >= base && offset < base + 4096) {
                clab_str_addf(out, "c[param+%lu]", offset - base);
                at = stop + 1;
                continue;
            }
        }
        if (name.kind == CLAB_NAME_REGISTER)
            put_register(canon, side, at, bytes, name.prefix, out);
        else if (name.kind == CLAB_NAME_LABEL && name.ordinal < side->listing->n_blocks)
            clab_str_add(out, side->labels[name.ordinal]);
        else if (name.kind == CLAB_NAME_PARAMETER)
            clab_str_addf(out, "param%u", (unsigned)name.ordinal);
        else
            clab_str_add_bytes(out, at, bytes);
        at += bytes;
    }
}

/* Gives the registers of the written operands new values: shared with the other side's where both write. */
static void write_results(struct canon *canon, struct side *side, const struct clab_code_insn *insn,
                          uint32_t first_value)
{
    const char *start;
    size_t bytes;
    uint32_t value = first_value;
    for (uint32_t k = 0; k < insn->n_written && clab_operand(insn->operands, k, &start, &bytes); k++) {
        bool is_name;
        for (const char *at = start; at < start + bytes;) {
            const size_t token = clab_token(at, &is_name);
            const struct clab_name name =
                is_name ? clab_name_get(side->listing, at, token) : (struct clab_name){0};
            if (name.kind == CLAB_NAME_REGISTER) {
                struct slot *slot = slot_of(canon, side, at, token);
                const uint32_t words = side->listing->level == CLAB_LEVEL_SASS &&
                                               (name.prefix[0] == 'r' || strcmp(name.prefix, "ur") == 0)
                                           ? words_of(insn->opcode)
                                           : 1;
                if (slot != NULL)
                    *slot = (struct slot){value, 0};
                for (uint32_t w = 1; w < words; w++) {
                    char next[16];
                    const size_t digits = strcspn(at, "0123456789");
                    const int length = snprintf(next, sizeof next, "%.*s%lu", (int)digits, at,
                                                strtoul(at + digits, NULL, 10) + w);
                    slot = slot_of(canon, side, next, (size_t)length);
                    if (slot != NULL)
                        *slot = (struct slot){value, w};
                }
                value++;
            }
            at += token;
        }
    }
}

static uint32_t count_results(const struct side *side, const struct clab_code_insn *insn)
{
    const char *start;
    size_t bytes;
    uint32_t n = 0;
    for (uint32_t k = 0; k < insn->n_written && clab_operand(insn->operands, k, &start, &bytes); k++) {
        bool is_name;
        for (const char *at = start; at < start + bytes;) {
            const size_t token = clab_token(at, &is_name);
            n += is_name && clab_name_get(side->listing, at, token).kind == CLAB_NAME_REGISTER;
            at += token;
        }
    }
    return n;
}

/* Whether an instruction does the same whatever the sign of its operands' type. */
static bool ignores_sign(const struct clab_code_insn *insn)
{
    static const char *const always[] = {"mov", "add", "sub", "shl", "selp"};
    const char *section = ptx_rows[insn->ptx->row].section;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(section, always[i]) == 0)
            return !ptx_has(insn->ptx, PTX_MOD_SAT);
    if (strcmp(section, "mul") == 0 || strcmp(section, "mad") == 0)
        return ptx_has(insn->ptx, PTX_MOD_LO);
    return strcmp(section, "setp") == 0 && (ptx_has(insn->ptx, PTX_MOD_EQ) || ptx_has(insn->ptx, PTX_MOD_NE));
}

const char *clab_canonical_opcode(const struct clab_code_insn *insn, char *text, size_t bytes)
{
    const size_t length = strlen(insn->opcode);
    if (insn->ptx == NULL || length < 4 || length >= bytes || !ignores_sign(insn))
        return insn->opcode;
    const char *type = strrchr(insn->opcode, '.');
    if (type == NULL || (type[1] != 'u' && type[1] != 's') || type[2] < '0' || type[2] > '9')
        return insn->opcode;
    memcpy(text, insn->opcode, length + 1);
    text[type + 1 - insn->opcode] = 'b';
    return text;
}

/* The text in three parts, so that results are named after the sources are read. */
struct parts {
    struct clab_str guard, results, sources;
};

static void read_sources(struct canon *canon, struct side *side, const struct clab_code_insn *insn,
                         struct parts *parts)
{
    const char *start = insn->operands;
    size_t bytes;
    if (insn->guard[0] != '\0')
        put_canonical(canon, side, insn->guard, insn->guard + strlen(insn->guard), &parts->guard);
    if (clab_operand(insn->operands, insn->n_written, &start, &bytes))
        put_canonical(canon, side, start, start + strlen(start), &parts->sources);
}

static void name_results(struct canon *canon, struct side *side, const struct clab_code_insn *insn,
                         struct parts *parts)
{
    const char *start, *end;
    size_t bytes;
    if (insn->n_written == 0 || !clab_operand(insn->operands, insn->n_written - 1u, &start, &bytes))
        return;
    end = start + bytes;
    put_canonical(canon, side, insn->operands, end, &parts->results);
}

static const char *join(struct canon *canon, const struct clab_code_insn *insn, struct parts *parts)
{
    struct clab_str text = {0};
    char opcode[256];
    if (parts->guard.bytes > 0)
        clab_str_addf(&text, "%s ", parts->guard.text);
    clab_str_add(&text, clab_canonical_opcode(insn, opcode, sizeof opcode));
    if (parts->results.bytes > 0)
        clab_str_addf(&text, " %s", parts->results.text);
    if (parts->sources.bytes > 0)
        clab_str_addf(&text, "%s %s", parts->results.bytes > 0 ? "," : "", parts->sources.text);
    const char *copy = text.failed ? NULL : clab_arena_strdup(canon->arena, text.text);
    clab_str_free(&text);
    clab_str_free(&parts->guard);
    clab_str_free(&parts->results);
    clab_str_free(&parts->sources);
    canon->failed = canon->failed || copy == NULL;
    return copy != NULL ? copy : "";
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* How many of the first sources may change places. */
static uint32_t commuting(const struct clab_code_insn *insn)
{
    static const char *const two[] = {"add", "mul", "mad", "fma",   "min",  "max",
                                      "and", "or",  "xor", "mul24", "mad24"};
    static const char *const sass_two[] = {"FADD",  "FMUL",  "FFMA",  "DADD",  "DMUL",
                                           "DFMA",  "HADD2", "HMUL2", "HFMA2", "FMNMX",
                                           "IMNMX", "IMAD",  "IADD",  "VIADD", "VIMNMX"};
    if (insn->ptx != NULL) {
        for (size_t i = 0; i < sizeof two / sizeof *two; i++)
            if (strcmp(ptx_rows[insn->ptx->row].section, two[i]) == 0)
                return 2;
        return 0;
    }
    const size_t root = strcspn(insn->opcode, ".");
    if (root == 5 && memcmp(insn->opcode, "IADD3", 5) == 0)
        return 3;
    for (size_t i = 0; i < sizeof sass_two / sizeof *sass_two; i++)
        if (strlen(sass_two[i]) == root && memcmp(insn->opcode, sass_two[i], root) == 0)
            return 2;
    return 0;
}

/* Sources with the first `n` in order of their text; heap. */
static char *sorted(const char *sources, uint32_t n)
{
    char *parts[3] = {NULL, NULL, NULL}, *text = NULL;
    const char *start, *rest;
    size_t bytes;
    bool good = clab_operand(sources, n - 1, &start, &bytes);
    rest = good ? start + bytes : "";
    for (uint32_t i = 0; i < n && good; i++)
        good = clab_operand(sources, i, &start, &bytes) && (parts[i] = strndup(start, bytes)) != NULL;
    if (good) {
        struct clab_str joined = {0};
        qsort(parts, n, sizeof *parts, by_text);
        for (uint32_t i = 0; i < n; i++)
            clab_str_addf(&joined, "%s, ", parts[i]);
        clab_str_add(&joined, rest);
        text = clab_str_take(&joined);
    }
    for (uint32_t i = 0; i < n; i++)
        free(parts[i]);
    return text;
}

static bool swapped(const struct clab_code_insn *insn, const struct parts *a, const struct parts *b)
{
    const uint32_t n = commuting(insn);
    if (n == 0 || a->sources.bytes == 0 || b->sources.bytes == 0 ||
        strcmp(a->guard.text != NULL ? a->guard.text : "", b->guard.text != NULL ? b->guard.text : "") != 0)
        return false;
    char *x = sorted(a->sources.text, n), *y = sorted(b->sources.text, n);
    const bool equal = x != NULL && y != NULL && strcmp(x, y) == 0;
    free(x);
    free(y);
    return equal;
}

static void fill_row(struct canon *canon, struct clab_diff_row *row)
{
    const struct clab_code_insn *insns[2] = {NULL, NULL};
    struct parts parts[2] = {{{0}, {0}, {0}}, {{0}, {0}, {0}}};
    for (unsigned s = 0; s < 2; s++)
        if (row->insn[s] != CLAB_NOWHERE)
            insns[s] = &canon->sides[s].listing->insns[row->insn[s]];
    if (insns[0] != NULL && insns[1] != NULL) {
        /* What neither side has written yet: one value for both, where the sources have one shape. */
        const char *x = "", *y = "";
        size_t bytes;
        if (!clab_operand(insns[0]->operands, insns[0]->n_written, &x, &bytes) ||
            !clab_operand(insns[1]->operands, insns[1]->n_written, &y, &bytes))
            x = y = "";
        while (*x != '\0' && *y != '\0') {
            bool name_x, name_y;
            const size_t bx = clab_token(x, &name_x);
            const size_t by = clab_token(y, &name_y);
            if (name_x && name_y &&
                clab_name_get(canon->sides[0].listing, x, bx).kind == CLAB_NAME_REGISTER &&
                clab_name_get(canon->sides[1].listing, y, by).kind == CLAB_NAME_REGISTER) {
                struct slot *sx = slot_of(canon, &canon->sides[0], x, bx),
                            *sy = slot_of(canon, &canon->sides[1], y, by);
                if (sx != NULL && sy != NULL && sx->value == 0 && sy->value == 0)
                    sx->value = sy->value = ++canon->n_values;
            } else if (name_x != name_y || (!name_x && (bx != by || memcmp(x, y, bx) != 0))) {
                break;
            }
            x += bx;
            y += by;
        }
    }
    uint32_t results = 0;
    for (unsigned s = 0; s < 2; s++)
        if (insns[s] != NULL) {
            const uint32_t n = count_results(&canon->sides[s], insns[s]);
            results = n > results ? n : results;
            read_sources(canon, &canon->sides[s], insns[s], &parts[s]);
        }
    const uint32_t first = canon->n_values + 1;
    canon->n_values += results;
    for (unsigned s = 0; s < 2; s++)
        if (insns[s] != NULL) {
            write_results(canon, &canon->sides[s], insns[s], first);
            name_results(canon, &canon->sides[s], insns[s], &parts[s]);
        }
    const bool both = insns[0] != NULL && insns[1] != NULL;
    char opcodes[2][256];
    const bool turned = both &&
                        strcmp(clab_canonical_opcode(insns[0], opcodes[0], sizeof opcodes[0]),
                               clab_canonical_opcode(insns[1], opcodes[1], sizeof opcodes[1])) == 0 &&
                        swapped(insns[0], &parts[0], &parts[1]);
    for (unsigned s = 0; s < 2; s++)
        row->texts[s] = insns[s] != NULL ? join(canon, insns[s], &parts[s]) : NULL;
    row->op = !both ? (insns[0] != NULL ? CLAB_ROW_ONLY_A : CLAB_ROW_ONLY_B)
              : strcmp(row->texts[0], row->texts[1]) == 0 ? CLAB_ROW_SAME
              : turned                                    ? CLAB_ROW_SWAPPED
                                                          : CLAB_ROW_CHANGED;
}

/* Labels: a block of A and the block of B that most of its instructions belong to share a name, in A's order.
 */
static bool name_blocks(struct canon *canon)
{
    const struct clab_listing *a = canon->sides[0].listing, *b = canon->sides[1].listing;
    uint32_t *other = clab_arena_array(canon->arena, (size_t)a->n_blocks + 1, sizeof *other);
    uint32_t *votes = clab_arena_array(canon->arena, (size_t)b->n_blocks + 1, sizeof *votes);
    bool *named = clab_arena_array(canon->arena, (size_t)b->n_blocks + 1, sizeof *named);
    if (other == NULL || votes == NULL || named == NULL)
        return false;
    for (uint32_t x = 0; x < a->n_blocks; x++) {
        const struct clab_code_block *block = &a->blocks[x];
        memset(votes, 0, ((size_t)b->n_blocks + 1) * sizeof *votes);
        other[x] = CLAB_NOWHERE;
        for (uint32_t i = block->first; i < block->first + block->count; i++)
            if (canon->sides[0].partner[i] != CLAB_NOWHERE)
                votes[b->insns[canon->sides[0].partner[i]].block]++;
        for (uint32_t y = 0; y < b->n_blocks; y++)
            if (votes[y] > 0 && !named[y] && (other[x] == CLAB_NOWHERE || votes[y] > votes[other[x]]))
                other[x] = y;
        if (other[x] != CLAB_NOWHERE)
            named[other[x]] = true;
        canon->sides[0].labels[x] =
            clab_arena_printf(canon->arena, other[x] != CLAB_NOWHERE ? "L%u" : "La%u", (unsigned)x);
        if (canon->sides[0].labels[x] == NULL)
            return false;
        if (other[x] != CLAB_NOWHERE)
            canon->sides[1].labels[other[x]] = canon->sides[0].labels[x];
    }
    for (uint32_t y = 0; y < b->n_blocks; y++)
        if (canon->sides[1].labels[y] == NULL &&
            (canon->sides[1].labels[y] = clab_arena_printf(canon->arena, "Lb%u", (unsigned)y)) == NULL)
            return false;
    return true;
}

bool clab_canonical(struct clab_diff *diff, const struct clab_alignment *alignment)
{
    struct canon canon = {.arena = &diff->arena};
    bool good = true;
    for (unsigned s = 0; s < 2; s++) {
        canon.sides[s].listing = diff->sides[s];
        canon.sides[s].partner = alignment->partner[s];
        canon.sides[s].labels =
            clab_arena_array(&diff->arena, (size_t)diff->sides[s]->n_blocks + 1, sizeof(char *));
        diff->labels[s] = canon.sides[s].labels;
        good = good && canon.sides[s].labels != NULL;
    }
    good = good && name_blocks(&canon);
    for (size_t i = 0; i < diff->n_rows && good && !canon.failed; i++)
        fill_row(&canon, &diff->rows[i]);
    clab_map_free(&canon.sides[0].slots);
    clab_map_free(&canon.sides[1].slots);
    return good && !canon.failed;
}
