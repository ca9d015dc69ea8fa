/* What each instruction is for. PTX: from its row in insn.def (class and section), spaces and types. SASS:
   from the patterns of sass.def. */
#include <stdio.h>
#include <string.h>

#include "inspect/listing.h"

/* PTX rows by class and by how their section begins; the first line that fits wins. */
static const struct {
    const char *class, *section;
    enum clab_group group;
} ptx_groups[] = {
    {"ALU", "cvt", CLAB_GROUP_MOVE},
    {"ALU", "selp", CLAB_GROUP_MOVE},
    {"ALU", "slct", CLAB_GROUP_MOVE},
    {"ALU", "prmt", CLAB_GROUP_MOVE},
    {"ALU", "", CLAB_GROUP_ALU},
    {"FLOAT", "", CLAB_GROUP_FLOAT},
    {"MOVE", "", CLAB_GROUP_MOVE},
    {"CONTROL", "call", CLAB_GROUP_CALL},
    {"CONTROL", "griddepcontrol", CLAB_GROUP_GRID},
    {"CONTROL", "", CLAB_GROUP_CONTROL},
    {"WARP", "", CLAB_GROUP_WARP},
    {"MEMORY", "mapa", CLAB_GROUP_ADDRESS},
    {"MEMORY", "cvta", CLAB_GROUP_ADDRESS},
    {"MEMORY", "getctarank", CLAB_GROUP_ADDRESS},
    {"MEMORY", "isspacep", CLAB_GROUP_ADDRESS},
    {"MEMORY", "ld", CLAB_GROUP_MEMORY},
    {"MEMORY", "st", CLAB_GROUP_MEMORY},
    {"MEMORY", "", CLAB_GROUP_CACHE},
    {"ATOMIC", "", CLAB_GROUP_ATOMIC},
    {"BARRIER", "barrier.cluster", CLAB_GROUP_CLUSTER},
    {"BARRIER", "mbarrier", CLAB_GROUP_MBARRIER},
    {"BARRIER", "cp.async.mbarrier", CLAB_GROUP_MBARRIER},
    {"BARRIER", "", CLAB_GROUP_BARRIER},
    {"FENCE", "", CLAB_GROUP_FENCE},
    {"ASYNC", "clusterlaunchcontrol", CLAB_GROUP_CLC},
    {"ASYNC", "cp.async.bulk", CLAB_GROUP_BULK},
    {"ASYNC", "cp.reduce.async.bulk", CLAB_GROUP_BULK},
    {"ASYNC", "tensormap", CLAB_GROUP_BULK},
    {"ASYNC", "st.bulk", CLAB_GROUP_BULK},
    {"ASYNC", "", CLAB_GROUP_ASYNC},
    {"MATRIX", "", CLAB_GROUP_MATRIX},
    {"TCGEN05", "", CLAB_GROUP_TENSOR},
    {"TEXTURE", "", CLAB_GROUP_TEXTURE},
    {"SURFACE", "", CLAB_GROUP_TEXTURE},
    {"MULTIMEM", "", CLAB_GROUP_MULTIMEM},
    {"VIDEO", "", CLAB_GROUP_VIDEO},
};

static enum clab_group ptx_group(const struct ptx_row_info *row)
{
    for (size_t i = 0; i < sizeof ptx_groups / sizeof *ptx_groups; i++)
        if (strcmp(row->class, ptx_groups[i].class) == 0 &&
            strncmp(row->section, ptx_groups[i].section, strlen(ptx_groups[i].section)) == 0)
            return ptx_groups[i].group;
    return CLAB_GROUP_OTHER;
}

static unsigned ptx_width(const struct ptx_insn *insn)
{
    const unsigned elements = ptx_has(insn, PTX_MOD_V2)   ? 2
                              : ptx_has(insn, PTX_MOD_V4) ? 4
                              : ptx_has(insn, PTX_MOD_V8) ? 8
                                                          : 1;
    return insn->n_types > 0 ? elements * ptx_types[insn->types[insn->n_types - 1]].bits / 8 : 0;
}

/* The state space of ld, st, atom, red; "generic" when none is written. */
static const char *ptx_space(const struct ptx_insn *insn)
{
    const char *space = insn->n_spaces > 0 ? ptx_space_text[insn->spaces[0]] : "generic";
    return strcmp(space, "shared::cta") == 0 ? "shared" : strncmp(space, "param", 5) == 0 ? "param" : space;
}

static const char *ptx_what(struct clab_listing *listing, struct clab_code_insn *insn)
{
    const struct ptx_insn *from = insn->ptx;
    const struct ptx_row_info *row = &ptx_rows[from->row];
    const char *space = ptx_space(from);
    switch (insn->group) {
    case CLAB_GROUP_MEMORY:
        insn->is_generic = strcmp(space, "generic") == 0 && strcmp(row->section, "ldu") != 0;
        insn->group = insn->is_generic                        ? CLAB_GROUP_GENERIC
                      : strcmp(space, "shared::cluster") == 0 ? CLAB_GROUP_REMOTE
                      : strcmp(space, "local") == 0           ? CLAB_GROUP_LOCAL
                                                              : CLAB_GROUP_MEMORY;
        return clab_arena_printf(&listing->arena, "%s %s, %u bytes",
                                 row->section[0] == 'l' ? "load" : "store", space, ptx_width(from));
    case CLAB_GROUP_ATOMIC:
        insn->is_generic = strcmp(space, "generic") == 0;
        return clab_arena_printf(&listing->arena, "atomic %s%s", space,
                                 strncmp(row->section, "red", 3) == 0 ? ", no result" : "");
    case CLAB_GROUP_ALU:
    case CLAB_GROUP_FLOAT:
    case CLAB_GROUP_MOVE:
    case CLAB_GROUP_CONTROL:
    case CLAB_GROUP_VIDEO:
        return "";
    default:
        return insn->opcode;
    }
}

/* --- SASS */

static const struct {
    const char *pattern;
    enum clab_group group;
    const char *what;
} sass_groups[] = {
#define SASS(pattern, group, what) {pattern, CLAB_GROUP_##group, what},
#include "inspect/sass.def"
#undef SASS
};

/* Bytes of a memory access, from the opcode's suffixes. */
static unsigned sass_width(const char *opcode)
{
    static const struct {
        const char *suffix;
        unsigned bytes;
    } widths[] = {{".256", 32}, {".128", 16}, {".64", 8}, {".U16", 2},
                  {".S16", 2},  {".16", 2},   {".U8", 1}, {".S8", 1}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const char *at = strstr(opcode, widths[i].suffix);
        const size_t bytes = strlen(widths[i].suffix);
        if (at != NULL && (at[bytes] == '.' || at[bytes] == '\0'))
            return widths[i].bytes;
    }
    return 4;
}

static const char *sass_what(struct clab_listing *listing, struct clab_code_insn *insn, const char *what)
{
    const bool described = strstr(insn->operands, "desc[") != NULL;
    if (strcmp(what, "=") == 0)
        return insn->opcode;
    insn->is_generic = strstr(what, "generic") != NULL && described;
    if (strstr(what, "generic") == NULL || insn->is_generic)
        return insn->group == CLAB_GROUP_ATOMIC || what[0] == '\0'
                   ? what
                   : clab_arena_printf(&listing->arena, "%s, %u bytes", what, sass_width(insn->opcode));
    /* Without a descriptor: ptxas emits these for .shared::cluster, whose window they go through. */
    const char *rest = strchr(what, ',');
    const int verb = (int)strcspn(what, " ");
    if (insn->group == CLAB_GROUP_ATOMIC)
        return clab_arena_printf(&listing->arena, "atomic shared::cluster%s", rest != NULL ? rest : "");
    insn->group = CLAB_GROUP_REMOTE;
    return clab_arena_printf(&listing->arena, "%.*s shared::cluster, %u bytes", verb, what,
                             sass_width(insn->opcode));
}

static void classify_sass(struct clab_listing *listing, struct clab_code_insn *insn)
{
    /* mapa puts a CTA's rank into the top byte of an address (H200: measured addresses are rank << 24 |
     * offset). */
    if (clab_glob("*PRMT*", insn->opcode) && strstr(insn->operands, ", 0x654, ") != NULL) {
        insn->group = CLAB_GROUP_ADDRESS;
        insn->what = "PRMT 0x654 (mapa)";
        return;
    }
    insn->group = CLAB_GROUP_OTHER;
    insn->what = insn->opcode;
    for (size_t i = 0; i < sizeof sass_groups / sizeof *sass_groups; i++)
        if (clab_glob(sass_groups[i].pattern, insn->opcode)) {
            insn->group = sass_groups[i].group;
            insn->what = sass_what(listing, insn, sass_groups[i].what);
            return;
        }
}

clab_status clab_listing_classify(struct clab_listing *listing, struct clab_error *error)
{
    for (uint32_t i = 0; i < listing->n_insns; i++) {
        struct clab_code_insn *insn = &listing->insns[i];
        if (insn->ptx != NULL) {
            insn->group = ptx_group(&ptx_rows[insn->ptx->row]);
            insn->what = ptx_what(listing, insn);
        } else {
            classify_sass(listing, insn);
        }
        if (insn->what == NULL)
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the listing of '%s'", listing->entry);
    }
    return CLAB_OK;
}
