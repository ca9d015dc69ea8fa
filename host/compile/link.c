/* PTX to cubin with nvJitLink, no GPU needed (nvJitLink 13.0 manual). PTX is assembled inside
   nvJitLinkAddData, so that syntax and target errors come from there (result 4); undefined symbols come from
   nvJitLinkComplete (result 6). A clean link of a 12.x target does not prove a native path: some copies
   become calls that the driver supplies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "compile/compile.h"
#include "compile/ptxas_log.h"
#include "compile/target.h"
#include "driver/nvjitlink.h"
#include "ptx/ptx.h"

/* Error log and info log in one heap text, or NULL. */
static char *logs(const struct clab_nvjitlink *link, nvJitLinkHandle handle)
{
    size_t errors = 0, infos = 0;
    if (link->nvJitLinkGetErrorLogSize(handle, &errors) != NVJITLINK_SUCCESS)
        errors = 0;
    if (link->nvJitLinkGetInfoLogSize(handle, &infos) != NVJITLINK_SUCCESS)
        infos = 0;
    char *text = calloc(1, errors + infos + 3);
    if (text == NULL)
        return NULL;
    if (errors > 0 && link->nvJitLinkGetErrorLog(handle, text) == NVJITLINK_SUCCESS && text[0] != '\0')
        strcat(text, "\n");
    if (infos > 0)
        link->nvJitLinkGetInfoLog(handle, text + strlen(text));
    return text;
}

/* Says what was wanted, and at which column, where the assembler says "syntax error" or does not know a name:
   its verdict, with the words of our own parser where that refuses the text too. */
static void explain(const char *path, const char *ptx, size_t bytes, struct clab_error *located)
{
    struct ptx_module *module = NULL;
    struct clab_error own = {0};
    clab_status status = ptx_parse(ptx, bytes, path, NULL, &module, &own);
    for (uint32_t i = 0; status == CLAB_OK && i < module->n_functions; i++)
        if (module->functions[i]->error != NULL) {
            clab_error_copy(&own, module->functions[i]->error);
            break;
        }
    if (own.status != CLAB_OK && (located->status == CLAB_PTX_SYNTAX || own.line == located->line)) {
        own.status = located->status;
        clab_error_copy(located, &own);
    }
    ptx_module_free(module);
    clab_error_clear(&own);
}

static clab_status fail(const char *call, nvJitLinkResult result, const char *log, const char *path,
                        const char *ptx, struct clab_error *error)
{
    clab_status status = CLAB_COMPILE;
    struct clab_error located = {0};
    char *rest = NULL;
    if (log != NULL && clab_ptxas_log_error(log, path, ptx, &located)) {
        status = located.status;
        rest = clab_log_rest(log, &located);
        if (status == CLAB_PTX_SYNTAX || status == CLAB_COMPILE)
            explain(path, ptx, strlen(ptx), &located);
        if (error != NULL)
            clab_error_copy(error, &located);
    } else {
        clab_error_set(error, status, "%s could not be assembled", path);
        rest = log != NULL ? strdup(log) : NULL;
    }
    clab_error_clear(&located);
    char number[32];
    snprintf(number, sizeof number, "nvJitLinkResult %d", (int)result);
    clab_error_native(error, call, (int)result, number);
    clab_error_log(error, rest, SIZE_MAX);
    free(rest);
    return status;
}

static clab_status link_with(const struct clab_nvjitlink *link, const struct clab_compile_request *request,
                             const struct clab_target *target, const char *ptx, size_t ptx_bytes,
                             struct clab_image *out, struct clab_error *error)
{
    const char *path = request->source_path;
    size_t count = 0;
    const char **options = calloc(request->option_count + 4, sizeof *options);
    if (options == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the options of %s", path);
    char arch[32];
    snprintf(arch, sizeof arch, "-arch=%s", target->name);
    options[count++] = arch;
    options[count++] = "-verbose";
    if (request->line_info)
        options[count++] = "-lineinfo";
    for (size_t i = 0; i < request->option_count; i++)
        options[count++] = request->options[i];

    uint64_t start = clab_now_ns();
    nvJitLinkHandle handle = NULL;
    const char *call = "nvJitLinkCreate";
    char *log = NULL, *cubin = NULL;
    size_t bytes = 0;
    nvJitLinkResult result = link->nvJitLinkCreate(&handle, (uint32_t)count, options);
    if (result == NVJITLINK_SUCCESS) {
        call = "nvJitLinkAddData";
        result = link->nvJitLinkAddData(handle, NVJITLINK_INPUT_PTX, ptx, ptx_bytes + 1, path);
    }
    if (result == NVJITLINK_SUCCESS) {
        call = "nvJitLinkComplete";
        result = link->nvJitLinkComplete(handle);
    }
    if (handle != NULL)
        log = logs(link, handle);
    if (result == NVJITLINK_SUCCESS) {
        call = "nvJitLinkGetLinkedCubin";
        result = link->nvJitLinkGetLinkedCubinSize(handle, &bytes);
        cubin = result == NVJITLINK_SUCCESS ? calloc(1, bytes + 1) : NULL;
        if (cubin != NULL)
            result = link->nvJitLinkGetLinkedCubin(handle, cubin);
    }
    clab_status status;
    if (result != NVJITLINK_SUCCESS)
        status = fail(call, result, log, path, ptx, error);
    else if (cubin == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the cubin of %s", path);
    else
        status = clab_image_from_bytes(path, cubin, bytes, out, error);
    if (status == CLAB_OK) {
        out->compile_ns = clab_now_ns() - start;
        snprintf(out->arch, sizeof out->arch, "%s", target->name);
        snprintf(out->compiler, sizeof out->compiler, "nvjitlink %d.%d", link->version / 1000,
                 link->version % 1000 / 10);
        out->log = log == NULL ? NULL : request->per_chip ? strdup(log) : clab_compile_log_strip(log);
        out->ptx = strndup(ptx, ptx_bytes);
        out->ptx_bytes = out->ptx != NULL ? ptx_bytes : 0;
        if (request->entry != NULL)
            status = clab_image_choose_entry(out, request->entry, error);
        if (status == CLAB_OK && log != NULL)
            clab_ptxas_log_image_resources(log, out);
        if (status != CLAB_OK)
            clab_image_free(out);
    }
    if (handle != NULL)
        link->nvJitLinkDestroy(&handle);
    free(log);
    free(cubin);
    free((void *)options);
    return status;
}

clab_status clab_link_ptx(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                          const char *ptx, size_t ptx_bytes, struct clab_image *out, struct clab_error *error)
{
    const struct clab_part *part = &toolkit->parts[CLAB_PART_NVJITLINK];
    const struct clab_target *target;
    memset(out, 0, sizeof *out);
    if (!part->found) {
        clab_error_set(error, CLAB_NO_TOOLKIT, "assembling %s needs nvJitLink, which is not installed",
                       request->source_path);
        return clab_error_remedy(error, "%s", part->remedy);
    }
    if (request->arch == NULL)
        return clab_error_set(error, CLAB_USAGE, "%s needs an architecture to be assembled for",
                              request->source_path);
    clab_status status = clab_target_parse(request->arch, &target, error);
    if (status != CLAB_OK)
        return status;
    struct clab_nvjitlink *link = malloc(sizeof *link);
    if (link == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory to load nvJitLink");
    status = clab_nvjitlink_load(part->path, link, error);
    if (status == CLAB_OK)
        status = link_with(link, request, target, ptx, ptx_bytes, out, error);
    free(link);
    return status;
}
