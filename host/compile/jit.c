/* From image to module (CUDA Driver API 13.0, "Module Management": cuModuleLoadDataEx, cuLinkCreate,
   cuLinkAddData, cuLinkComplete). The driver's JIT goes through the linker calls, so that its cubin can be
   kept and read. */
#include "compile/jit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "compile/ptxas_log.h"
#include "driver/call.h"

enum { LOG_BYTES = 64 * 1024 };

/* Error and info log buffers and the options that name them. Values travel as pointers, as the API wants it.
 */
struct jit_logs {
    char *errors, *infos;
    CUjit_option keys[5];
    void *values[5];
};

static bool logs_init(struct jit_logs *logs)
{
    logs->errors = calloc(1, LOG_BYTES);
    logs->infos = calloc(1, LOG_BYTES);
    const CUjit_option keys[5] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                  CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                  CU_JIT_LOG_VERBOSE};
    void *const values[5] = {logs->errors, (void *)(uintptr_t)LOG_BYTES, logs->infos,
                             (void *)(uintptr_t)LOG_BYTES, (void *)(uintptr_t)1};
    memcpy(logs->keys, keys, sizeof keys);
    memcpy(logs->values, values, sizeof values);
    return logs->errors != NULL && logs->infos != NULL;
}

static void logs_fini(struct jit_logs *logs)
{
    free(logs->errors);
    free(logs->infos);
}

/* Adds file, line and log of a PTX error to what the call already said. */
static clab_status add_log(struct clab_error *error, clab_status status, const struct jit_logs *logs,
                           const struct clab_image *image)
{
    if (error == NULL)
        return status;
    const char *path = image->source_path != NULL ? image->source_path : "";
    struct clab_error located = {0};
    if (error->line == 0 && image->kind == CLAB_IMAGE_PTX &&
        clab_ptxas_log_error(logs->errors, path, image->data, &located)) {
        clab_error_at(error, located.file, located.line, located.column);
        memcpy(error->source_line, located.source_line, sizeof error->source_line);
        clab_error_context(error, "%s", located.message);
    } else if (error->file[0] == '\0') {
        clab_error_at(error, path, 0, 0);
    }
    if (error->log == NULL) {
        char *rest = clab_log_rest(logs->errors, located.line > 0 ? &located : error);
        clab_error_log(error, rest, SIZE_MAX);
        free(rest);
    }
    clab_error_clear(&located);
    return status;
}

clab_status clab_module_load(const struct clab_driver *driver, const struct clab_image *image,
                             CUmodule *out_module, struct clab_error *error)
{
    struct jit_logs logs;
    clab_status status;
    if (!logs_init(&logs))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the driver's log");
    else
        status = CLAB_CALL(
            driver, error, cuModuleLoadDataEx, (out_module, image->data, 5, logs.keys, logs.values), "%s%s%s",
            clab_image_kind_name(image->kind), image->arch[0] != '\0' ? " for " : "", image->arch);
    if (status != CLAB_OK)
        add_log(error, status, &logs, image);
    logs_fini(&logs);
    return status;
}

clab_status clab_jit_ptx(const struct clab_driver *driver, const struct clab_image *ptx,
                         struct clab_image *out, struct clab_error *error)
{
    struct jit_logs logs;
    CUlinkState link = NULL;
    void *cubin = NULL;
    size_t bytes = 0;
    memset(out, 0, sizeof *out);
    const char *path = ptx->source_path != NULL ? ptx->source_path : "PTX";
    bool ready = logs_init(&logs);
    clab_status status =
        ready ? CLAB_OK : clab_error_set(error, CLAB_NO_MEMORY, "no memory for the driver's log");
    uint64_t start = clab_now_ns();
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuLinkCreate_v2, (5, logs.keys, logs.values, &link), NULL);
    /* The text is not written to, although its parameter is not const; its NUL is part of it. */
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuLinkAddData_v2,
                           (link, CU_JIT_INPUT_PTX, ptx->data, ptx->bytes + 1, path, 0, NULL, NULL),
                           "PTX for %s", ptx->arch);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuLinkComplete, (link, &cubin, &bytes), NULL);
    uint64_t end = clab_now_ns();
    if (status != CLAB_OK && ready)
        add_log(error, status, &logs, ptx);
    if (status == CLAB_OK)
        status = clab_image_from_bytes(path, cubin, bytes, out, error);
    if (status == CLAB_OK) {
        out->compile_ns = end - start;
        snprintf(out->compiler, sizeof out->compiler, "driver %d.%d", driver->version / 1000,
                 driver->version % 1000 / 10);
        out->ptx = strndup(ptx->data, ptx->bytes);
        out->ptx_bytes = out->ptx != NULL ? ptx->bytes : 0;
        out->entry = ptx->entry != NULL ? strdup(ptx->entry) : NULL;
        out->lowered = ptx->lowered != NULL ? strdup(ptx->lowered) : NULL;
        out->log = clab_compile_log_strip(logs.infos);
        if (out->lowered != NULL)
            clab_ptxas_log_resources(logs.infos, out->lowered, &out->resources);
    }
    if (link != NULL && driver->cuLinkDestroy != NULL)
        driver->cuLinkDestroy(link);
    logs_fini(&logs);
    return status;
}
