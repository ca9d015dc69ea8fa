/* One kernel's image: which functions and variables it can reach, where its shared variables lie, how much
   local memory a thread needs, and the code of every function. PTX ISA 9.0, 5.1.8 "Shared State Space", 7.1
   "Function Declarations and Definitions".

   Functions are decoded once per kernel, because the same variable may lie at different shared addresses in
   different kernels. A function whose address is taken anywhere the kernel can reach may be called
   indirectly. */
#include <string.h>

#include "emu/code.h"

struct reach {
    const struct ptx_module *ptx;
    struct clab_arena arena;
    uint32_t *queue, n_queue; /* function indices in the order found */
    bool *function_seen;
    bool *var_seen; /* module->vars */
    const struct ptx_var **vars;
    uint32_t n_vars;
    bool **function_var_seen; /* [function][var] */
    bool indirect;
    bool *indirect_in; /* functions with an indirect call */
    bool failed;
};

static void reach_function(struct reach *reach, const struct ptx_function *function)
{
    if (function && function->defined && !reach->function_seen[function->index]) {
        reach->function_seen[function->index] = true;
        reach->queue[reach->n_queue++] = function->index;
    }
}

/* Variables form a worklist too, since an initialiser may name others. */
static void reach_var(struct reach *reach, const struct ptx_var *var)
{
    if (!var) {
        return;
    }
    if (var->function) {
        bool **seen = &reach->function_var_seen[var->function->index];
        if (!*seen) {
            *seen = clab_arena_array(&reach->arena, var->function->n_vars + 1, sizeof **seen);
        }
        if (!*seen) {
            reach->failed = true;
        } else if (var->index < var->function->n_vars && var->function->vars[var->index] == var) {
            (*seen)[var->index] = true;
        }
        for (uint32_t i = 0; i < var->n_relocs; i++) {
            reach_function(reach, var->relocs[i].func);
        }
        return;
    }
    if (var->index < reach->ptx->n_vars && !reach->var_seen[var->index]) {
        reach->var_seen[var->index] = true;
        reach->vars[reach->n_vars++] = var;
    }
}

static void reach_operand(struct reach *reach, const struct ptx_operand *operand)
{
    reach_var(reach, operand->var);
    reach_function(reach, operand->func);
    if (operand->table && operand->table->kind == PTX_TABLE_CALL) {
        for (uint32_t i = 0; i < operand->table->count; i++) {
            reach_function(reach, operand->table->functions[i]);
        }
    }
    for (uint32_t i = 0; i < operand->n_elements; i++) {
        reach_operand(reach, &operand->elements[i]);
    }
}

static void reach_body(struct reach *reach, const struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->n_insns; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        bool direct = false;
        for (uint32_t k = 0; k < insn->n_operands; k++) {
            direct |= insn->operands[k].func != NULL;
            reach_operand(reach, &insn->operands[k]);
        }
        if (insn->row == PTX_CALL && !direct) {
            reach->indirect = reach->indirect_in[function->index] = true;
        }
    }
}

static bool reach_all(struct reach *reach, const struct ptx_function *entry)
{
    const uint32_t n_functions = reach->ptx->n_functions, n_vars = reach->ptx->n_vars;
    reach->queue = clab_arena_array(&reach->arena, n_functions + 1, sizeof *reach->queue);
    reach->function_seen = clab_arena_array(&reach->arena, n_functions + 1, sizeof *reach->function_seen);
    reach->indirect_in = clab_arena_array(&reach->arena, n_functions + 1, sizeof *reach->indirect_in);
    reach->function_var_seen =
        clab_arena_array(&reach->arena, n_functions + 1, sizeof *reach->function_var_seen);
    reach->var_seen = clab_arena_array(&reach->arena, n_vars + 1, sizeof *reach->var_seen);
    reach->vars = clab_arena_array(&reach->arena, n_vars + 1, sizeof *reach->vars);
    if (!reach->queue || !reach->function_seen || !reach->indirect_in || !reach->function_var_seen ||
        !reach->var_seen || !reach->vars) {
        return false;
    }
    reach_function(reach, entry);
    uint32_t done_functions = 0, done_vars = 0;
    while (done_functions < reach->n_queue || done_vars < reach->n_vars) {
        if (done_functions < reach->n_queue) {
            reach_body(reach, reach->ptx->functions[reach->queue[done_functions++]]);
        } else {
            const struct ptx_var *var = reach->vars[done_vars++];
            for (uint32_t i = 0; i < var->n_relocs; i++) {
                reach_var(reach, var->relocs[i].var);
                reach_function(reach, var->relocs[i].func);
            }
        }
    }
    return !reach->failed;
}

/* Shared variables with a size, then the unsized .extern ones, which all start where the dynamic memory does.
 */
static bool lay_out_shared(struct reach *reach, struct emu_layout *layout, struct clab_arena *arena,
                           uint32_t *out_static_bytes, struct clab_error *error)
{
    const struct ptx_module *ptx = reach->ptx;
    layout->shared_offsets = clab_arena_array(arena, ptx->n_vars + 1, sizeof *layout->shared_offsets);
    layout->function_shared_offsets =
        clab_arena_array(arena, ptx->n_functions + 1, sizeof *layout->function_shared_offsets);
    if (!layout->shared_offsets || !layout->function_shared_offsets) {
        clab_error_set(error, CLAB_NO_MEMORY, "out of memory while laying out shared variables");
        return false;
    }
    uint64_t bytes = 0, most_align = 16;
    for (unsigned unsized = 0; unsized < 2; unsized++) {
        if (unsized) {
            bytes = (bytes + most_align - 1) / most_align * most_align;
        }
        for (uint32_t f = 0; f <= ptx->n_functions; f++) {
            const bool module = f == ptx->n_functions;
            if (!module && !reach->function_var_seen[f]) {
                continue;
            }
            struct ptx_var **vars = module ? ptx->vars : ptx->functions[f]->vars;
            const uint32_t n = module ? ptx->n_vars : ptx->functions[f]->n_vars;
            const bool *seen = module ? reach->var_seen : reach->function_var_seen[f];
            uint32_t **offsets = module ? &layout->shared_offsets : &layout->function_shared_offsets[f];
            if (!*offsets && !(*offsets = clab_arena_array(arena, n + 1, sizeof **offsets))) {
                clab_error_set(error, CLAB_NO_MEMORY, "out of memory while laying out shared variables");
                return false;
            }
            for (uint32_t i = 0; i < n; i++) {
                if (vars[i]->space != PTX_SPACE_SHARED || !seen[i]) {
                    (*offsets)[i] = UINT32_MAX;
                    continue;
                }
                const uint64_t align = vars[i]->align_bytes ? vars[i]->align_bytes : 1;
                if (!unsized && !vars[i]->is_unsized) {
                    bytes = (bytes + align - 1) / align * align;
                    (*offsets)[i] = (uint32_t)bytes;
                    bytes += vars[i]->bytes;
                } else if (unsized && vars[i]->is_unsized) {
                    (*offsets)[i] = (uint32_t)bytes;
                } else if (!unsized) {
                    most_align = align > most_align ? align : most_align;
                }
                if (bytes >= UINT32_C(1) << EMU_RANK_SHIFT) {
                    clab_error_set(error, CLAB_LOAD,
                                   "shared variables need more than 16 MiB ('%s' is the last)",
                                   vars[i]->name);
                    return false;
                }
            }
        }
    }
    *out_static_bytes = (uint32_t)bytes;
    return true;
}

/* Local memory along the deepest chain of direct calls. False (deep) with recursion, alloca or
   indirect calls. */
struct chain {
    const struct emu_image *image;
    const struct reach *reach;
    uint8_t *state; /* 0 new, 1 on the chain, 2 done */
    uint64_t *need;
};

static bool chain_need(struct chain *chain, uint32_t index, unsigned depth)
{
    if (chain->state[index] == 2) {
        return true;
    }
    if (chain->state[index] == 1 || depth > 200 || chain->reach->indirect_in[index]) {
        return false;
    }
    chain->state[index] = 1;
    const struct emu_code *code = chain->image->codes[index];
    uint64_t most = 0;
    for (uint32_t i = 0; i < code->function->n_insns; i++) {
        const struct ptx_insn *insn = &code->function->insns[i];
        if (insn->row == PTX_ALLOCA) {
            return false;
        }
        for (uint32_t k = 0; insn->row == PTX_CALL && k < insn->n_operands; k++) {
            const struct ptx_function *callee = insn->operands[k].func;
            if (callee && callee->defined) {
                if (!chain_need(chain, callee->index, depth + 1)) {
                    return false;
                }
                most = chain->need[callee->index] + 16 > most ? chain->need[callee->index] + 16 : most;
            }
        }
    }
    chain->need[index] = most + code->local_bytes;
    chain->state[index] = 2;
    return true;
}

static clab_status build(struct emu_image *image, const struct ptx_module *ptx,
                         const struct ptx_function *entry, struct reach *reach, struct clab_error *error)
{
    struct emu_layout layout = {0};
    image->n_codes = ptx->n_functions;
    image->codes = clab_arena_array(&image->arena, ptx->n_functions + 1, sizeof *image->codes);
    if (!image->codes || !reach_all(reach, entry)) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'", entry->name);
    }
    if (!lay_out_shared(reach, &layout, &image->arena, &image->static_shared_bytes, error)) {
        return error ? error->status : CLAB_LOAD;
    }
    image->layout = layout;
    for (uint32_t i = 0; i < reach->n_queue; i++) {
        const uint32_t index = reach->queue[i];
        struct emu_code *code = clab_arena_alloc(&image->arena, sizeof *code);
        if (!code) {
            return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'", entry->name);
        }
        code->function = ptx->functions[index];
        code->image = image;
        code->index = index;
        image->codes[index] = code;
        const clab_status status = emu_decode(image, ptx, &layout, code, error);
        if (status != CLAB_OK) {
            return status;
        }
    }
    image->entry = image->codes[entry->index];
    struct chain chain = {.image = image, .reach = reach};
    chain.state = clab_arena_array(&reach->arena, ptx->n_functions + 1, sizeof *chain.state);
    chain.need = clab_arena_array(&reach->arena, ptx->n_functions + 1, sizeof *chain.need);
    if (!chain.state || !chain.need) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'", entry->name);
    }
    image->deep = !chain_need(&chain, entry->index, 0);
    image->local_bytes = image->deep ? image->entry->local_bytes : (uint32_t)chain.need[entry->index];
    return CLAB_OK;
}

clab_status emu_image_new(const struct emu_module *module, const struct ptx_module *ptx,
                          const struct ptx_function *entry, const struct emu_set *set,
                          struct emu_image **out_image, struct clab_error *error)
{
    struct clab_arena arena = {0};
    struct emu_image *image = clab_arena_alloc(&arena, sizeof *image);
    if (!image) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'", entry->name);
    }
    image->module = module;
    image->set = set;
    image->arena = arena;
    struct reach reach = {.ptx = ptx};
    const clab_status status = build(image, ptx, entry, &reach, error);
    clab_arena_free(&reach.arena);
    if (status != CLAB_OK) {
        emu_image_free(image);
        image = NULL;
    }
    *out_image = image;
    return status;
}

void emu_image_free(struct emu_image *image)
{
    if (image) {
        struct clab_arena arena = image->arena; /* the image lies in it */
        clab_arena_free(&arena);
    }
}

const struct ptx_var *emu_image_shared_at(const struct emu_image *image, const struct ptx_module *ptx, uint32_t offset,
                                          uint32_t *out_offset)
{
    const struct ptx_var *found = NULL;
    for (uint32_t f = 0; f <= ptx->n_functions; f++) {
        const bool module = f == ptx->n_functions;
        const uint32_t *offsets =
            module ? image->layout.shared_offsets : image->layout.function_shared_offsets[f];
        struct ptx_var **vars = module ? ptx->vars : ptx->functions[f]->vars;
        const uint32_t n = module ? ptx->n_vars : ptx->functions[f]->n_vars;
        for (uint32_t i = 0; offsets && i < n; i++) {
            if (offsets[i] <= offset && (vars[i]->is_unsized || offset - offsets[i] < vars[i]->bytes) &&
                (!found || !vars[i]->is_unsized)) {
                found = vars[i];
                *out_offset = offset - offsets[i];
            }
        }
    }
    return found;
}
