/* Reads what NVIDIA's disassemblers print (CUDA Binary Utilities 13.0, "nvdisasm", "cuobjdump"). The format
   is not documented; this is what nvdisasm 13.2 and cuobjdump 13.2 write for cubins of sm_90 to sm_121:

       .section .text.NAME,...           nvdisasm: the function's section; device functions follow in it by
   label Function : NAME                   cuobjdump .L_x_3:                           label
       //## File "F", line N [inlined at "G", line M]      -g, -gi: innermost first; holds until the next such
   line
       //## File ".nv_debug_ptx_txt", line N               -gp: line of the PTX
       (offset)  @!P0 LDG.E R0, desc[UR4][R2.64] ;          instruction and its offset

   Padding after the last instruction (NOP, and the branch to itself before it) is left out. */
#include "base/str.h"
#include "inspect/listing.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTX_TEXT ".nv_debug_ptx_txt"

struct reader {
    struct clab_listing *out;
    const char *const *not_own;
    struct clab_str functions; /* for the message: those that there are */
    bool found, inside, failed;
    struct clab_place place;
    bool chain_open, place_is_own; /* source lines right before an instruction belong together */
    uint32_t ptx_line;
    size_t insn_capacity, label_capacity, n_labels;
    struct label {
        const char *name;
        uint32_t insn;
    } * labels;
};

static bool is_own(const struct reader *r, const char *file)
{
    for (const char *const *folder = r->not_own; folder != NULL && *folder != NULL; folder++)
        if ((*folder)[0] != '\0' && strncmp(file, *folder, strlen(*folder)) == 0)
            return false;
    /* Headers of a toolkit that is not the one found here. */
    return strstr(file, "/targets/") == NULL && strstr(file, "/cooperative_groups") == NULL;
}

static void add_label(struct reader *r, const char *name, size_t bytes)
{
    struct label *grown =
        clab_arena_grow(&r->out->arena, r->labels, r->n_labels, &r->label_capacity, sizeof *r->labels);
    char *copy = clab_arena_strndup(&r->out->arena, name, bytes);
    if (grown == NULL || copy == NULL) {
        r->failed = true;
        return;
    }
    r->labels = grown;
    r->labels[r->n_labels++] = (struct label){copy, r->out->n_insns};
}

/* `//## File "F", line N inlined at "G", line M`: the line that it starts with. */
static void read_file_line(struct reader *r, const char *line)
{
    const char *name = strchr(line, '"'), *end = name != NULL ? strchr(name + 1, '"') : NULL;
    if (end == NULL || strncmp(end, "\", line ", 8) != 0)
        return;
    const uint32_t number = (uint32_t)strtoul(end + 8, NULL, 10);
    const size_t bytes = (size_t)(end - name - 1);
    if (bytes >= strlen(PTX_TEXT) &&
        memcmp(name + 1, PTX_TEXT, strlen(PTX_TEXT)) == 0) { /* nvJitLink appends a number */
        r->ptx_line = number;
        return;
    }
    char *file = clab_arena_strndup(&r->out->arena, name + 1, bytes);
    if (file == NULL) {
        r->failed = true;
        return;
    }
    clab_unescape(file);
    if (!r->chain_open || (!r->place_is_own && is_own(r, file))) {
        r->place = (struct clab_place){file, number};
        r->place_is_own = is_own(r, file);
    }
    r->chain_open = true;
}

static bool is_predicate(const char *operand, size_t bytes)
{
    return bytes <= 4 && (operand[0] == 'P' || (operand[0] == 'U' && operand[1] == 'P'));
}

/* Leading operands that are written. Results come first, with the predicates that are results too beside
   them: "IADD3 R0, P2, P3, …" (carries out), "ISETP P0, PT, …" (two predicates), "ATOM PT, R11, …". */
static uint8_t count_written(const char *opcode, const char *operands)
{
    static const char *const none[] = {
        "ST*",    "RED",     "RED.*", "REDG*",     "REDAS*", "BRA*",     "BRX*",    "JM*",    "EXIT*",
        "RET*",   "CALL*",   "BAR*",  "MEMBAR*",   "CCTL*",  "ERRBAR*",  "CGA*",    "FENCE*", "UCGABAR*",
        "NOP*",   "BSYNC*",  "WARP*", "DEPBAR*",   "UBLK*",  "UTMA*",    "LDGD*",   "LDGST*", "YIELD*",
        "NANOS*", "ACQBULK", "KILL*", "UGETNEXT*", "BREAK*", "PREEXIT*", "ARRIVES*"};
    const char *start;
    size_t bytes;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (clab_glob(none[i], opcode))
            return 0;
    if (!clab_operand(operands, 0, &start, &bytes) || start[0] == '[')
        return 0;
    if (is_predicate(start, bytes)) {
        if (!clab_operand(operands, 1, &start, &bytes))
            return 1;
        return is_predicate(start, bytes) || (start[0] != '[' && strstr(opcode, "SETP") == NULL) ? 2 : 1;
    }
    const uint8_t most = strstr(opcode, "IADD3") != NULL ? 3 : 2;
    uint8_t n = 1;
    while (n < most && clab_operand(operands, n, &start, &bytes) && is_predicate(start, bytes))
        n++;
    return n;
}

static void read_insn(struct reader *r, const char *at)
{
    struct clab_listing *out = r->out;
    char *digits_end;
    const unsigned long address = strtoul(at + 2, &digits_end, 16);
    if (digits_end == at + 2 || strncmp(digits_end, "*/", 2) != 0)
        return;
    at = digits_end + 2;
    while (*at == ' ' || *at == '\t' || *at == '{')
        at++;
    const char *end = strchr(at, ';');
    if (end == NULL)
        end = at + strcspn(at, "\n");
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    if (end == at)
        return;
    struct clab_code_insn *grown =
        clab_arena_grow(&out->arena, out->insns, out->n_insns, &r->insn_capacity, sizeof *out->insns);
    char *text = clab_arena_strndup(&out->arena, at, (size_t)(end - at));
    if (grown == NULL || text == NULL) {
        r->failed = true;
        return;
    }
    out->insns = grown;
    struct clab_code_insn *insn = &out->insns[out->n_insns++];
    memset(insn, 0, sizeof *insn);
    insn->guard = "";
    if (*text == '@') {
        insn->guard = text;
        text += strcspn(text, " ");
        if (*text != '\0')
            *text++ = '\0';
        text += strspn(text, " ");
    }
    insn->opcode = text;
    text += strcspn(text, " ");
    if (*text != '\0')
        *text++ = '\0';
    insn->operands = text + strspn(text, " ");
    insn->address = (uint32_t)address;
    insn->n_written = count_written(insn->opcode, insn->operands);
    insn->place = r->place;
    insn->ptx_line = r->ptx_line;
    r->chain_open = false;
}

/* Is this the header of a function's code, and of which? */
static const char *function_of(const char *line, size_t *out_bytes)
{
    static const char section[] = ".section\t.text.", section_blank[] = ".section .text.",
                      function[] = "Function : ";
    const char *name = NULL;
    if (strncmp(line, section, sizeof section - 1) == 0)
        name = line + sizeof section - 1;
    else if (strncmp(line, section_blank, sizeof section_blank - 1) == 0)
        name = line + sizeof section_blank - 1;
    else if (strncmp(line, function, sizeof function - 1) == 0)
        name = line + sizeof function - 1;
    if (name != NULL)
        *out_bytes = strcspn(name, ",\n\r \t");
    return name;
}

static void read_line(struct reader *r, const char *line, size_t bytes, const char *entry)
{
    size_t name_bytes;
    while (bytes > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        bytes--;
    }
    const char *name = function_of(line, &name_bytes);
    if (name != NULL) {
        r->inside = strlen(entry) == name_bytes && memcmp(name, entry, name_bytes) == 0;
        r->found = r->found || r->inside;
        clab_str_addf(&r->functions, "%s%.*s", r->functions.bytes > 0 ? ", " : "", (int)name_bytes, name);
    } else if (strncmp(line, ".section", 8) == 0 || strncmp(line, "//----", 6) == 0) {
        r->inside = false;
    } else if (r->inside && strncmp(line, "//## File", 9) == 0) {
        read_file_line(r, line);
    } else if (r->inside && strncmp(line, "/*", 2) == 0 && isxdigit((unsigned char)line[2])) {
        read_insn(r, line);
    } else if (r->inside && bytes > 1 && line[bytes - 1] == ':' && strncmp(line, ".text.", 6) != 0) {
        add_label(r, line, bytes - 1);
    }
}

static void find_syscalls(struct clab_listing *out, const char *text)
{
    struct clab_str names = {0};
    for (const char *at = strstr(text, "__cuda_syscall_"); at != NULL;
         at = strstr(at + 1, "__cuda_syscall_")) {
        char name[128];
        size_t n = 0;
        while (n + 1 < sizeof name && (isalnum((unsigned char)at[n]) || at[n] == '_')) {
            name[n] = at[n];
            n++;
        }
        name[n] = '\0';
        if (names.text == NULL || strstr(names.text, name) == NULL)
            clab_str_addf(&names, "%s%s", names.bytes > 0 ? " " : "", name);
    }
    out->syscalls = names.text != NULL ? clab_arena_strdup(&out->arena, names.text) : NULL;
    clab_str_free(&names);
}

static void find_target(struct clab_listing *out, const char *text)
{
    const char *at = strstr(text, ".target");
    if (at == NULL)
        return;
    at += strlen(".target");
    at += strspn(at, " \t");
    (void)ptx_target_parse(at, strcspn(at, " \t\r\n,"), &out->target);
}

/* --- blocks */

static bool is_root(const char *opcode, const char *root)
{
    const size_t bytes = strlen(root);
    return strncmp(opcode, root, bytes) == 0 && (opcode[bytes] == '\0' || opcode[bytes] == '.');
}

static bool ends_block(const struct clab_code_insn *insn)
{
    static const char *const roots[] = {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "KILL"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (is_root(insn->opcode, roots[i]))
            return true;
    return false;
}

/* A guard, or a condition among a branch's operands ("BRA.U UP0, `(.L_x_1)", "BRA.DIV …"). */
static bool falls_through(const struct clab_code_insn *insn)
{
    const char *start;
    size_t bytes;
    return (insn->guard[0] != '\0' && strcmp(insn->guard, "@PT") != 0 && strcmp(insn->guard, "@UPT") != 0) ||
           !ends_block(insn) ||
           (is_root(insn->opcode, "BRA") && clab_operand(insn->operands, 1, &start, &bytes));
}

/* The instruction that an operand names, by label or (cuobjdump) by address; n_insns when none. */
static uint32_t target_of(const struct reader *r, const char *operands)
{
    const struct clab_listing *out = r->out;
    const char *label = strstr(operands, "`(");
    if (label != NULL) {
        label += 2;
        const size_t bytes = strcspn(label, ")");
        for (size_t i = 0; i < r->n_labels; i++)
            if (strlen(r->labels[i].name) == bytes && memcmp(r->labels[i].name, label, bytes) == 0)
                return r->labels[i].insn;
        return out->n_insns;
    }
    const char *last = strrchr(operands, ' ');
    last = last != NULL ? last + 1 : operands;
    char *end;
    const unsigned long address = strncmp(last, "0x", 2) == 0 ? strtoul(last, &end, 16) : ULONG_MAX;
    for (uint32_t i = 0; address != ULONG_MAX && i < out->n_insns; i++)
        if (out->insns[i].address == address)
            return i;
    return out->n_insns;
}

static bool names_place(const struct clab_code_insn *insn)
{
    return ends_block(insn) || is_root(insn->opcode, "BSSY") || is_root(insn->opcode, "WARPSYNC") ||
           is_root(insn->opcode, "CALL");
}

/* The branch to itself that ptxas puts after the last instruction, and the NOPs behind it. */
static void drop_padding(struct reader *r)
{
    struct clab_listing *out = r->out;
    uint32_t n = out->n_insns;
    while (n > 0 && is_root(out->insns[n - 1].opcode, "NOP"))
        n--;
    if (n == 0)
        return;
    const struct clab_code_insn *last = &out->insns[n - 1];
    if (is_root(last->opcode, "BRA") && last->guard[0] == '\0' && target_of(r, last->operands) == n - 1)
        out->n_insns = n - 1;
}

static bool name_block(struct reader *r, const char *text, uint32_t block)
{
    struct clab_listing *out = r->out;
    struct clab_name *name = clab_arena_alloc(&out->arena, sizeof *name);
    if (name == NULL)
        return false;
    *name = (struct clab_name){.kind = CLAB_NAME_LABEL, .prefix = "L", .ordinal = block};
    return clab_map_set(&out->names, text, strlen(text), name);
}

/* cuobjdump's targets are addresses: they get names like nvdisasm's, so that what follows sees one form. */
static bool name_target(struct reader *r, struct clab_code_insn *insn, uint32_t block)
{
    struct clab_listing *out = r->out;
    const char *last = strrchr(insn->operands, ' ');
    if (strstr(insn->operands, "`(") != NULL)
        return true;
    last = last != NULL ? last + 1 : insn->operands;
    if (out->blocks[block].label[0] == '\0') {
        out->blocks[block].label =
            clab_arena_printf(&out->arena, ".L_%04x", (unsigned)out->insns[out->blocks[block].first].address);
        if (out->blocks[block].label == NULL || !name_block(r, out->blocks[block].label, block))
            return false;
    }
    insn->operands = clab_arena_printf(&out->arena, "%.*s`(%s)", (int)(last - insn->operands), insn->operands,
                                       out->blocks[block].label);
    return insn->operands != NULL;
}

static bool cut_blocks(struct reader *r)
{
    struct clab_listing *out = r->out;
    const uint32_t n = out->n_insns;
    bool *leader = clab_arena_array(&out->arena, (size_t)n + 1, sizeof *leader);
    if (leader == NULL)
        return false;
    leader[0] = true;
    for (size_t i = 0; i < r->n_labels; i++)
        if (r->labels[i].insn < n)
            leader[r->labels[i].insn] = true;
    for (uint32_t i = 0; i < n; i++) {
        if (names_place(&out->insns[i])) {
            const uint32_t target = target_of(r, out->insns[i].operands);
            if (target < n)
                leader[target] = true;
        }
        if (ends_block(&out->insns[i]))
            leader[i + 1] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        out->n_blocks += leader[i];
    out->blocks = clab_arena_array(&out->arena, (size_t)out->n_blocks + 1, sizeof *out->blocks);
    if (out->blocks == NULL)
        return false;
    uint32_t b = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        if (leader[i])
            out->blocks[++b] = (struct clab_code_block){.first = i, .label = ""};
        out->blocks[b].count++;
        out->insns[i].block = b;
    }
    bool good = true;
    for (size_t i = 0; i < r->n_labels && good; i++)
        if (r->labels[i].insn < n) {
            struct clab_code_block *block = &out->blocks[out->insns[r->labels[i].insn].block];
            if (block->label[0] == '\0' && r->labels[i].name[0] == '.')
                block->label = r->labels[i].name;
            good = name_block(r, r->labels[i].name, out->insns[r->labels[i].insn].block);
        }
    for (b = 0; b < out->n_blocks && good; b++) {
        struct clab_code_block *block = &out->blocks[b];
        const struct clab_code_insn *last = &out->insns[block->first + block->count - 1];
        block->succ = clab_arena_array(&out->arena, 2, sizeof *block->succ);
        if (block->succ == NULL)
            return false;
        const uint32_t target =
            ends_block(last) && !is_root(last->opcode, "RET") ? target_of(r, last->operands) : n;
        if (falls_through(last) && b + 1 < out->n_blocks)
            block->succ[block->n_succ++] = b + 1;
        if (target < n && (block->n_succ == 0 || block->succ[0] != out->insns[target].block))
            block->succ[block->n_succ++] = out->insns[target].block;
    }
    for (uint32_t i = 0; i < n && good; i++)
        if (names_place(&out->insns[i]) && !is_root(out->insns[i].opcode, "RET")) {
            const uint32_t target = target_of(r, out->insns[i].operands);
            if (target < n)
                good = name_target(r, &out->insns[i], out->insns[target].block);
        }
    return good;
}

clab_status clab_sass_listing(const char *text, const char *entry, const char *const *not_own,
                              struct clab_listing *out, struct clab_error *error)
{
    struct reader r = {.out = out, .not_own = not_own};
    memset(out, 0, sizeof *out);
    out->level = CLAB_LEVEL_SASS;
    out->entry = clab_arena_strdup(&out->arena, entry);
    for (const char *line = text; *line != '\0';) {
        const size_t bytes = strcspn(line, "\n");
        read_line(&r, line, bytes, entry);
        line += bytes + (line[bytes] == '\n');
    }
    clab_status status = CLAB_OK;
    if (r.functions.bytes == 0)
        status = clab_error_set(error, CLAB_LOAD, "the disassembly holds no function");
    else if (!r.found)
        status = clab_error_set(error, CLAB_NOT_FOUND, "the disassembly has no function '%s'; it has: %.600s",
                                entry, r.functions.text);
    find_target(out, text);
    find_syscalls(out, text);
    if (status == CLAB_OK) {
        drop_padding(&r);
        if (r.failed || out->entry == NULL || !cut_blocks(&r))
            status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the listing of '%s'", entry);
    }
    clab_str_free(&r.functions);
    if (status == CLAB_OK)
        status = clab_listing_classify(out, error);
    if (status == CLAB_OK)
        status = clab_listing_find_mapped(out, error);
    if (status != CLAB_OK)
        clab_listing_free(out);
    return status;
}
