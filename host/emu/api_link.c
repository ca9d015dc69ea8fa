/* "Module Management": the JIT linker (cuLinkCreate to cuLinkDestroy). Inputs are PTX texts, or fatbins that
   hold some; what comes out is PTX again (ptx/link.h), which the stand-in loads as any image. Cubins,
   objects, archives and LTO IR are refused by name; libcudadevrt, for which there is a part of it in PTX, is
   not. */
#include "emu/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/str.h"
#include "emu/api_image.h"
#include "emu/api_jit.h"
#include "emu/api_options.h"
#include "ptx/link.h"

#define LINKED "linked image"

struct link {
    CUlinkState handle;
    struct api_jit jit;
    struct ptx_linker *linker;
    bool failed;      /* in linking: nothing can be added, on the H200 */
    bool has_runtime; /* device_runtime was added */
    char *output;     /* what cuLinkComplete lends */
};

/* ---- inputs ---- */

static const char *type_name(CUjitInputType type)
{
    switch (type) {
    case CU_JIT_INPUT_CUBIN:
        return "a cubin";
    case CU_JIT_INPUT_OBJECT:
        return "an object file";
    case CU_JIT_INPUT_LIBRARY:
        return "an archive of objects";
    case CU_JIT_INPUT_NVVM:
        return "NVVM IR";
    default:
        return "an unknown kind of input";
    }
}

/* A text that does not parse is refused when it is added, as the real linker compiles it then; what is
   undefined counts when all is there (`linker`, NULL before). */
static CUresult check_text(const char *text, size_t bytes, const char *name, const struct ptx_linker *linker,
                           struct clab_error *error)
{
    struct ptx_module *module = NULL;
    struct ptx_parse_options options = {
        .max_version = emu_machine_options(api_device()->machine)->driver_version, .any_target = true};
    clab_status status = ptx_parse(text, bytes, name, &options, &module, error);
    const struct clab_error *flaw = status == CLAB_OK ? api_function_error(module) : NULL;
    CUresult result = api_load_result(flaw != NULL ? CLAB_PTX_SYNTAX : status, error);
    if (flaw != NULL)
        clab_error_copy(error, flaw);
    if (status == CLAB_OK) {
        struct ptx_target device = {.sm = api_device()->model->sm, .suffix = 'a'};
        const char *reason = "";
        if (flaw == NULL && !ptx_target_accepts(module->target, device, &reason)) {
            clab_error_set(error, CLAB_PTX_TARGET, "%s: %s", name, reason);
            result = CUDA_ERROR_INVALID_PTX;
        }
        const struct ptx_insn *narrow = api_narrow_address(module);
        if (flaw == NULL && narrow != NULL) {
            api_explain_narrow(error, module, name, narrow);
            result = CUDA_ERROR_INVALID_PTX;
        }
        const char *undefined = linker != NULL ? api_undefined_name(module, true) : NULL;
        if (undefined != NULL) {
            const char *user = name;
            uint32_t line = 0;
            ptx_linker_declared(linker, undefined, &user, &line);
            clab_error_set(error, CLAB_LOAD, "undefined reference to '%s' in '%s'", undefined, user);
            clab_error_at(error, user, line, 0);
            api_explain_undefined(error, undefined);
            result = CUDA_ERROR_UNKNOWN;
        }
        ptx_module_free(module);
    }
    return result;
}

static bool begins(const void *data, size_t bytes, const char *with, size_t length)
{
    return bytes >= length && memcmp(data, with, length) == 0;
}

/* Is the input of the kind that it is said to be, as an H200's driver tells it, and does it hold PTX? An
   object may be any image. */
static CUresult check_kind(CUjitInputType type, const void *data, size_t bytes, const char *name)
{
    static const char elf[] = "\177ELF", archive[] = "!<arch>\n", bitcode[] = "BC\300\336",
                      fatbin[] = "\x50\xed\x55\xba";
    if (type == CU_JIT_INPUT_PTX)
        return CUDA_SUCCESS;
    if ((unsigned)type >= CU_JIT_INPUT_NVVM + 1u)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%s: input type %d", name, (int)type);
    const bool is_elf = begins(data, bytes, elf, 4);
    if (type == CU_JIT_INPUT_FATBINARY || (type == CU_JIT_INPUT_OBJECT && !is_elf))
        return type == CU_JIT_INPUT_OBJECT || begins(data, bytes, fatbin, 4)
                   ? CUDA_SUCCESS
                   : api_set_error(CUDA_ERROR_INVALID_IMAGE, "%s is no fatbin", name);
    if (type == CU_JIT_INPUT_LIBRARY && !begins(data, bytes, archive, 8))
        return api_set_error(CUDA_ERROR_UNKNOWN, "%s is no archive", name);
    if ((type == CU_JIT_INPUT_CUBIN && !is_elf) ||
        (type == CU_JIT_INPUT_NVVM && !begins(data, bytes, bitcode, 4)))
        return api_set_error(CUDA_ERROR_INVALID_IMAGE, "%s is not %s", name, type_name(type));
    return api_set_error(CUDA_ERROR_NOT_SUPPORTED, "%s: the stand-in's linker takes PTX and fatbins, not %s",
                         name, type_name(type));
}

static CUresult add_image(struct link *link, CUjitInputType type, const void *data, size_t bytes,
                          const char *name)
{
    char *text = NULL;
    size_t text_bytes = 0;
    struct clab_error error = {0};
    uint64_t start = clab_now_ns();
    if (type == CU_JIT_INPUT_LIBRARY && strstr(name, "cudadevrt") != NULL)
        return CUDA_SUCCESS; /* what is emulated of it is added at the end */
    CUresult result = link->failed ? api_set_error(CUDA_ERROR_UNKNOWN, "an earlier input could not be linked")
                                   : check_kind(type, data, bytes, name);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_image_ptx(data, bytes, api_device()->model, &text, &text_bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = check_text(text, text_bytes, name, NULL, &error);
    if (result == CUDA_SUCCESS && ptx_linker_add(link->linker, text, text_bytes, name, &error) != CLAB_OK)
        result = CUDA_ERROR_UNKNOWN; /* a matter of linking: see cuLinkComplete */
    if (result == CUDA_SUCCESS && ptx_linker_conflict(link->linker) != NULL) {
        clab_error_copy(&error, ptx_linker_conflict(link->linker));
        result = CUDA_ERROR_UNKNOWN;
    }
    link->failed = result == CUDA_ERROR_UNKNOWN;
    if (result != CUDA_SUCCESS) {
        api_jit_answer(&link->jit, &error, (double)(clab_now_ns() - start) * 1e-9);
        api_copy_error(result, &error);
    }
    clab_error_clear(&error);
    free(text);
    return result;
}

/* ---- what the linked text gets besides its inputs ---- */

/* The part of libcudadevrt that grid-wide synchronisation needs (CUDA C++ Programming Guide 13.0, "Grid
   Synchronization"; numba-cuda calls it). Each barrier is a multiple of the number of CTAs, so that the
   counter never has to be reset between complete launches. */
static char device_runtime[] =
    ".version 8.0\n.target sm_70\n.address_size 64\n.global .align 8 .u64 clab_grid_barrier;\n"
    ".weak .func (.param .b64 result) cudaCGGetIntrinsicHandle (.param .b32 scope)\n"
    "{\n.reg .b32 s;\n.reg .b64 h;\nld.param.b32 s, [scope];\ncvt.u64.u32 h, s;\nst.param.b64 [result], "
    "h;\nret;\n}\n"
    ".weak .func (.param .b32 result) cudaCGSynchronize (.param .b64 handle, .param .b32 flags)\n"
    "{\n.reg .pred p, q;\n.reg .b32 x, y, z;\n.reg .b64 a, b, c, at, ticket, now;\nbar.sync 0;\n"
    "mov.u32 x, %tid.x;\nmov.u32 y, %tid.y;\nmov.u32 z, %tid.z;\nor.b32 x, x, y;\nor.b32 x, x, z;\n"
    "setp.ne.u32 p, x, 0;\n@p bra DONE;\n"
    "mov.u32 x, %nctaid.x;\nmov.u32 y, %nctaid.y;\nmov.u32 z, %nctaid.z;\nmul.wide.u32 a, x, y;\ncvt.u64.u32 "
    "b, z;\n"
    "mul.lo.u64 a, a, b;\nmov.u64 at, clab_grid_barrier;\nfence.acq_rel.gpu;\natom.global.add.u64 ticket, "
    "[at], 1;\n"
    "div.u64 c, ticket, a;\nadd.u64 c, c, 1;\nmul.lo.u64 c, c, a;\n"
    "WAIT:\nld.acquire.gpu.global.u64 now, [at];\nsetp.lt.u64 q, now, c;\n@q bra WAIT;\nfence.acq_rel.gpu;\n"
    "DONE:\nbar.sync 0;\nst.param.b32 [result], 0;\nret;\n}\n";

/* An error's place in the linked text, which nobody has seen, becomes that in the module it comes from. */
static void name_module(const struct ptx_linker *linker, struct clab_error *error)
{
    const char *name;
    uint32_t line;
    if (strcmp(error->file, LINKED) != 0 || !ptx_linker_place(linker, error->line, &name, &line))
        return;
    clab_error_at(error, name, line, 0); /* what stands before it on the line may be another's */
}

/* The linked text, once: *out_text is heap memory. */
static CUresult link_text(struct link *link, char **out_text, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    if (!link->has_runtime && ptx_linker_mentions(link->linker, "cudaCGSynchronize")) {
        status =
            ptx_linker_add(link->linker, device_runtime, sizeof device_runtime - 1, "libcudadevrt", error);
        link->has_runtime = true;
    }
    if (status == CLAB_OK)
        status = ptx_linker_text(link->linker, api_device()->model->arch, link->jit.max_registers, out_text,
                                 error);
    if (status == CLAB_NO_MEMORY)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = status == CLAB_OK
                          ? check_text(*out_text, strlen(*out_text), LINKED, link->linker, error)
                          : CUDA_ERROR_UNKNOWN;
    if (result == CUDA_SUCCESS)
        return result;
    name_module(link->linker, error);
    free(*out_text);
    *out_text = NULL;
    return CUDA_ERROR_UNKNOWN; /* each input assembles, so this is a matter of linking: the H200's answer */
}

/* ---- calls ---- */

static CUresult enter_link(const char *call, CUlinkState handle, struct link **out_link)
{
    CUresult result;
    *out_link = api_enter_object(call, EMU_HANDLE_LINK, handle, CUDA_ERROR_INVALID_HANDLE, &result);
    return result;
}

CUresult CUDAAPI cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                                 CUlinkState *stateOut)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    struct api_jit jit;
    API_REQUIRE(stateOut != NULL);
    CUresult result = api_jit_read(numOptions, options, optionValues, &jit);
    if (result == CUDA_SUCCESS && jit.has_fallback) /* "cannot be used with cuLink* APIs" */
        result = api_set_error(CUDA_ERROR_INVALID_VALUE, "a linker has no fallback strategy");
    if (result != CUDA_SUCCESS)
        return api_result(result);
    struct link *link = calloc(1, sizeof *link);
    if (link != NULL && (link->linker = ptx_linker_new()) != NULL)
        link->handle = emu_handle_new(EMU_HANDLE_LINK, link);
    if (link == NULL || link->handle == NULL) {
        if (link != NULL)
            ptx_linker_free(link->linker);
        free(link);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a linker");
    }
    link->jit = jit; /* the program keeps its arrays alive until cuLinkDestroy, as documented */
    *stateOut = link->handle;
    return api_leave();
}

CUresult CUDAAPI cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
                              CUlinkState *stateOut)
{
    return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                                  const char *name, unsigned int numOptions, CUjit_option *options,
                                  void **optionValues)
{
    struct link *link;
    struct api_jit ignored;
    CUresult result = enter_link(__func__, state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(data != NULL && size > 0 && link->output == NULL);
    result = api_jit_read(numOptions, options, optionValues, &ignored);
    if (result == CUDA_SUCCESS)
        result = add_image(link, type, data, size, name != NULL ? name : api_source_name());
    return api_result(result);
}

CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
                               const char *name, unsigned int numOptions, CUjit_option *options,
                               void **optionValues)
{
    return cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                                  unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    struct link *link;
    struct api_jit ignored;
    size_t bytes;
    CUresult result = enter_link(__func__, state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(path != NULL && link->output == NULL);
    result = api_jit_read(numOptions, options, optionValues, &ignored);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    char *data = clab_file_read(path, (size_t)1 << 30, &bytes);
    if (data == NULL)
        return api_fail(errno == ENOENT ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_OPERATING_SYSTEM, "%s: %s",
                        path, strerror(errno));
    result = add_image(link, type, data, bytes, path);
    free(data);
    return api_result(result);
}

CUresult CUDAAPI cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
                               unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link *link;
    struct clab_error error = {0};
    CUresult result = enter_link(__func__, state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(cubinOut != NULL);
    if (link->output != NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "the link was completed already");
    if (link->output == NULL) {
        result = link_text(link, &link->output, &error);
        if (result != CUDA_SUCCESS) {
            api_jit_answer(&link->jit, &error, 0);
            api_copy_error(result, &error);
            clab_error_clear(&error);
            return api_result(result);
        }
    }
    api_jit_answer(&link->jit, NULL, 0);
    *cubinOut = link->output;
    if (sizeOut != NULL)
        *sizeOut = strlen(link->output) + 1;
    return api_leave();
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state)
{
    struct link *link;
    CUresult result = enter_link(__func__, state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    emu_handle_free(state);
    ptx_linker_free(link->linker);
    free(link->output);
    free(link);
    return api_leave();
}
