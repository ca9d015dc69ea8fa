/* Images as programs hand them over ("Module Management": a PTX text, a cubin or a fatbin, told apart by
   their first bytes) and loading them. Cubins hold machine code, which the emulator does not execute: they
   are refused by name. */
#include "emu/api_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/builtin.h"
#include "emu/log.h"
#include "base/fatbin.h"
#include "emu/module.h"

#define ELF_MAGIC     UINT32_C(0x464c457f)
#define WRAPPER_MAGIC UINT32_C(0x466243b1) /* __fatBinC_Wrapper_t of fatbinary_section.h */

struct wrapper {
    uint32_t magic, version;
    const void *data;
    void *prelinked;
};

static CUresult copy_text(const char *text, size_t bytes, char **out_text, size_t *out_bytes)
{
    *out_text = malloc(bytes + 1);
    if (*out_text == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of PTX", bytes);
    memcpy(*out_text, text, bytes);
    (*out_text)[bytes] = '\0';
    *out_bytes = bytes;
    return CUDA_SUCCESS;
}

/* Where the first thing after blanks and comments begins: .version, or the text is no PTX to an H200's
   driver. `length` if there is nothing. */
static size_t first_token(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        if (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n') {
            at++;
        } else if (length - at >= 2 && text[at] == '/' && text[at + 1] == '/') {
            while (at < length && text[at] != '\n')
                at++;
        } else if (length - at >= 2 && text[at] == '/' && text[at + 1] == '*') {
            for (at += 2; at + 1 < length && (text[at] != '*' || text[at + 1] != '/');)
                at++;
            at = at + 1 < length ? at + 2 : length;
        } else {
            break;
        }
    }
    return at;
}

#define EM_CUDA 190 /* e_machine, in bytes 18 and 19 of the header */

/* Of what begins as an ELF file, whose header is there unless its length says otherwise. */
static bool is_cubin(const unsigned char *image, size_t bytes)
{
    return (bytes == SIZE_MAX || bytes >= 20) && image[18] == EM_CUDA && image[19] == 0;
}

CUresult api_image_ptx(const void *image, size_t bytes, const struct emu_model *model, char **out_text,
                       size_t *out_bytes)
{
    uint32_t magic = 0;
    *out_text = NULL;
    /* Four bytes are there if the first three of them are not the end of a text. */
    for (size_t i = 0; i < 4 && (bytes == SIZE_MAX || i < bytes); i++) {
        unsigned char byte = ((const unsigned char *)image)[i];
        magic |= (uint32_t)byte << (8 * i);
        if (byte == '\0')
            break;
    }
    if (magic == WRAPPER_MAGIC) {
        struct wrapper wrapper;
        if (bytes != SIZE_MAX) /* a pointer out of data that has a length is not to be followed */
            return api_set_error(CUDA_ERROR_INVALID_IMAGE, "a fatbin wrapper in place of a fatbin");
        memcpy(&wrapper, image, sizeof wrapper);
        if (wrapper.data == NULL)
            return api_set_error(CUDA_ERROR_INVALID_IMAGE, "the fatbin wrapper has no data");
        return api_image_ptx(wrapper.data, SIZE_MAX, model, out_text, out_bytes);
    }
    if (magic == CLAB_FATBIN_MAGIC)
        return api_fatbin_ptx(image, bytes, model, out_text, out_bytes);
    if (magic == ELF_MAGIC && !is_cubin(image, bytes))
        return api_set_error(CUDA_ERROR_INVALID_IMAGE, "the image is an ELF file, but no cubin");
    if (magic == ELF_MAGIC) {
        static const char words[] = "this image is a cubin; the stand-in driver executes PTX: compile to PTX "
                                    "(nvcc -ptx -arch=compute_%u, NVRTC's --gpu-architecture=compute_%u)";
        emu_log_refused(words, (unsigned)model->sm, (unsigned)model->sm);
        return api_set_error(CUDA_ERROR_NO_BINARY_FOR_GPU, words, (unsigned)model->sm, (unsigned)model->sm);
    }
    const char *text = image;
    size_t length = bytes == SIZE_MAX ? strlen(text) : strnlen(text, bytes);
    const size_t start = first_token(text, length);
    if (length - start < strlen(".version") || strncmp(text + start, ".version", strlen(".version")) != 0)
        return api_set_error(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a fatbin nor a cubin");
    return copy_text(text, length, out_text, out_bytes);
}

const struct clab_error *api_function_error(const struct ptx_module *module)
{
    for (uint32_t i = 0; i < module->n_functions; i++)
        if (module->functions[i]->error != NULL)
            return module->functions[i]->error;
    return NULL;
}

/* What a real driver resolves itself. Those that the emulator lacks are named when a kernel that calls them
 * is fetched. */
static bool is_device_runtime(const char *name)
{
    return emu_builtin_get(name) != NULL || strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0;
}

static const char *undefined_in(const struct ptx_operand *operand, bool with_variables)
{
    const struct ptx_var *var = operand->var;
    if (operand->func != NULL && !operand->func->defined && !is_device_runtime(operand->func->name))
        return operand->func->name;
    if (with_variables && var != NULL && var->linkage == PTX_LINK_EXTERN && var->space != PTX_SPACE_SHARED)
        return var->name;
    for (uint32_t i = 0; i < operand->n_elements; i++) {
        const char *found = undefined_in(&operand->elements[i], with_variables);
        if (found != NULL)
            return found;
    }
    return NULL;
}

const char *api_undefined_name(const struct ptx_module *module, bool with_variables)
{
    for (uint32_t f = 0; f < module->n_functions; f++) {
        const struct ptx_function *function = module->functions[f];
        for (uint32_t i = 0; i < function->n_insns; i++)
            for (uint32_t k = 0; k < function->insns[i].n_operands; k++) {
                const char *found = undefined_in(&function->insns[i].operands[k], with_variables);
                if (found != NULL)
                    return found;
            }
    }
    return NULL;
}

/* Does the instruction access a .global or generic address in a 32-bit register? Asynchronous copies, matrix
   and tensor-map instructions are not looked at (ptxas 13.0.88; wider or narrower registers are fine). */
static bool accesses_narrowly(const struct ptx_function *function, const struct ptx_insn *insn)
{
    const struct ptx_row_info *row = &ptx_rows[insn->row];
    const bool looked_at = strcmp(row->class, "MEMORY") == 0 || strcmp(row->class, "ATOMIC") == 0 ||
                           strncmp(row->section, "mbarrier.", 9) == 0;
    if (!looked_at || insn->row == PTX_PREFETCH_TENSORMAP || insn->row == PTX_CREATEPOLICY_RANGE ||
        (insn->n_spaces > 0 && insn->spaces[0] != PTX_SPACE_GLOBAL))
        return false;
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const struct ptx_operand *operand = &insn->operands[i];
        if (operand->kind == PTX_OPERAND_ADDRESS && operand->elements[0].kind == PTX_OPERAND_REG &&
            ptx_types[function->regs[operand->elements[0].reg].type].bits == 32)
            return true;
    }
    return false;
}

const struct ptx_insn *api_narrow_address(const struct ptx_module *module)
{
    if (module->target.sm < 90)
        return NULL;
    for (uint32_t f = 0; f < module->n_functions; f++) {
        const struct ptx_function *function = module->functions[f];
        for (uint32_t i = 0; i < function->n_insns; i++) {
            const struct ptx_insn *insn = &function->insns[i];
            const bool is_cvta = insn->row == PTX_CVTA || insn->row == PTX_CVTA_TO;
            const bool is_mov = insn->row == PTX_MOV && (insn->operands[1].kind == PTX_OPERAND_SYMBOL ||
                                                         insn->operands[1].kind == PTX_OPERAND_INDEXED);
            if (is_cvta  ? insn->types[0] == PTX_U32
                : is_mov ? ptx_types[insn->types[0]].bits == 32 && insn->operands[1].var != NULL &&
                               insn->operands[1].var->space == PTX_SPACE_GLOBAL &&
                               (insn->operands[1].imm == 0 || insn->operands[1].is_indexed ||
                                insn->operands[1].kind == PTX_OPERAND_INDEXED)
                         : accesses_narrowly(function, insn))
                return insn;
        }
    }
    return NULL;
}

void api_explain_narrow(struct clab_error *error, const struct ptx_module *module, const char *name,
                        const struct ptx_insn *insn)
{
    char text[200];
    ptx_insn_text(module, insn, text, sizeof text);
    clab_error_set(error, CLAB_PTX_SYNTAX,
                   "%s:%u: 32-bit ABI (32-bit addressing) is not supported on sm_90 or higher architectures: "
                   "'%s' uses a 32-bit address",
                   name, (unsigned)insn->line, text);
    clab_error_remedy(error, "addresses in .global and generic ones have 64 bits");
}

void api_explain_undefined(struct clab_error *error, const char *name)
{
    static const char gate[] = "_is_not_supported_before_SM_", wrapper[] = "__cuda_ptx_",
                      syscall[] = "__cuda_syscall_cp_async_bulk";
    const char *least = strstr(name, gate);
    if (least != NULL) {
        const char *start =
            strncmp(name, wrapper, sizeof wrapper - 1) == 0 ? name + sizeof wrapper - 1 : name;
        clab_error_remedy(
            error,
            "CUDA's headers call this name in place of cuda::ptx::%.*s, which they offer for SM_%.*s "
            "only: compile for one of these, or write the instruction as inline PTX",
            (int)(least - start), start,
            (int)strspn(least + sizeof gate - 1,
                        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"),
            least + sizeof gate - 1);
    } else if (strncmp(name, syscall, sizeof syscall - 1) == 0) {
        clab_error_remedy(
            error, "ptxas puts calls of this name where a kernel for compute capability 12.x copies to "
                   "shared::cluster or multicasts, and the driver of such a GPU supplies it; PTX has the "
                   "instruction itself: load the PTX from before that step");
    }
}

CUresult api_load_result(clab_status status, const struct clab_error *error)
{
    switch (status) {
    case CLAB_OK:
        return CUDA_SUCCESS;
    case CLAB_LOAD: /* a .version newer than the driver, or a variable that cannot be initialised */
        return strstr(error->message, ".version") != NULL ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                          : CUDA_ERROR_INVALID_PTX;
    case CLAB_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case CLAB_UNSUPPORTED:
        return CUDA_ERROR_NOT_SUPPORTED;
    case CLAB_NOT_FOUND:
        return CUDA_ERROR_NOT_FOUND;
    default:
        return CUDA_ERROR_INVALID_PTX;
    }
}

CUresult api_image_load(struct api_device *device, const void *image, size_t bytes, const char *name,
                        struct emu_module **out_module, char **out_text, size_t *out_text_bytes,
                        struct clab_error *error)
{
    char *text = NULL, shown[4096];
    size_t text_bytes = 0;
    snprintf(shown, sizeof shown, "%s", name); /* `name` may change while the lock is not held */
    CUresult result = api_image_ptx(image, bytes, device->model, &text, &text_bytes);
    if (result != CUDA_SUCCESS) {
        clab_error_copy(error, &api_thread()->error);
        return result;
    }
    /* Parsing a large text takes a while: other threads go on. */
    api_unlock();
    clab_status status = emu_module_load(device->machine, text, text_bytes, shown, out_module, error);
    api_lock();
    if (status == CLAB_OK) {
        const struct ptx_module *parsed = emu_module_ptx(*out_module);
        const struct clab_error *flaw = api_function_error(parsed);
        const char *undefined = api_undefined_name(parsed, false);
        const struct ptx_insn *narrow = api_narrow_address(parsed);
        if (flaw != NULL) {
            clab_error_copy(error, flaw);
            status = CLAB_PTX_SYNTAX;
        } else if (undefined != NULL) {
            status = clab_error_set(error, CLAB_PTX_SYNTAX, "%s: unresolved extern function '%s'", shown,
                                    undefined);
            api_explain_undefined(error, undefined);
        } else if (narrow != NULL) {
            api_explain_narrow(error, parsed, shown, narrow);
            status = CLAB_PTX_SYNTAX;
        } else if (parsed->address_size != 64) {
            status = clab_error_set(error, CLAB_PTX_SYNTAX, "%s: .address_size %u: a 64-bit driver takes 64",
                                    name, (unsigned)parsed->address_size);
        }
        if (status != CLAB_OK) {
            emu_module_unload(*out_module);
            *out_module = NULL;
        }
    }
    result = api_load_result(status, error);
    if (result != CUDA_SUCCESS) {
        free(text);
        return api_copy_error(result, error);
    }
    if (out_text != NULL) {
        *out_text = text;
        *out_text_bytes = text_bytes;
    } else {
        free(text);
    }
    return CUDA_SUCCESS;
}
