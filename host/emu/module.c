/* Modules: PTX parsed, .global and .const variables allocated and initialised, kernels decoded when fetched.
   PTX ISA 9.0, 5.4.4 "Initializers", 11.1 ".version", ".target". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "emu/float_mode.h"
#include "emu/log.h"
#include "emu/module.h"

/* Function addresses are opaque numbers outside every window: this base, the module's serial number, the
 * function. */
#define FUNCTION_BASE  UINT64_C(0x4c00000000000000)
#define FUNCTION_SHIFT 4

struct emu_module {
    struct emu_machine *machine;
    struct ptx_module *ptx;
    uint64_t *addresses;           /* of ptx->vars; 0: no storage */
    uint64_t **function_addresses; /* of each function's vars; NULL rows */
    struct emu_kernel *kernels;
    struct emu_kernel **kernel_of;      /* by function; NULL: not fetched yet */
    struct emu_kernel *newest, *oldest; /* kernels with images, by last use */
    size_t decoded_bytes;               /* what those images hold */
    struct clab_map names;              /* of the functions: struct ptx_function */
    const char **entries;
    uint32_t n_entries;
    uint64_t const_bytes;
    uint32_t dynamic_align;
    uint32_t serial;
    bool calls_malloc; /* declares it, without a definition */
    struct clab_arena arena;
};

const struct ptx_module *emu_module_ptx(const struct emu_module *module)
{
    return module->ptx;
}

bool emu_module_place(const struct emu_module *module, const struct ptx_var *var, uint64_t *out_address)
{
    const uint64_t *addresses =
        var->function ? module->function_addresses[var->function->index] : module->addresses;
    *out_address = addresses ? addresses[var->index] : 0;
    return *out_address != 0;
}

static bool is_within(struct ptx_var *const *vars, const uint64_t *addresses, uint32_t n, uint64_t address)
{
    for (uint32_t i = 0; addresses && i < n; i++) {
        if (addresses[i] && address - addresses[i] < vars[i]->bytes) {
            return true;
        }
    }
    return false;
}

bool emu_module_has_variable_at(const struct emu_module *module, uint64_t address)
{
    const struct ptx_module *ptx = module->ptx;
    bool found = is_within(ptx->vars, module->addresses, ptx->n_vars, address);
    for (uint32_t f = 0; f < ptx->n_functions && !found; f++) {
        found = is_within(ptx->functions[f]->vars, module->function_addresses[f], ptx->functions[f]->n_vars,
                          address);
    }
    return found;
}

uint32_t emu_module_dynamic_align(const struct emu_module *module)
{
    return module->dynamic_align;
}

uint64_t emu_function_address(const struct emu_module *module, const struct ptx_function *function)
{
    return FUNCTION_BASE + ((uint64_t)module->serial << 32) + ((uint64_t)function->index << FUNCTION_SHIFT);
}

const struct emu_code *emu_function_find(const struct emu_image *image, uint64_t address)
{
    const uint64_t offset = address - FUNCTION_BASE - ((uint64_t)image->module->serial << 32);
    const struct ptx_module *ptx = image->module->ptx;
    if (offset >> FUNCTION_SHIFT >= ptx->n_functions || offset % (1u << FUNCTION_SHIFT) != 0) {
        return NULL;
    }
    return emu_image_code(image, ptx->functions[offset >> FUNCTION_SHIFT]);
}

/* --- variables */

static bool stored(const struct ptx_var *var)
{
    return (var->space == PTX_SPACE_GLOBAL || var->space == PTX_SPACE_CONST) && !var->is_unsized &&
           (var->linkage != PTX_LINK_EXTERN || var->data);
}

static clab_status var_alloc(struct emu_module *module, const struct ptx_var *var, uint64_t *out_address,
                             struct clab_error *error)
{
    if (!stored(var)) {
        return CLAB_OK;
    }
    const uint64_t bytes = var->bytes ? var->bytes : 1;
    const uint64_t align = var->align_bytes > 512 ? var->align_bytes : 1;
    const uint64_t address = emu_memory_alloc(
        module->machine, bytes, var->space == PTX_SPACE_CONST ? EMU_MEMORY_CONST : EMU_MEMORY_DEVICE);
    if (!address || address % align != 0) {
        if (address) {
            emu_memory_free(module->machine, address);
        }
        return clab_error_set(error, CLAB_NO_MEMORY, "no device memory for %llu bytes of '%s'",
                              (unsigned long long)bytes, var->name);
    }
    *out_address = address;
    if (var->data) {
        memcpy((void *)(uintptr_t)address, var->data, bytes);
    } else {
        memset((void *)(uintptr_t)address, 0, bytes);
    }
    return CLAB_OK;
}

static clab_status var_relocate(struct emu_module *module, const struct ptx_var *var, uint64_t address,
                                struct clab_error *error)
{
    for (uint32_t i = 0; address && i < var->n_relocs; i++) {
        const struct ptx_reloc *reloc = &var->relocs[i];
        uint64_t value = 0;
        if (reloc->func) {
            value = emu_function_address(module, reloc->func);
        } else if (!reloc->var || !emu_module_place(module, reloc->var, &value)) {
            return clab_error_set(error, CLAB_LOAD,
                                  "the initialiser of '%s' names '%s', which has no address", var->name,
                                  reloc->var ? reloc->var->name : "?");
        }
        value = (value + (uint64_t)reloc->addend) >> reloc->shift;
        if (reloc->offset > var->bytes || reloc->bytes > var->bytes - reloc->offset || reloc->bytes > 8) {
            return clab_error_set(error, CLAB_LOAD, "the initialiser of '%s' is longer than the variable",
                                  var->name);
        }
        memcpy((void *)(uintptr_t)(address + reloc->offset), &value, reloc->bytes);
    }
    return CLAB_OK;
}

static clab_status vars_place(struct emu_module *module, struct ptx_var **vars, uint32_t n_vars,
                              uint64_t **addresses, struct clab_error *error)
{
    *addresses = clab_arena_array(&module->arena, n_vars + 1, sizeof **addresses);
    if (!*addresses) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while loading a module");
    }
    clab_status status = CLAB_OK;
    for (uint32_t i = 0; i < n_vars && status == CLAB_OK; i++) {
        status = var_alloc(module, vars[i], &(*addresses)[i], error);
    }
    return status;
}

static clab_status vars_load(struct emu_module *module, struct clab_error *error)
{
    const struct ptx_module *ptx = module->ptx;
    module->function_addresses =
        clab_arena_array(&module->arena, ptx->n_functions + 1, sizeof *module->function_addresses);
    if (!module->function_addresses) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while loading a module");
    }
    clab_status status = vars_place(module, ptx->vars, ptx->n_vars, &module->addresses, error);
    for (uint32_t f = 0; f < ptx->n_functions && status == CLAB_OK; f++) {
        module->calls_malloc |= !ptx->functions[f]->defined && !strcmp(ptx->functions[f]->name, "malloc");
        if (ptx->functions[f]->n_vars) {
            status = vars_place(module, ptx->functions[f]->vars, ptx->functions[f]->n_vars,
                                &module->function_addresses[f], error);
        }
    }
    for (uint32_t i = 0; i < ptx->n_vars && status == CLAB_OK; i++) {
        status = var_relocate(module, ptx->vars[i], module->addresses[i], error);
    }
    for (uint32_t f = 0; f < ptx->n_functions && status == CLAB_OK; f++) {
        for (uint32_t i = 0; i < ptx->functions[f]->n_vars && status == CLAB_OK; i++) {
            status =
                var_relocate(module, ptx->functions[f]->vars[i], module->function_addresses[f][i], error);
        }
    }
    return status;
}

static void vars_free(struct emu_module *module, const uint64_t *addresses, uint32_t n)
{
    /* The last first: that is how the table of allocations likes it. */
    for (uint32_t i = addresses ? n : 0; i-- > 0;) {
        if (addresses[i]) {
            emu_memory_free(module->machine, addresses[i]);
        }
    }
}

/* --- modules */

/* Tables of the functions and entries, so that none is looked for in a list. */
static clab_status names_load(struct emu_module *module, struct clab_error *error)
{
    const struct ptx_module *ptx = module->ptx;
    module->kernel_of = clab_arena_array(&module->arena, ptx->n_functions + 1, sizeof(struct emu_kernel *));
    module->entries = clab_arena_array(&module->arena, ptx->n_functions + 1, sizeof *module->entries);
    bool good = module->kernel_of && module->entries;
    for (uint32_t i = 0; i < ptx->n_functions && good; i++) {
        struct ptx_function *function = ptx->functions[i];
        if (function->entry && function->defined) {
            module->entries[module->n_entries++] = function->name;
        }
        if (!clab_map_get(&module->names, function->name, strlen(function->name))) {
            good = clab_map_set(&module->names, function->name, strlen(function->name), function);
        }
    }
    for (uint32_t i = 0; i < ptx->n_vars; i++) {
        const struct ptx_var *var = ptx->vars[i];
        module->const_bytes += var->space == PTX_SPACE_CONST ? var->bytes : 0;
        if (var->space == PTX_SPACE_SHARED && var->is_unsized) {
            const uint32_t align = var->align_bytes ? var->align_bytes : 1;
            module->dynamic_align = align > module->dynamic_align ? align : module->dynamic_align;
        }
    }
    return good ? CLAB_OK : clab_error_set(error, CLAB_NO_MEMORY, "out of memory while loading a module");
}

#define CONST_MOST (64 * 1024)

/* A kernel's shared variables and a module's constants have limits (gaps for alignment, whose places ptxas
   chooses, are not counted here). The driver that assembles PTX takes as much static shared memory as a CTA
   may opt into, though ptxas takes 48 KiB: 232448 bytes are loaded and run, 232452 and constants of 65540
   bytes are CUDA_ERROR_INVALID_PTX (NVIDIA H200, driver 13.0, 2026-12-01). PTX ISA 9.0, 5.1.3 "Constant State
   Space"; CUDA Programming Guide 13.0, "Compute Capabilities". */
static clab_status limits_check(const struct emu_module *module, const char *name, struct clab_error *error)
{
    const struct ptx_module *ptx = module->ptx;
    const uint32_t shared_most = module->machine->model->shared_per_block_optin_bytes;
    uint64_t constant = 0, shared = 0;
    for (uint32_t f = 0; f <= ptx->n_functions; f++) {
        struct ptx_var *const *vars = f < ptx->n_functions ? ptx->functions[f]->vars : ptx->vars;
        const uint32_t n = f < ptx->n_functions ? ptx->functions[f]->n_vars : ptx->n_vars;
        for (uint32_t i = 0; i < n; i++) {
            constant += vars[i]->space == PTX_SPACE_CONST && stored(vars[i]) ? vars[i]->bytes : 0;
            shared += vars[i]->space == PTX_SPACE_SHARED && !vars[i]->is_unsized ? vars[i]->bytes : 0;
        }
    }
    clab_status status = CLAB_OK;
    if (constant > CONST_MOST) {
        status = clab_error_set(error, CLAB_PTX_SYNTAX, "constants take %llu bytes, more than %d",
                                (unsigned long long)constant, CONST_MOST);
    }
    for (uint32_t f = 0; f < ptx->n_functions && shared > shared_most && status == CLAB_OK; f++) {
        const struct ptx_function *entry = ptx->functions[f];
        uint64_t bytes = 0;
        if (!entry->entry || !entry->defined) {
            continue;
        }
        if (!emu_image_shared_bytes(entry, &bytes)) {
            return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while loading a module");
        }
        if (bytes > shared_most) {
            status = clab_error_set(error, CLAB_PTX_SYNTAX,
                                    "the shared variables of kernel '%s' take %llu bytes, more than the %u "
                                    "that a CTA can have",
                                    entry->name, (unsigned long long)bytes, shared_most);
        }
    }
    if (status != CLAB_OK) {
        clab_error_at(error, name, 0, 0);
    }
    return status;
}

clab_status emu_module_load(struct emu_machine *machine, const char *text, size_t bytes, const char *name,
                            struct emu_module **out_module, struct clab_error *error)
{
    const struct ptx_parse_options options = {.max_version = machine->options.driver_version,
                                              .any_target = true};
    struct ptx_module *ptx = NULL;
    fenv_t program;
    *out_module = NULL;
    emu_float_enter(&program);
    clab_status status = ptx_parse(text, bytes, name, &options, &ptx, error);
    emu_float_leave(&program);
    if (status != CLAB_OK) {
        return status;
    }
    if (ptx->version > PTX_VERSION_KNOWN) {
        emu_log_once("%s: .version %u.%u is newer than %u.%u, the newest that is known here; what it says is "
                     "taken as %u.%u has it",
                     name, ptx->version / 10, ptx->version % 10, PTX_VERSION_KNOWN / 10,
                     PTX_VERSION_KNOWN % 10, PTX_VERSION_KNOWN / 10, PTX_VERSION_KNOWN % 10);
    }
    const char *reason = NULL;
    if (!ptx_target_accepts(ptx->target, emu_machine_target(machine), &reason)) {
        status = clab_error_set(error, CLAB_PTX_TARGET, "%s (the module is for sm_%u%s, the device is %s)",
                                reason, ptx->target.sm,
                                ptx->target.suffix == 'a'   ? "a"
                                : ptx->target.suffix == 'f' ? "f"
                                                            : "",
                                machine->model->arch);
        clab_error_at(error, name, 0, 0);
        ptx_module_free(ptx);
        return status;
    }
    struct emu_module *module = calloc(1, sizeof *module);
    if (!module) {
        ptx_module_free(ptx);
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while loading a module");
    }
    module->machine = machine;
    module->ptx = ptx;
    pthread_mutex_lock(&machine->lock);
    module->serial = machine->next_module++ & 0xffffff;
    pthread_mutex_unlock(&machine->lock);
    status = names_load(module, error);
    if (status == CLAB_OK) {
        status = limits_check(module, name, error);
    }
    if (status == CLAB_OK) {
        status = vars_load(module, error);
    }
    if (status != CLAB_OK) {
        emu_module_unload(module);
        return status;
    }
    *out_module = module;
    return CLAB_OK;
}

void emu_module_unload(struct emu_module *module)
{
    if (!module) {
        return;
    }
    while (module->kernels) {
        struct emu_kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        for (unsigned i = 0; i < kernel->n_images; i++) {
            emu_image_free(kernel->images[i]);
        }
        free(kernel);
    }
    for (uint32_t f = module->function_addresses ? module->ptx->n_functions : 0; f-- > 0;) {
        vars_free(module, module->function_addresses[f], module->ptx->functions[f]->n_vars);
    }
    vars_free(module, module->addresses, module->ptx->n_vars);
    clab_map_free(&module->names);
    ptx_module_free(module->ptx);
    clab_arena_free(&module->arena);
    free(module);
}

const char *emu_module_entry_name(const struct emu_module *module, unsigned index)
{
    return index < module->n_entries ? module->entries[index] : NULL;
}

bool emu_module_global(const struct emu_module *module, const char *name, uint64_t *out_address,
                       uint64_t *out_bytes)
{
    for (uint32_t i = 0; i < module->ptx->n_vars; i++) {
        const struct ptx_var *var = module->ptx->vars[i];
        if (module->addresses[i] && strcmp(var->name, name) == 0 &&
            ptx_types[var->type].class != PTX_CLASS_OPAQUE) {
            *out_address = module->addresses[i];
            *out_bytes = var->bytes;
            return true;
        }
    }
    return false;
}

unsigned emu_module_sm(const struct emu_module *module)
{
    return module->ptx->target.sm;
}

bool emu_module_is_managed(const struct emu_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->ptx->n_vars; i++)
        if (strcmp(module->ptx->vars[i]->name, name) == 0)
            return module->ptx->vars[i]->is_managed;
    return false;
}

bool emu_module_reference(const struct emu_module *module, const char *name, bool is_surface,
                          uint64_t *out_address)
{
    for (uint32_t i = 0; i < module->ptx->n_vars; i++) {
        const struct ptx_var *var = module->ptx->vars[i];
        if (module->addresses[i] && var->type == (is_surface ? PTX_SURFREF : PTX_TEXREF) &&
            strcmp(var->name, name) == 0) {
            *out_address = module->addresses[i];
            return true;
        }
    }
    return false;
}

/* --- kernels */

static clab_status no_entry(const struct emu_module *module, const char *name, struct clab_error *error)
{
    struct clab_str list = {0};
    const char *entry;
    for (unsigned i = 0; (entry = emu_module_entry_name(module, i)) && i < 20; i++) {
        clab_str_addf(&list, "%s%s", i ? ", " : "", entry);
    }
    const clab_status status =
        clab_error_set(error, CLAB_NOT_FOUND, "no entry '%s' in this module; it has: %s", name,
                       list.text ? list.text : "none");
    clab_str_free(&list);
    return status;
}

/* Parameter block: as the manual lays out .param of an entry, in order, each at its own alignment. */
static clab_status params_lay_out(struct emu_module *module, struct emu_kernel_info *info)
{
    const struct ptx_function *function = info->function;
    uint32_t *offsets = clab_arena_array(&module->arena, function->n_params + 1, sizeof *offsets);
    uint32_t *sizes = clab_arena_array(&module->arena, function->n_params + 1, sizeof *sizes);
    if (!offsets || !sizes) {
        return CLAB_NO_MEMORY;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < function->n_params; i++) {
        const struct ptx_var *var = function->params[i];
        const uint64_t align = var->align_bytes ? var->align_bytes : emu_lane_bytes(var->type);
        at = (at + align - 1) / align * align;
        offsets[i] = (uint32_t)at;
        sizes[i] = (uint32_t)var->bytes;
        at += var->bytes;
    }
    info->n_params = function->n_params;
    info->param_bytes = (uint32_t)at;
    info->param_offsets = offsets;
    info->param_sizes = sizes;
    return CLAB_OK;
}

/* Registers that a thread of the kernel has. ptxas stays within 255, .maxnreg, and what the CTAs that
   .maxntid or .reqntid and .minnctapersm speak of have room for (PTX ISA 9.0, 11.4 "Performance-Tuning
   Directives"); the calling convention takes 24. */
static uint32_t registers_of(const struct emu_image *image)
{
    enum { MOST = 255, OF_SM = 65536, CALLING = 24, UNIT = 8 };
    const struct ptx_directives *directives = &image->entry->function->directives;
    uint32_t registers = 0, limit = MOST;
    for (uint32_t i = 0; i < image->n_codes; i++) {
        const struct emu_code *code = image->codes[i];
        registers = code->registers > registers ? code->registers : registers;
        registers = code->calls && registers < CALLING ? CALLING : registers;
    }
    if (directives->has_reqntid || directives->has_maxntid) {
        const uint32_t *size = directives->has_reqntid ? directives->reqntid : directives->maxntid;
        const uint64_t threads = (uint64_t)size[0] * size[1] * size[2];
        const uint64_t ctas = directives->minnctapersm ? directives->minnctapersm : 1;
        const uint64_t each = threads && threads <= 1024 ? OF_SM / threads / ctas / UNIT * UNIT : 0;
        limit = each && each < limit ? (uint32_t)each : limit;
    }
    limit = directives->maxnreg && directives->maxnreg < limit ? directives->maxnreg : limit;
    return registers < limit ? registers : limit;
}

/* --- decoded kernels. A function that many kernels call is decoded for each of them, since the same variable
   may lie at different shared addresses: what that takes is bounded by dropping the kernels used longest ago.
 */

enum { DECODED_LIMIT_BYTES = 128 << 20 };

static void unlink_kernel(struct emu_module *module, struct emu_kernel *kernel)
{
    *(kernel->newer ? &kernel->newer->older : &module->newest) = kernel->older;
    *(kernel->older ? &kernel->older->newer : &module->oldest) = kernel->newer;
    kernel->newer = kernel->older = NULL;
}

static void link_newest(struct emu_module *module, struct emu_kernel *kernel)
{
    kernel->older = module->newest;
    *(module->newest ? &module->newest->newer : &module->oldest) = kernel;
    module->newest = kernel;
}

/* Drops images until the limit holds, but none of `kernel` nor of launches under way. */
static void images_trim(struct emu_module *module, const struct emu_kernel *kernel)
{
    for (struct emu_kernel *old = module->oldest, *next; old && module->decoded_bytes > DECODED_LIMIT_BYTES;
         old = next) {
        next = old->newer;
        if (old == kernel || old->uses > 0) {
            continue;
        }
        while (old->n_images > 0) {
            struct emu_image *image = old->images[--old->n_images];
            module->decoded_bytes -= image->counted_bytes;
            emu_image_free(image);
        }
        unlink_kernel(module, old);
    }
}

/* The kernel's image for the set, decoded if it is not there; the kernel is then the one used last. */
static clab_status image_get(struct emu_kernel *kernel, const struct emu_set *set,
                             struct emu_image **out_image, struct clab_error *error)
{
    struct emu_module *module = kernel->module;
    struct emu_image *image = NULL;
    for (unsigned i = 0; i < kernel->n_images && !image; i++) {
        image = kernel->images[i]->set == set ? kernel->images[i] : NULL;
    }
    const bool linked = kernel->n_images > 0;
    if (!image) {
        const clab_status status =
            emu_image_new(module, module->ptx, kernel->info.function, set, &image, error);
        if (status != CLAB_OK) {
            return status;
        }
        image->counted_bytes = image->arena.total_bytes;
        module->decoded_bytes += image->counted_bytes;
        kernel->images[kernel->n_images++] = image;
    }
    if (linked) {
        unlink_kernel(module, kernel);
    }
    link_newest(module, kernel);
    images_trim(module, kernel);
    *out_image = image;
    return CLAB_OK;
}

size_t emu_module_decoded_bytes(const struct emu_module *module)
{
    return module->decoded_bytes;
}

static clab_status kernel_fill(struct emu_kernel *kernel, struct clab_error *error)
{
    struct emu_module *module = kernel->module;
    struct emu_image *image;
    const clab_status status = image_get(kernel, emu_set_get(NULL, false), &image, error);
    if (status != CLAB_OK) {
        return status;
    }
    kernel->info.module = module;
    kernel->info.static_shared_bytes = image->static_shared_bytes;
    kernel->info.local_bytes = image->local_bytes;
    kernel->info.const_bytes = (uint32_t)module->const_bytes;
    if (params_lay_out(module, &kernel->info) != CLAB_OK) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'",
                              kernel->info.function->name);
    }
    kernel->info.registers_modelled = registers_of(image);
    return CLAB_OK;
}

static clab_status kernel_get(struct emu_module *module, const char *name, struct emu_kernel **out_kernel,
                              struct clab_error *error)
{
    const struct ptx_function *function = clab_map_get(&module->names, name, strlen(name));
    if (!function || !function->entry || !function->defined) {
        return no_entry(module, name, error);
    }
    if (module->kernel_of[function->index]) {
        *out_kernel = module->kernel_of[function->index];
        return CLAB_OK;
    }
    struct emu_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory while decoding '%s'", name);
    }
    kernel->module = module;
    kernel->info.function = function;
    const clab_status status = kernel_fill(kernel, error);
    if (status != CLAB_OK) {
        if (kernel->n_images > 0) {
            unlink_kernel(module, kernel);
            module->decoded_bytes -= kernel->images[0]->counted_bytes;
            emu_image_free(kernel->images[0]);
        }
        free(kernel);
        return status;
    }
    kernel->next = module->kernels;
    module->kernels = module->kernel_of[function->index] = kernel;
    *out_kernel = kernel;
    return CLAB_OK;
}

clab_status emu_module_kernel(struct emu_module *module, const char *name, struct emu_kernel **out_kernel,
                              struct clab_error *error)
{
    fenv_t program;
    *out_kernel = NULL;
    emu_float_enter(&program);
    pthread_mutex_lock(&module->machine->lock);
    const clab_status status = kernel_get(module, name, out_kernel, error);
    pthread_mutex_unlock(&module->machine->lock);
    emu_float_leave(&program);
    return status;
}

void emu_kernel_info_get(const struct emu_kernel *kernel, struct emu_kernel_info *out_info)
{
    *out_info = kernel->info;
}

void emu_kernel_queued(struct emu_kernel *kernel)
{
    if (kernel->module->calls_malloc) {
        atomic_store(&kernel->module->machine->heap_in_use, true);
    }
}

clab_status emu_kernel_image(struct emu_kernel *kernel, const char *isa, bool hooks, bool clocked,
                             const struct emu_image **out_image, struct clab_error *error)
{
    const struct emu_set *set = emu_set_get(isa, hooks);
    if (!set) {
        return clab_error_set(error, CLAB_USAGE,
                              "instruction set '%s' is unknown, or this processor lacks it", isa);
    }
    fenv_t program;
    emu_float_enter(&program);
    pthread_mutex_lock(&kernel->module->machine->lock);
    struct emu_image *image = NULL;
    clab_status status = image_get(kernel, set, &image, error);
    if (status == CLAB_OK && clocked) {
        const size_t before = image->arena.total_bytes;
        status = emu_image_clock(image, error);
        image->counted_bytes += image->arena.total_bytes - before;
        kernel->module->decoded_bytes += image->arena.total_bytes - before;
    }
    kernel->uses += status == CLAB_OK;
    *out_image = image;
    pthread_mutex_unlock(&kernel->module->machine->lock);
    emu_float_leave(&program);
    return status;
}

void emu_kernel_release(struct emu_kernel *kernel)
{
    pthread_mutex_lock(&kernel->module->machine->lock);
    kernel->uses--;
    pthread_mutex_unlock(&kernel->module->machine->lock);
}
