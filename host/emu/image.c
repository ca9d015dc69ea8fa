/* One kernel's image: which functions and variables it can reach, where its shared variables lie, how much
   local memory a thread needs, and the code of every function. PTX ISA 9.0, 5.1.8 "Shared State Space", 7.1
   "Function Declarations and Definitions".

   Functions are decoded once per kernel, because the same variable may lie at different shared addresses in
   different kernels. A function whose address is taken anywhere the kernel can reach may be called
   indirectly. */
#include <stdlib.h>

#include "emu/code.h"
#include "emu/cost.h"

struct reached {
    const struct ptx_function *function;
    bool indirect, calls; /* has an indirect call; any call */
};

struct reach {
    struct clab_arena arena;
    struct emu_index seen; /* functions and variables */
    struct reached *functions;
    const struct ptx_var **vars;
    size_t n_functions, functions_capacity, n_vars, vars_capacity;
    bool failed;
};

/* True when `key` is new. */
static bool first_seen(struct reach *reach, const void *key)
{
    if (!key || reach->failed || emu_index_get(&reach->seen, key)) {
        return false;
    }
    reach->failed = !emu_index_add(&reach->seen, &reach->arena, key, 0);
    return !reach->failed;
}

static void reach_function(struct reach *reach, const struct ptx_function *function)
{
    if (!function || !function->defined || !first_seen(reach, function)) {
        return;
    }
    struct reached *functions = clab_arena_grow(&reach->arena, reach->functions, reach->n_functions,
                                                &reach->functions_capacity, sizeof *functions);
    if (!functions) {
        reach->failed = true;
        return;
    }
    reach->functions = functions;
    functions[reach->n_functions++] = (struct reached){.function = function};
}

/* Variables form a worklist too, since an initialiser may name others. */
static void reach_var(struct reach *reach, const struct ptx_var *var)
{
    if (!first_seen(reach, var)) {
        return;
    }
    const struct ptx_var **vars = clab_arena_grow(&reach->arena, (void *)reach->vars, reach->n_vars,
                                                  &reach->vars_capacity, sizeof *vars);
    if (!vars) {
        reach->failed = true;
        return;
    }
    reach->vars = vars;
    vars[reach->n_vars++] = var;
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

static void reach_body(struct reach *reach, size_t index)
{
    const struct ptx_function *function = reach->functions[index].function;
    bool indirect = false, calls = false;
    for (uint32_t i = 0; i < function->n_insns; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        bool direct = false;
        for (uint32_t k = 0; k < insn->n_operands; k++) {
            direct |= insn->operands[k].func != NULL;
            reach_operand(reach, &insn->operands[k]);
        }
        calls |= insn->row == PTX_CALL;
        indirect |= insn->row == PTX_CALL && !direct;
    }
    reach->functions[index].indirect = indirect;
    reach->functions[index].calls = calls;
}

static bool reach_all(struct reach *reach, const struct ptx_function *entry)
{
    reach_function(reach, entry);
    size_t done_functions = 0, done_vars = 0;
    while (!reach->failed && (done_functions < reach->n_functions || done_vars < reach->n_vars)) {
        if (done_functions < reach->n_functions) {
            reach_body(reach, done_functions++);
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

static int by_function(const void *a, const void *b)
{
    const uint32_t x = ((const struct reached *)a)->function->index,
                   y = ((const struct reached *)b)->function->index;
    return x < y ? -1 : x > y;
}

/* The order in which ptxas 13.0 places shared variables: those that are used first, those that functions
   declare before the module's, and otherwise as declared. */
struct shared_var {
    const struct ptx_var *var;
    bool unused;
};

static int by_place(const void *a, const void *b)
{
    const struct shared_var *x = a, *y = b;
    const uint32_t f = x->var->function ? x->var->function->index : UINT32_MAX,
                   g = y->var->function ? y->var->function->index : UINT32_MAX;
    if (x->unused != y->unused) {
        return x->unused ? 1 : -1;
    }
    if (f != g) {
        return f < g ? -1 : 1;
    }
    return x->var->index < y->var->index ? -1 : x->var->index > y->var->index;
}

/* Variables that the kernel names, and all that its functions declare: the latter take room without being
   used. NULL when memory is out. */
static struct shared_var *list_shared(struct reach *reach, uint32_t *out_n)
{
    uint32_t n = 0;
    struct shared_var *list;
    for (unsigned pass = 0; pass < 2; pass++) {
        if (pass && !(list = clab_arena_array(&reach->arena, n + 1, sizeof *list))) {
            return NULL;
        }
        n = 0;
        for (size_t i = 0; i < reach->n_vars; i++) {
            if (reach->vars[i]->space == PTX_SPACE_SHARED) {
                if (pass) {
                    list[n] = (struct shared_var){reach->vars[i], false};
                }
                n++;
            }
        }
        for (size_t f = 0; f < reach->n_functions; f++) {
            const struct ptx_function *function = reach->functions[f].function;
            for (uint32_t i = 0; i < function->n_vars; i++) {
                if (function->vars[i]->space == PTX_SPACE_SHARED &&
                    !emu_index_get(&reach->seen, function->vars[i])) {
                    if (pass) {
                        list[n] = (struct shared_var){function->vars[i], true};
                    }
                    n++;
                }
            }
        }
    }
    qsort(list, n, sizeof *list, by_place);
    *out_n = n;
    return list;
}

/* Shared variables with a size, then the unsized .extern ones, which all start where the dynamic memory does.
   A module that declares one of those pads what lies before it, also for kernels that do not use it. */
static bool lay_out_shared(struct reach *reach, struct emu_layout *layout, struct emu_image *image,
                           struct clab_error *error)
{
    uint64_t bytes = 0, dynamic_align = emu_module_dynamic_align(image->module);
    uint32_t n;
    const struct shared_var *list = list_shared(reach, &n);
    bool good = list != NULL;
    for (uint32_t i = 0; good && i < n; i++) {
        const struct ptx_var *var = list[i].var;
        const uint64_t align = var->align_bytes ? var->align_bytes : 1;
        if (var->is_unsized) {
            dynamic_align = align > dynamic_align ? align : dynamic_align;
            continue;
        }
        bytes = (bytes + align - 1) / align * align;
        good = emu_index_add(&layout->shared_offsets, &image->arena, var, (uint32_t)bytes);
        bytes += var->bytes;
        if (bytes >= UINT32_C(1) << EMU_RANK_SHIFT) {
            clab_error_set(error, CLAB_LOAD, "shared variables need more than 16 MiB ('%s' is the last)",
                           var->name);
            return false;
        }
    }
    if (dynamic_align) {
        dynamic_align = dynamic_align > 16 ? dynamic_align : 16;
        bytes = (bytes + dynamic_align - 1) / dynamic_align * dynamic_align;
    }
    image->static_shared_bytes = (uint32_t)bytes;
    image->names_no_shared = n == 0;
    for (uint32_t i = 0; good && i < n; i++) {
        if (list[i].var->is_unsized) {
            good = emu_index_add(&layout->shared_offsets, &image->arena, list[i].var, (uint32_t)bytes);
        }
    }
    if (!good) {
        clab_error_set(error, CLAB_NO_MEMORY, "out of memory while laying out shared variables");
    }
    return good;
}

struct emu_code *emu_image_code(const struct emu_image *image, const struct ptx_function *function)
{
    uint32_t low = 0, high = image->n_codes;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (image->codes[middle]->function->index < function->index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < image->n_codes && image->codes[low]->function == function ? image->codes[low] : NULL;
}

bool emu_image_shared_bytes(const struct ptx_function *entry, uint64_t *out_bytes)
{
    struct reach reach = {0};
    uint32_t n = 0;
    const struct shared_var *list = reach_all(&reach, entry) ? list_shared(&reach, &n) : NULL;
    const bool good = list != NULL;
    *out_bytes = 0;
    for (uint32_t i = 0; good && i < n; i++) {
        *out_bytes += list[i].var->is_unsized ? 0 : list[i].var->bytes;
    }
    clab_arena_free(&reach.arena);
    return good;
}

/* Local memory along the deepest chain of direct calls. False (deep) with recursion, alloca or
   indirect calls. */
struct chain {
    const struct emu_image *image;
    const struct reach *reach;
    uint8_t *state; /* 0 new, 1 on the chain, 2 done */
    uint64_t *need;
};

static bool chain_need(struct chain *chain, const struct emu_code *code, unsigned depth)
{
    const uint32_t index = code->index;
    if (chain->state[index] == 2) {
        return true;
    }
    if (chain->state[index] == 1 || depth > 200 || chain->reach->functions[index].indirect) {
        return false;
    }
    chain->state[index] = 1;
    uint64_t most = 0;
    for (uint32_t i = 0; i < code->function->n_insns; i++) {
        const struct ptx_insn *insn = &code->function->insns[i];
        if (insn->row == PTX_ALLOCA) {
            return false;
        }
        for (uint32_t k = 0; insn->row == PTX_CALL && k < insn->n_operands; k++) {
            const struct ptx_function *function = insn->operands[k].func;
            const struct emu_code *callee = function ? emu_image_code(chain->image, function) : NULL;
            if (callee) {
                if (!chain_need(chain, callee, depth + 1)) {
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

static clab_status no_memory(const struct ptx_function *entry, struct clab_error *error)
{
    return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'", entry->name);
}

static clab_status build(struct emu_image *image, const struct ptx_module *ptx,
                         const struct ptx_function *entry, struct reach *reach, struct clab_error *error)
{
    struct emu_layout layout = {0};
    if (!reach_all(reach, entry)) {
        return no_memory(entry, error);
    }
    if (!lay_out_shared(reach, &layout, image, error)) {
        return error ? error->status : CLAB_LOAD;
    }
    image->layout = layout;
    qsort(reach->functions, reach->n_functions, sizeof *reach->functions, by_function);
    image->codes = clab_arena_array(&image->arena, reach->n_functions, sizeof *image->codes);
    struct chain chain = {.image = image, .reach = reach};
    chain.state = clab_arena_array(&reach->arena, reach->n_functions, sizeof *chain.state);
    chain.need = clab_arena_array(&reach->arena, reach->n_functions, sizeof *chain.need);
    if (!image->codes || !chain.state || !chain.need) {
        return no_memory(entry, error);
    }
    /* All of them first: a call names its callee's code. */
    for (uint32_t i = 0; i < reach->n_functions; i++) {
        struct emu_code *code = clab_arena_alloc(&image->arena, sizeof *code);
        if (!code) {
            return no_memory(entry, error);
        }
        code->function = reach->functions[i].function;
        code->calls = reach->functions[i].calls;
        code->image = image;
        code->index = i;
        image->codes[image->n_codes++] = code;
    }
    image->entry = emu_image_code(image, entry);
    for (uint32_t i = 0; i < image->n_codes; i++) {
        const clab_status status = emu_decode(image, ptx, &layout, image->codes[i], error);
        if (status != CLAB_OK) {
            return status;
        }
    }
    image->deep = !chain_need(&chain, image->entry, 0);
    image->local_bytes = image->deep ? image->entry->local_bytes : (uint32_t)chain.need[image->entry->index];
    return CLAB_OK;
}

clab_status emu_image_new(const struct emu_module *module, const struct ptx_module *ptx,
                          const struct ptx_function *entry, const struct emu_set *set,
                          struct emu_image **out_image, struct clab_error *error)
{
    struct clab_arena arena = {0};
    struct emu_image *image = clab_arena_alloc(&arena, sizeof *image);
    if (!image) {
        return no_memory(entry, error);
    }
    image->module = module;
    image->set = set;
    image->arena = arena;
    struct reach reach = {0};
    const clab_status status = build(image, ptx, entry, &reach, error);
    clab_arena_free(&reach.arena);
    if (status != CLAB_OK) {
        emu_image_free(image);
        image = NULL;
    }
    *out_image = image;
    return status;
}

clab_status emu_image_clock(struct emu_image *image, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    for (uint32_t i = 0; i < image->n_codes && status == CLAB_OK; i++) {
        struct emu_code *code = image->codes[i];
        struct clab_arena scratch = {0};
        struct ptx_cfg cfg;
        if (code->costs) {
            continue;
        }
        status = ptx_cfg_build(code->function, &scratch, &cfg, error);
        if (status == CLAB_OK) {
            code->costs = emu_cost_schedule(code->function, &cfg, &image->arena, &scratch);
            status = code->costs ? CLAB_OK : no_memory(code->function, error);
        }
        clab_arena_free(&scratch);
    }
    return status;
}

void emu_image_free(struct emu_image *image)
{
    if (image) {
        struct clab_arena arena = image->arena; /* the image lies in it */
        clab_arena_free(&arena);
    }
}

const struct ptx_var *emu_image_shared_at(const struct emu_image *image, uint32_t offset,
                                          uint32_t *out_offset)
{
    const struct emu_index *offsets = &image->layout.shared_offsets;
    const struct ptx_var *found = NULL;
    for (uint32_t i = 0; i < offsets->capacity; i++) {
        const struct ptx_var *var = offsets->entries[i].key;
        const uint32_t start = offsets->entries[i].value;
        if (var && start <= offset && (var->is_unsized || offset - start < var->bytes) &&
            (!found || !var->is_unsized)) {
            found = var;
            *out_offset = offset - start;
        }
    }
    return found;
}
