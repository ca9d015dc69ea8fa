/* Writes out insn.def's expanded forms, and says which lines of a PTX file the parser refuses;
   tools/ptx-forms compares both with ptxas.

       ptx_forms preamble VERSION TARGET     the module's head and an entry with all the registers that forms
   use ptx_forms list [CAP]                  ROW <tab> instruction, one a line; a row of more than CAP forms
   (default 100000) is thinned evenly, which the line `# ROW n of m` tells ptx_forms count ROW <tab> number of
   forms ptx_forms check FILE                  line <tab> message for each refused statement */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ptx/checks.h"
#include "ptx/forms.h"
#include "ptx/match.h"

/* The register name of a type's n-th register, as declared in the preamble. */
static const char *register_of(enum ptx_type type, unsigned index, char *out, size_t size)
{
    const struct ptx_type_info *info = &ptx_types[type];
    const char *stem = info->text;
    if (type == PTX_NONE)
        stem = "b32";
    else if (info->class == PTX_CLASS_PACKED || info->class == PTX_CLASS_BITS || type == PTX_TF32 ||
             type == PTX_BF16 || type == PTX_F16 || type == PTX_F16X2)
        stem = info->bits == 8    ? "b8"
               : info->bits == 16 ? "b16"
               : info->bits == 32 ? "b32"
               : info->bits == 64 ? "b64"
                                  : "b128";
    else if (info->class == PTX_CLASS_FLOAT && type != PTX_F32 && type != PTX_F64)
        stem = info->bits == 8 ? "b8" : "b16";
    snprintf(out, size, "%s_%u", stem, index);
    return out;
}

static int preamble(const char *version, const char *target)
{
    static const struct {
        const char *type;
        unsigned count;
    } registers[] = {{"pred", 8}, {"b8", 16},   {"u8", 16},  {"s8", 16},   {"b16", 16},  {"u16", 16},
                     {"s16", 16}, {"b32", 300}, {"u32", 16}, {"s32", 200}, {"f32", 200}, {"b64", 16},
                     {"u64", 16}, {"s64", 16},  {"f64", 16}, {"b128", 8}};
    printf(".version %s .target %s .address_size 64 .global .align 16 .b8 var[64]; .entry forms(.param .u64 "
           "par) { ",
           version, target);
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++)
        if (strcmp(registers[i].type, "b128") != 0 || strcmp(version, "8.3") >= 0)
            printf(".reg .%s %s_<%u>; ", registers[i].type, registers[i].type, registers[i].count);
    printf("TARGETS: .branchtargets HERE; HERE:\n");
    return 0;
}

/* What an operand is written as; `at` counts registers so that they differ. */
static void operand_text(struct clab_str *out, const struct ptx_insn *insn, enum ptx_row row,
                         unsigned role_index, const struct ptx_role *role, unsigned vector, unsigned *at);

static enum ptx_type type_of_role(const struct ptx_insn *insn, const struct ptx_role *role)
{
    if (role->letter == 'p')
        return PTX_PRED;
    enum ptx_type first = insn->n_types ? (enum ptx_type)insn->types[0] : PTX_NONE;
    switch (role->by) {
    case PTX_ROLE_FIXED:
        return (enum ptx_type)role->type;
    case PTX_ROLE_INDEX:
        return role->type < insn->n_types ? (enum ptx_type)insn->types[role->type] : PTX_NONE;
    case PTX_ROLE_DOUBLE:
        return first == PTX_U16 ? PTX_U32 : first == PTX_S16 ? PTX_S32 : first == PTX_U32 ? PTX_U64 : PTX_S64;
    default:
        return PTX_NONE;
    }
}

static void address_text(struct clab_str *out, const struct ptx_insn *insn, enum ptx_row row,
                         unsigned role_index, unsigned *at)
{
    unsigned count = ptx_coordinates_of(insn, row, role_index);
    bool tmem = strncmp(ptx_rows[row].section, "tcgen05", 7) == 0 &&
                strcmp(ptx_rows[row].section, "tcgen05.commit") &&
                strcmp(ptx_rows[row].section, "tcgen05.alloc");
    clab_str_addf(out, "[%s_%u", tmem ? "b32" : "b64", (*at)++ % 16);
    if (count) {
        bool floating = insn->n_types > 1 && insn->types[1] == PTX_F32;
        bool layered = ptx_has(insn, PTX_MOD_A1D) || ptx_has(insn, PTX_MOD_A2D) ||
                       ptx_has(insn, PTX_MOD_ACUBE) || ptx_has(insn, PTX_MOD_A2DMS);
        clab_str_add(out, ", {");
        for (unsigned i = 0; i < count; i++)
            clab_str_addf(out, "%s%s_%u", i ? ", " : "",
                          layered && i == 0 ? "u32"
                          : floating        ? "f32"
                                            : "s32",
                          i);
        clab_str_add(out, "}");
    }
    clab_str_add(out, "]");
}

static void operand_text(struct clab_str *out, const struct ptx_insn *insn, enum ptx_row row,
                         unsigned role_index, const struct ptx_role *role, unsigned vector, unsigned *at)
{
    char name[32];
    enum ptx_type type = type_of_role(insn, role);
    unsigned count = role->vector == PTX_ROLE_BY_MOD ? (vector > 1 ? vector : 0) : role->vector;
    if (role->vector == 1) /* {r} or r: the latter */
        count = 0;
    switch (role->letter) {
    case 'a':
        address_text(out, insn, row, role_index, at);
        return;
    case 'i':
        clab_str_addf(out, "%d", role->n_values ? (int)role->values[0] : 1);
        return;
    case 'k':
        clab_str_add(out, "_");
        return;
    case 'l':
        clab_str_add(out, row == PTX_BRX_IDX ? "TARGETS" : "HERE");
        return;
    default:
        break;
    }
    if (role->vector == PTX_ROLE_CLASS) {
        struct ptx_fragment fragment = ptx_fragment_of(insn, row, role_index);
        count = fragment.count ? fragment.count : 1;
        if (fragment.type != PTX_NONE)
            type = fragment.type;
    }
    if (count == 0) {
        clab_str_add(out, register_of(type, (*at)++ % 8, name, sizeof name));
        return;
    }
    clab_str_add(out, "{");
    for (unsigned i = 0; i < count; i++)
        clab_str_addf(out, "%s%s", i ? ", " : "", register_of(type, i, name, sizeof name));
    clab_str_add(out, "}");
}

/* The operands of one expanded opcode: all optional ones (`full`) or none. False when that makes no
 * difference. */
static bool operands_text(struct clab_str *out, const struct ptx_insn *insn, enum ptx_row row,
                          unsigned vector, bool full)
{
    const struct ptx_form *form = &ptx_forms_get()->forms[row];
    unsigned at = 0, written = 0;
    bool any_optional = false;
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        if (role->when && !ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)))
            continue;
        if (role->optional && !role->when) {
            any_optional = true;
            if (!full)
                continue;
        }
        clab_str_add(out, written++ ? ", " : " ");
        operand_text(out, insn, row, i, role, vector, &at);
        any_optional |= role->pair == 1;
        if (role->pair == 2 || (role->pair == 1 && full)) {
            char name[32];
            clab_str_addf(out, "|%s", register_of(role->pair_type, (at++) % 8, name, sizeof name));
        }
    }
    return any_optional;
}

struct expansion {
    const struct ptx_root *root;
    const struct ptx_variant *variant;
    bool print;
};

/* Form number `index` of a variant; numbers run over the product of its slots' choices. */
static void print_form(const struct ptx_root *root, const struct ptx_variant *variant, uint64_t index)
{
    struct ptx_insn insn = {.row = variant->row};
    struct clab_str opcode = {0}, text = {0};
    unsigned vector = 1;
    clab_str_add(&opcode, root->name);
    for (unsigned s = 0; s < variant->n_slots; s++) {
        const struct ptx_slot *slot = &variant->slots[s];
        unsigned choices = slot->n_choices + (slot->optional ? 1u : 0u), pick = (unsigned)(index % choices);
        index /= choices;
        if (slot->optional && pick == 0)
            continue;
        ptx_word word = slot->choices[pick - (slot->optional ? 1u : 0u)].word;
        unsigned number = ptx_word_index(word);
        clab_str_addf(&opcode, ".%s", ptx_word_text(word));
        switch (word & PTX_WORD_KIND) {
        case PTX_WORD_TYPE:
            insn.types[insn.n_types++] = (uint8_t)number;
            break;
        case PTX_WORD_SPACE:
            insn.spaces[insn.n_spaces++] = (uint8_t)number;
            break;
        default:
            insn.mods[insn.n_mods++] = (uint16_t)number;
            insn.mod_bits[number / 64] |= UINT64_C(1) << (number % 64);
            vector = number == PTX_MOD_V2 ? 2 : number == PTX_MOD_V4 ? 4 : number == PTX_MOD_V8 ? 8 : vector;
        }
    }
    for (int full = 0; full < 2; full++) {
        text.bytes = 0;
        clab_str_add(&text, "");
        bool differs = operands_text(&text, &insn, variant->row, vector, full);
        printf("%s\t%s%s;\n", ptx_rows[variant->row].name, opcode.text, text.bytes ? text.text : "");
        if (!differs)
            break;
    }
    clab_str_free(&opcode);
    clab_str_free(&text);
}

static uint64_t product(const struct ptx_variant *variant)
{
    uint64_t count = 1;
    for (unsigned s = 0; s < variant->n_slots; s++)
        count *= variant->slots[s].n_choices + (variant->slots[s].optional ? 1u : 0u);
    return count;
}

static int list(uint64_t cap, bool count_only)
{
    const struct ptx_forms *forms = ptx_forms_get();
    uint64_t total = 0;
    for (unsigned r = 0; r < forms->n_roots; r++) {
        const struct ptx_root *root = &forms->roots[r];
        if (strcmp(root->name, "call") == 0)
            continue; /* its operands depend on declarations: tests/ptx/parse/calls.ptx */
        for (unsigned v = 0; v < root->n_variants; v++) {
            const struct ptx_variant *variant = &root->variants[v];
            uint64_t count = product(variant), step = 1;
            total += count;
            if (count_only) {
                printf("%s\t%" PRIu64 "\n", ptx_rows[variant->row].name, count);
                continue;
            }
            if (count > cap) {
                step = count / cap + 1;
                while (step % 2 == 0 || step % 3 == 0 || step % 5 == 0 ||
                       step % 7 == 0) /* so that every choice comes up */
                    step++;
                printf("# %s %" PRIu64 " of %" PRIu64 "\n", ptx_rows[variant->row].name, count / step, count);
            }
            for (uint64_t i = 0; i < count; i += step)
                print_form(root, variant, i);
        }
    }
    printf("# total %" PRIu64 "\n", total);
    return 0;
}

static void tell(void *context, const struct clab_error *error)
{
    (void)context;
    printf("%u\t%s\n", (unsigned)error->line, error->message);
}

static int check(const char *path)
{
    size_t bytes;
    char *text = clab_file_read(path, (size_t)1 << 30, &bytes);
    struct ptx_parse_options options = {.fault = tell};
    struct ptx_module *module = NULL;
    struct clab_error error = {0};
    if (!text) {
        perror(path);
        return 2;
    }
    int status = 0;
    if (ptx_parse(text, bytes, path, &options, &module, &error) != CLAB_OK) {
        fprintf(stderr, "%s:%u: %s\n", path, (unsigned)error.line, error.message);
        status = 1;
    }
    ptx_module_free(module);
    clab_error_clear(&error);
    free(text);
    return status;
}

int main(int argc, char **argv)
{
    const struct ptx_forms *forms = ptx_forms_get();
    if (!forms || forms->fault) {
        fprintf(stderr, "insn.def: row %s cannot be read\n", forms ? forms->fault : "?");
        return 2;
    }
    if (argc == 4 && strcmp(argv[1], "preamble") == 0)
        return preamble(argv[2], argv[3]);
    if (argc >= 2 && strcmp(argv[1], "list") == 0)
        return list(argc > 2 ? strtoull(argv[2], NULL, 10) : 100000, false);
    if (argc == 2 && strcmp(argv[1], "count") == 0)
        return list(0, true);
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(argv[2]);
    fprintf(stderr, "usage: ptx_forms preamble VERSION TARGET | list [CAP] | count | check FILE\n");
    return 2;
}
