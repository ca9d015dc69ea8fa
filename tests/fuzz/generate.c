/* The generator of generate.h. A kernel has registers of every type in pools that any statement may read and
   write, and pointers into every state space that no statement writes, so that an address is valid unless the
   bytes say otherwise. Forms come from the tables of host/ptx (insn.def compiled). Leaves out: forms that the
   emulator does not execute (one try in 64), and more than one function deep of calls. */
#include "generate.h"

#include <string.h>

#include "ptx/checks.h"
#include "ptx/forms.h"

enum { POOL = 6, NEST = 4, STATEMENTS = 160, LABELS = 64 };

struct generator {
    struct fuzz_source *source;
    struct clab_str *out;
    struct ptx_target target;
    unsigned n_labels, n_own;                            /* of blocks, of statements */
    unsigned open_labels[NEST], open_kind[NEST], n_open; /* of structured statements under way */
};

unsigned fuzz_below(struct fuzz_source *source, unsigned limit)
{
    unsigned value = 0;
    for (unsigned span = 1; span<limit; span = span> 1u << 16 ? limit : span << 8)
        value = value << 8 | (source->at < source->bytes ? source->data[source->at++] : 0);
    return value % limit;
}

uint64_t fuzz_word(struct fuzz_source *source)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | (source->at < source->bytes ? source->data[source->at++] : 0);
    return value;
}

static unsigned below(struct generator *g, unsigned limit)
{
    return fuzz_below(g->source, limit);
}

/* ---- which forms the emulator executes ---- */

static bool executed(enum ptx_row row)
{
    static const char *const handlers[] = {
#define INSN(id, syntax, roles, class, isa, sm, on, section, handler) #handler,
#include "ptx/insn.def"
#undef INSN
    };
    return strcmp(handlers[row], "emu_none") != 0;
}

/* ---- registers ---- */

static const struct pool {
    enum ptx_type type;
    const char *name;
} pools[] = {{PTX_PRED, "pred"}, {PTX_B8, "b8"},   {PTX_U8, "u8"},   {PTX_S8, "s8"},
             {PTX_B16, "b16"},   {PTX_U16, "u16"}, {PTX_S16, "s16"}, {PTX_B32, "b32"},
             {PTX_U32, "u32"},   {PTX_S32, "s32"}, {PTX_F32, "f32"}, {PTX_B64, "b64"},
             {PTX_U64, "u64"},   {PTX_S64, "s64"}, {PTX_F64, "f64"}, {PTX_B128, "b128"}};
#define N_POOLS (sizeof pools / sizeof pools[0])

static const char *pool_of(enum ptx_type type)
{
    const struct ptx_type_info *info = &ptx_types[type];
    for (size_t i = 0; i < N_POOLS; i++)
        if (pools[i].type == type)
            return pools[i].name;
    switch (info->bits) {
    case 8:
        return "b8";
    case 16:
        return "b16";
    case 64:
        return "b64";
    case 128:
        return "b128";
    default:
        return "b32";
    }
}

static void add_register(struct generator *g, enum ptx_type type, unsigned index)
{
    clab_str_addf(g->out, "%s_%u", pool_of(type), index % POOL);
}

/* Pointers: g global, s shared (64 bit), h shared (32 bit), q a cluster mate's shared (32 bit), n generic, l
   local, c const, m an mbarrier (32 bit), M the tensor map. */
static void add_pointer(struct generator *g, char space)
{
    clab_str_addf(g->out, "a%c_%u", space, below(g, 4));
}

static char space_letter(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_GLOBAL:
        return 'g';
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CTA:
        return 's';
    case PTX_SPACE_SHARED_CLUSTER:
        return 'q';
    case PTX_SPACE_LOCAL:
        return 'l';
    case PTX_SPACE_CONST:
        return 'c';
    case PTX_SPACE_PARAM:
    case PTX_SPACE_PARAM_ENTRY:
    case PTX_SPACE_PARAM_FUNC:
        return 'p';
    default:
        return 'n';
    }
}

static void add_address(struct generator *g, const struct ptx_insn *insn, enum ptx_row row, unsigned role,
                        unsigned nth_address)
{
    const char *section = ptx_rows[row].section;
    unsigned coordinates = ptx_coordinates_of(insn, row, role);
    enum ptx_space space = PTX_SPACE_NONE;
    if (insn->n_spaces)
        space =
            (enum ptx_space)insn->spaces[nth_address < insn->n_spaces ? nth_address : insn->n_spaces - 1u];
    char letter = space_letter(space);
    bool completes = ptx_has(insn, PTX_MOD_MBARRIER__COMPLETE_TX__BYTES);
    if (strncmp(section, "mbarrier", 8) == 0 || (completes && nth_address == 2) ||
        (completes && nth_address == 1 && insn->n_spaces < 2 && !coordinates))
        letter = 'm';
    if (coordinates || strncmp(section, "tensormap", 9) == 0)
        letter = 'M';
    unsigned trick = below(g, 24);
    clab_str_add(g->out, "[");
    if (trick == 0) { /* anything that is in a register */
        add_register(g, below(g, 2) ? PTX_U64 : PTX_U32, below(g, POOL));
    } else if (letter == 'p') {
        clab_str_addf(g->out, "%s", below(g, 2) ? "map" : "buffer");
    } else if (trick < 4 && letter == 's') {
        clab_str_add(g->out, "sh");
    } else if (trick < 4 && letter == 'g') {
        clab_str_add(g->out, "gv");
    } else if (trick < 8 && letter == 's') {
        add_pointer(g, 'h');
    } else if (trick == 9 && letter != 'M') {
        add_pointer(g, "gshqnlcm"[below(g, 8)]);
    } else if (coordinates && trick < 22) {
        bool rows = ptx_has(insn, PTX_MOD_TILE__GATHER4) || ptx_has(insn, PTX_MOD_TILE__SCATTER4);
        clab_str_addf(g->out, "aM_%u", rows ? 2 : coordinates);
    } else {
        add_pointer(g, letter);
    }
    if (trick > 20 && !coordinates)
        clab_str_addf(g->out, "+%d", below(g, 8) ? (int)below(g, 16) * 16 : (int)(int8_t)below(g, 256));
    if (coordinates) {
        bool floating = insn->n_types > 1 && insn->types[1] == PTX_F32;
        clab_str_add(g->out, ", {");
        for (unsigned i = 0; i < coordinates; i++) {
            clab_str_add(g->out, i ? ", " : "");
            if (!floating && below(g, 8))
                clab_str_addf(g->out, "ac_%u", below(g, 4));
            else
                add_register(g, floating ? PTX_F32 : PTX_S32, below(g, POOL));
        }
        clab_str_add(g->out, "}");
    }
    clab_str_add(g->out, "]");
}

/* ---- operands ---- */

static enum ptx_type type_of_role(struct generator *g, const struct ptx_insn *insn,
                                  const struct ptx_role *role)
{
    static const enum ptx_type any[] = {PTX_U32, PTX_U64, PTX_S32, PTX_S64, PTX_B32, PTX_B64};
    if (role->letter == 'p')
        return PTX_PRED;
    enum ptx_type first = insn->n_types ? (enum ptx_type)insn->types[0] : PTX_B32;
    switch (role->by) {
    case PTX_ROLE_FIXED:
        return (enum ptx_type)role->type;
    case PTX_ROLE_INDEX:
        return role->type < insn->n_types ? (enum ptx_type)insn->types[role->type] : first;
    case PTX_ROLE_DOUBLE:
        return first == PTX_U16 ? PTX_U32 : first == PTX_S16 ? PTX_S32 : first == PTX_U32 ? PTX_U64 : PTX_S64;
    default:
        return any[below(g, 6)];
    }
}

static void add_constant(struct generator *g, enum ptx_type type, const struct ptx_role *role)
{
    static const int64_t usual[] = {0,          1,           -1, 2, 31, 32,  64, 255,
                                    0x7fffffff, -0x7fffffff, 16, 8, 4,  128, 3,  7};
    const struct ptx_type_info *info = &ptx_types[type];
    if (role->n_values && role->has_range) {
        int64_t steps =
            ((int64_t)role->values[1] - role->values[0]) / (role->values[2] ? role->values[2] : 1);
        int64_t step = below(g, 4) ? below(g, 16) : below(g, 65536);
        clab_str_addf(g->out, "%lld",
                      (long long)(role->values[0] +
                                  (step > steps ? steps : step) * (role->values[2] ? role->values[2] : 1)));
    } else if (role->n_values) {
        clab_str_addf(g->out, "%d", (int)role->values[below(g, role->n_values)]);
    } else if (info->class == PTX_CLASS_FLOAT && info->bits == 32) {
        clab_str_addf(g->out, "0f%08X", (unsigned)fuzz_word(g->source));
    } else if (info->class == PTX_CLASS_FLOAT && info->bits == 64) {
        clab_str_addf(g->out, "0d%016llX", (unsigned long long)fuzz_word(g->source));
    } else if (below(g, 4)) {
        clab_str_addf(g->out, "%lld", (long long)usual[below(g, 16)]);
    } else {
        clab_str_addf(g->out, "%lld", (long long)fuzz_word(g->source));
    }
}

static void add_special(struct generator *g)
{
    const struct ptx_sreg_info *info = &ptx_sregs[below(g, PTX_SREG_COUNT)];
    clab_str_add(g->out, info->text);
    if (info->components == 4)
        clab_str_addf(g->out, ".%c", "xyzw"[below(g, 4)]);
}

static void add_scalar(struct generator *g, const struct ptx_role *role, enum ptx_type type)
{
    static const char *const symbols[] = {"gv", "sh", "lo", "cv", "helper", "gv+16", "sh+64"};
    unsigned trick = below(g, 8);
    bool written = role->letter == 'w' || role->letter == 'x';
    if (written && role->sinks && trick == 0) {
        clab_str_add(g->out, "_");
        return;
    }
    if (!written && role->letter != 'g' && trick == 1 && type != PTX_PRED) {
        add_constant(g, type, role);
        return;
    }
    if ((role->letter == 's' || role->letter == 'e') && trick < 4) {
        add_special(g);
        return;
    }
    if ((role->letter == 'y' || role->letter == 'e') && trick < 6) {
        clab_str_add(g->out, symbols[below(g, 7)]);
        return;
    }
    if (role->letter == 'p' && trick == 0)
        clab_str_add(g->out, "!");
    if (!written && (role->n_values || role->has_range)) { /* a register would rarely hold one of these */
        add_constant(g, type, role);
        return;
    }
    if (!written && ptx_types[type].bits == 64 && trick == 2) {
        add_pointer(g, "gsnlc"[below(g, 5)]);
        return;
    }
    if (!written && ptx_types[type].bits == 32 && trick == 2) {
        clab_str_addf(g->out, "ac_%u", below(g, 4));
        return;
    }
    add_register(g, type, below(g, POOL));
}

static void add_operand(struct generator *g, const struct ptx_insn *insn, enum ptx_row row, unsigned index,
                        const struct ptx_role *role, unsigned vector, unsigned *n_addresses)
{
    unsigned count = role->vector == PTX_ROLE_BY_MOD ? (vector > 1 ? vector : 0) : role->vector;
    switch (role->letter) {
    case 'a':
        add_address(g, insn, row, index, (*n_addresses)++);
        return;
    case 'i':
        add_constant(g, PTX_U8, role);
        return;
    case 'k':
        clab_str_add(g->out, "_");
        return;
    case 'l':
        clab_str_add(g->out, row == PTX_BRX_IDX ? "TARGETS" : "END");
        return;
    default:
        break;
    }
    enum ptx_type type = type_of_role(g, insn, role);
    if (role->vector == PTX_ROLE_CLASS) {
        struct ptx_fragment fragment = ptx_fragment_of(insn, row, index);
        count = fragment.count ? fragment.count : 1 + below(g, 4);
        if (fragment.type != PTX_NONE)
            type = fragment.type;
    }
    if (count == 0) {
        add_scalar(g, role, type);
        return;
    }
    clab_str_add(g->out, "{");
    unsigned first = below(g, POOL);
    for (unsigned i = 0; i < count && i < 256; i++) {
        clab_str_add(g->out, i ? ", " : "");
        add_register(g, type, first + i);
    }
    clab_str_add(g->out, "}");
}

/* ---- statements ---- */

static void add_form(struct generator *g, const struct ptx_root *root, const struct ptx_variant *variant)
{
    struct ptx_insn insn = {.row = variant->row};
    unsigned vector = 1, written = 0, n_addresses = 0;
    clab_str_add(g->out, root->name);
    for (unsigned s = 0; s < variant->n_slots; s++) {
        const struct ptx_slot *slot = &variant->slots[s];
        unsigned choices = slot->n_choices + (slot->optional ? 1u : 0u), pick = below(g, choices);
        if (slot->optional && pick == 0)
            continue;
        ptx_word word = slot->choices[pick - (slot->optional ? 1u : 0u)].word;
        unsigned number = ptx_word_index(word);
        clab_str_addf(g->out, ".%s", ptx_word_text(word));
        switch (word & PTX_WORD_KIND) {
        case PTX_WORD_TYPE:
            if (insn.n_types < PTX_MAX_TYPES)
                insn.types[insn.n_types++] = (uint8_t)number;
            break;
        case PTX_WORD_SPACE:
            if (insn.n_spaces < PTX_MAX_SPACES)
                insn.spaces[insn.n_spaces++] = (uint8_t)number;
            break;
        default:
            if (insn.n_mods < PTX_MAX_MODS)
                insn.mods[insn.n_mods++] = (uint16_t)number;
            insn.mod_bits[number / 64] |= UINT64_C(1) << (number % 64);
            vector = number == PTX_MOD_V2 ? 2 : number == PTX_MOD_V4 ? 4 : number == PTX_MOD_V8 ? 8 : vector;
        }
    }
    const struct ptx_form *form = &ptx_forms_get()->forms[variant->row];
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        if (role->when && !ptx_has(&insn, (enum ptx_mod)ptx_word_index(role->when)))
            continue;
        if (role->optional && !role->when && below(g, 2))
            continue;
        clab_str_add(g->out, written++ ? ", " : " ");
        add_operand(g, &insn, variant->row, i, role, vector, &n_addresses);
        if (role->pair == 2 || (role->pair == 1 && below(g, 2))) {
            clab_str_add(g->out, "|");
            add_register(g, role->pair_type, below(g, POOL));
        }
    }
    clab_str_add(g->out, ";\n");
}

static void any_form(struct generator *g)
{
    const struct ptx_forms *forms = ptx_forms_get();
    static const char *const rare[] = {"ASYNC", "BARRIER", "MATRIX", "ATOMIC"};
    /* Most roots are arithmetic; half of the time it is one of those with more behind them. */
    const char *class = below(g, 2) ? rare[below(g, 4)] : NULL;
    for (unsigned tries = 0; tries < 8; tries++) {
        unsigned first = below(g, forms->n_roots);
        for (unsigned i = 0; class && i < forms->n_roots; i++) {
            const struct ptx_root *root = &forms->roots[first];
            if (strcmp(ptx_rows[root->variants[0].row].class, class) == 0)
                break;
            first = (first + 1) % forms->n_roots;
        }
        const struct ptx_root *root = &forms->roots[first];
        const struct ptx_variant *variant = &root->variants[below(g, root->n_variants)];
        if (strcmp(root->name, "call") == 0 || strcmp(root->name, "ret") == 0 ||
            strcmp(root->name, "bra") == 0 || strcmp(root->name, "trap") == 0 ||
            strcmp(root->name, "exit") == 0 || strcmp(root->name, "brkpt") == 0)
            continue; /* have statements of their own, or would end nearly every kernel at once */
        if (!ptx_target_has(variant->row, g->target) || (!executed(variant->row) && below(g, 64)))
            continue;
        if (below(g, 4) == 0)
            clab_str_addf(g->out, "@%spred_%u ", below(g, 2) ? "!" : "", below(g, POOL));
        add_form(g, root, variant);
        return;
    }
}

static void open_block(struct generator *g)
{
    if (g->n_open == NEST || g->n_labels == LABELS)
        return;
    unsigned label = g->n_labels++, kind = below(g, 3);
    g->open_labels[g->n_open] = label;
    g->open_kind[g->n_open++] = kind;
    if (kind == 0) { /* a loop of a few rounds */
        clab_str_addf(g->out, "mov.u32 cnt_%u, 0;\nL%u:\n", label, label);
    } else { /* a part that some lanes skip */
        clab_str_addf(g->out, "@%spred_%u bra%s L%u;\n", below(g, 2) ? "!" : "", below(g, POOL),
                      kind == 2 ? ".uni" : "", label);
    }
}

static void close_block(struct generator *g)
{
    unsigned label = g->open_labels[--g->n_open];
    if (g->open_kind[g->n_open] == 0)
        clab_str_addf(g->out, "add.u32 cnt_%u, cnt_%u, 1;\nsetp.lt.u32 lp_%u, cnt_%u, %u;\n@lp_%u bra L%u;\n",
                      label, label, label, label, 1 + below(g, 5), label, label);
    else
        clab_str_addf(g->out, "L%u:\n", label);
}

static void special_statement(struct generator *g)
{
    static const char *const texts[] = {
        "bar.sync 0;",
        "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;",
        "mbarrier.arrive.shared.b64 _, [am_0];",
        "mbarrier.try_wait.parity.shared.b64 pred_1, [am_1], 0;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [am_1], 64;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [as_1], [ag_1], 64, [am_1];",
        "call (u32_1), helper, (u32_2);",
        "call (u32_1), ptr_call, (u32_2), PROTO;",
        "{ .param .b32 r; .param .b64 a; .param .b64 b; st.param.b64 [a], an_2; st.param.b64 [b], an_1; "
        "call.uni (r), vprintf, (a, b); }",
        "{ .param .b64 r; .param .b64 a; st.param.b64 [a], u64_1; call.uni (r), malloc, (a); ld.param.b64 "
        "u64_2, [r]; }",
        "{ .param .b64 a; st.param.b64 [a], u64_2; call.uni free, (a); }",
        "call recurse, (u32_3);",
        "mapa.shared::cluster.u32 aq_0, ah_0, 1;",
        "cvta.shared.u64 an_3, as_2;",
        "brx.idx ac_1, TARGETS;",
        "cp.async.commit_group;\ncp.async.wait_all;",
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
        "@pred_0 ret;",
        "@pred_1 exit;",
        "@pred_2 trap;",
        "activemask.b32 u32_4;\nbar.warp.sync u32_4;",
        "mbarrier.init.shared.b64 [am_2], 1;",
        "mbarrier.inval.shared.b64 [am_2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [aq_0], u32_1, [aq_3];",
        "st.u32 [au_0], u32_1;\nld.u32 u32_2, [au_1];",
        "elect.sync _|pred_1, -1;\n@pred_1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [am_3], 256;\n"
        "@pred_1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [as_1], "
        "[aM_2, "
        "{ac_0, ac_1}], [am_3];",
        "cp.async.bulk.global.shared::cta.bulk_group [ag_1], [as_0], 128;\ncp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group.read 0;",
        "WAIT%u: mbarrier.test_wait.shared.b64 pred_2, [am_2], b64_1;\n@!pred_2 bra WAIT%u;",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [as_1], [am_3];",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::"
        "all."
        "b128 [as_1], [am_3];",
        "LOCK%u: atom.global.cas.b32 u32_1, [ag_0], 0, 1;\nsetp.ne.u32 pred_3, u32_1, 0;\n@pred_3 bra "
        "LOCK%u;\n"
        "atom.global.exch.b32 u32_1, [ag_0], 0;",
        "stacksave.u64 u64_3;\nalloca.u64 u64_4, 64, 16;\ncvta.local.u64 u64_4, u64_4;\nst.u32 [u64_4], "
        "u32_1;\n"
        "stackrestore.u64 u64_3;"};
    unsigned label = g->n_own++; /* labels are used twice at most */
    clab_str_addf(g->out, texts[below(g, sizeof texts / sizeof texts[0])], label, label);
    clab_str_add(g->out, "\n");
}

static void special_register(struct generator *g)
{
    const struct ptx_sreg_info *info = &ptx_sregs[below(g, PTX_SREG_COUNT)];
    clab_str_addf(g->out, "mov.%s ", ptx_types[info->type].text);
    add_register(g, info->type, below(g, POOL));
    clab_str_addf(g->out, ", %s", info->text);
    if (info->components == 4)
        clab_str_addf(g->out, ".%c", "xyzw"[below(g, 4)]);
    clab_str_add(g->out, ";\n");
}

/* ---- the module ---- */

static void head(struct generator *g)
{
    clab_str_addf(g->out, ".version 9.0\n.target sm_%u%s\n.address_size 64\n", g->target.sm,
                  g->target.suffix == 'a'   ? "a"
                  : g->target.suffix == 'f' ? "f"
                                            : "");
    clab_str_add(g->out,
                 ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
                 ".extern .func (.param .b64 r) malloc (.param .b64 a);\n"
                 ".extern .func free (.param .b64 a);\n"
                 ".visible .global .align 128 .b8 gv[4096] = {37, 100, 32, 37, 115, 10, 0, 1, 2, 3};\n"
                 ".const .align 16 .b8 cv[256] = {37, 100, 10, 0, 5, 6, 7, 8, 9};\n"
                 ".global .u64 pointers[2] = {gv, generic(gv)+16};\n"
                 ".func (.reg .u32 r) helper (.reg .u32 a)\n{\nadd.u32 r, a, 7;\nret;\n}\n"
                 ".func recurse (.reg .u32 a)\n{\n.reg .pred p;\n.reg .u32 b;\nand.b32 b, a, 7;\n"
                 "setp.eq.u32 p, b, 0;\n@p ret;\nsub.u32 b, b, 1;\ncall recurse, (b);\nret;\n}\n");
    clab_str_addf(g->out,
                  ".visible .entry " FUZZ_ENTRY
                  " (.param .u64 buffer, .param .align 64 .b8 map[128], .param .u32 n)%s\n{\n",
                  (const char *[]){"", " .maxntid 128", " .minnctapersm 1", " .maxnreg 64"}[below(g, 4)]);
    for (size_t i = 0; i < N_POOLS; i++)
        clab_str_addf(g->out, ".reg .%s %s_<%u>;\n", pools[i].name, pools[i].name, POOL);
    clab_str_addf(
        g->out,
        ".reg .b64 ag_<4>, as_<4>, an_<4>, al_<4>, ac64_<4>, aM_<6>, au_<4>, ptr_call;\n"
        ".reg .b32 ah_<4>, aq_<4>, am_<4>, ac_<4>, cnt_<%u>, tid;\n.reg .pred lp_<%u>;\n"
        ".shared .align 1024 .b8 sh[16384];\n.local .align 16 .b8 lo[256];\n"
        "TARGETS: .branchtargets T0, T1, END;\nPROTO: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n",
        LABELS, LABELS);
}

/* Pointers and first values. Lanes get addresses 16 bytes apart, so that every width is aligned. */
static void prologue(struct generator *g)
{
    clab_str_add(
        g->out,
        "mov.u32 tid, %tid.x;\nmov.u32 ac_0, 0;\nand.b32 ac_1, tid, 1;\nand.b32 ac_2, tid, 31;\nmov.u32 "
        "ac_3, 4;\n"
        "ld.param.u64 ag_0, [buffer];\n"
        "mad.wide.u32 ag_1, ac_2, 16, ag_0;\nadd.u64 ag_2, ag_0, 4096;\nadd.u64 ag_3, ag_1, 8192;\n"
        "mov.u32 ah_0, sh;\nmad.lo.u32 ah_1, ac_2, 16, ah_0;\nadd.u32 ah_2, ah_0, 4096;\nadd.u32 ah_3, ah_1, "
        "8192;\n"
        "cvt.u64.u32 as_0, ah_0;\ncvt.u64.u32 as_1, ah_2;\ncvt.u64.u32 as_2, ah_1;\ncvt.u64.u32 as_3, ah_3;\n"
        "mov.u64 al_0, lo;\nadd.u64 al_1, al_0, 16;\nadd.u64 al_2, al_0, 64;\nadd.u64 al_3, al_0, 128;\n"
        "cvta.shared.u64 an_0, as_2;\ncvta.global.u64 an_1, ag_1;\nmov.u64 an_2, gv;\ncvta.local.u64 an_3, "
        "al_1;\n"
        "mov.u64 aM_0, map;\ncvta.param.u64 aM_0, aM_0;\nadd.u64 aM_1, ag_0, 32896;\nadd.u64 aM_2, aM_1, "
        "128;\n"
        "add.u64 aM_3, aM_1, 256;\nadd.u64 aM_4, aM_1, 384;\nadd.u64 aM_5, aM_1, 512;\n"
        "mov.u64 au_0, 0;\nmov.u64 au_1, 0xdeadbeef00;\nadd.u64 au_2, ag_0, 1;\nadd.u64 au_3, ag_0, 65536;\n"
        "mov.u32 am_0, sh;\nadd.u32 am_0, am_0, 16000;\nadd.u32 am_1, am_0, 16;\nadd.u32 am_2, am_0, 32;\n"
        "add.u32 am_3, am_0, 8;\n"
        "mapa.shared::cluster.u32 aq_0, ah_0, 0;\nmapa.shared::cluster.u32 aq_1, ah_1, 1;\n"
        "mapa.shared::cluster.u32 aq_2, ah_2, 0;\nmapa.shared::cluster.u32 aq_3, am_1, 0;\n"
        "mov.u64 ptr_call, helper;\n"
        "setp.eq.u32 lp_0, tid, 0;\n@lp_0 mbarrier.init.shared.b64 [am_0], 32;\n@lp_0 "
        "mbarrier.init.shared.b64 [am_1], 1;\n@lp_0 mbarrier.init.shared.b64 [am_2], 64;\n"
        "@lp_0 mbarrier.init.shared.b64 [am_3], 1023;\nbar.sync 0;\n");
    static const uint32_t usual[] = {0,          1,          0xffffffff, 0x80000000, 0x7f800000,
                                     0x3f800000, 0x7fc00001, 0x00000001, 0x3c003c00, 0x33};
    for (size_t i = 1; i < N_POOLS; i++) {
        unsigned bits = ptx_types[pools[i].type].bits;
        for (unsigned n = 0; n < POOL; n++) {
            unsigned trick = below(g, 4);
            uint32_t value = trick == 0 ? usual[below(g, 10)] : (uint32_t)(n * 2654435761u + i);
            if (bits == 8)
                clab_str_addf(g->out, "cvt.u8.u32 %s_%u, %s;\n", pools[i].name, n,
                              trick == 1 ? "tid" : "ac_3");
            else if (bits == 16)
                clab_str_addf(g->out, "cvt.u16.u32 b16_%u, tid;\nadd.u16 %s_%u, b16_%u, %u;\n", n,
                              pools[i].name, n, n, value & 0x7fff);
            else if (bits == 32)
                clab_str_addf(g->out, "xor.b32 %s_%u, %s, %u;\n", pools[i].name, n,
                              trick == 1 ? "tid" : "ac_0", value);
            else if (bits == 64)
                clab_str_addf(g->out, "mov.b64 %s_%u, {%s, %s};\n", pools[i].name, n, "b32_0",
                              trick == 1 ? "tid" : "b32_1");
            else
                clab_str_addf(g->out, "mov.b128 %s_%u, {u64_%u, u64_%u};\n", pools[i].name, n, n,
                              (n + 1) % POOL);
        }
    }
    for (unsigned n = 0; n < POOL; n++)
        clab_str_addf(g->out, "setp.lt.u32 pred_%u, ac_2, %u;\n", n, below(g, 33));
}

void fuzz_generate(struct fuzz_source *source, struct ptx_target target, struct clab_str *out)
{
    struct generator g = {.source = source, .out = out, .target = target, .n_labels = 1};
    head(&g);
    prologue(&g);
    for (unsigned n = 0; n < STATEMENTS && source->at < source->bytes; n++) {
        switch (below(&g, 16)) {
        case 0:
            open_block(&g);
            break;
        case 1:
            if (g.n_open)
                close_block(&g);
            break;
        case 2:
            special_statement(&g);
            break;
        case 3:
            if (n == 20)
                clab_str_add(out, "T0:\n");
            else
                special_register(&g);
            break;
        default:
            any_form(&g);
        }
    }
    while (g.n_open)
        close_block(&g);
    if (out->failed)
        return;
    clab_str_add(out, strstr(out->text, "\nT0:\n") ? "T1:\n" : "T0:\nT1:\n");
    clab_str_add(out, "st.global.u32 [ag_1], u32_0;\nst.global.f32 [ag_1+4], f32_0;\nst.global.b64 [ag_1+8], "
                      "b64_0;\nEND:\nret;\n}\n");
}

/* ---- statements that cannot be used ---- */

struct faults {
    char *text;
    size_t bytes;
    unsigned count;
};

static void blank(void *context, const struct clab_error *error)
{
    struct faults *faults = context;
    char *at = faults->text;
    for (uint32_t line = 1; at && line < (uint32_t)error->line; line++) {
        at = memchr(at, '\n', (size_t)(faults->text + faults->bytes - at));
        at = at ? at + 1 : NULL;
    }
    for (; at && *at && *at != '\n'; at++) {
        faults->count += *at != ' ';
        *at = ' ';
    }
}

int fuzz_filter(char *text, size_t bytes)
{
    for (unsigned round = 0; round < 6; round++) {
        struct faults faults = {.text = text, .bytes = bytes};
        struct ptx_parse_options options = {
            .limit_bytes = (size_t)256 << 20, .fault = blank, .fault_context = &faults};
        struct ptx_module *module = NULL;
        struct clab_error error = {0};
        clab_status status = ptx_parse(text, bytes, "generated", &options, &module, &error);
        ptx_module_free(module);
        if (status != CLAB_OK)
            blank(&faults, &error);
        clab_error_clear(&error);
        if (status == CLAB_OK && faults.count == 0)
            return 1;
        if (faults.count == 0)
            return 0;
    }
    return 0;
}
