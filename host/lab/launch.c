/* Images, kernel functions and launches through the driver table (CUDA Driver API 13.0: Module Management,
   Execution Control, Occupancy). Launch rules: PTX and driver facts section 8; the H200's answers of
   2026-11-30. */
#include "lab/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compile/image.h"
#include "compile/jit.h"
#include "driver/call.h"
#include "lab/arguments.h"
#include "lab/wire.h"

/* The file that the user knows, in place of none or of the image's temporary path. */
static void name_source(struct clab_error *error, const char *path, const char *source)
{
    if (error != NULL && (error->file[0] == '\0' || strcmp(error->file, path) == 0))
        snprintf(error->file, sizeof error->file, "%s", source);
}

clab_status clab_launch_blame(struct clab_error *error, const struct clab_loaded *loaded)
{
    name_source(error, "", loaded->source);
    return error != NULL ? error->status : CLAB_EXPERIMENT;
}

/* Line numbers are those of the text that the device was given: the name says when that is not the source's.
 */
static void name_text(struct clab_str *name, const char *source)
{
    const char *dot = strrchr(source, '.');
    clab_str_addf(name, "%s%s", dot != NULL && strcmp(dot, ".cu") == 0 ? "PTX of " : "", source);
}

void clab_error_name_source(struct clab_error *error, const char *source)
{
    static const char alias[] = CLAB_UNNAMED_SOURCE;
    struct clab_str name = {0}, log = {0};
    if (error == NULL || error->status == CLAB_OK)
        return;
    name_text(&name, source);
    if (strcmp(error->file, alias) == 0 && name.text != NULL)
        snprintf(error->file, sizeof error->file, "%s", name.text);
    const char *from = error->log, *at;
    while (from != NULL && name.text != NULL && (at = strstr(from, alias)) != NULL) {
        clab_str_add_bytes(&log, from, (size_t)(at - from));
        clab_str_add(&log, name.text);
        from = at + sizeof alias - 1;
    }
    if (log.bytes != 0) {
        clab_str_add(&log, from);
        clab_error_log(error, log.text, SIZE_MAX);
    }
    clab_str_free(&log);
    clab_str_free(&name);
}

/* Lists the module's functions for a "no such entry" message, where the driver can (12.4 and later). */
static void list_entries(const struct clab_device *device, CUmodule module, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    unsigned count = 0;
    CUfunction functions[32];
    if (error == NULL || driver->cuModuleGetFunctionCount == NULL ||
        driver->cuModuleEnumerateFunctions == NULL || driver->cuFuncGetName == NULL ||
        driver->cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS)
        return;
    if (count > 32)
        count = 32;
    if (driver->cuModuleEnumerateFunctions(functions, count, module) != CUDA_SUCCESS)
        return;
    struct clab_str names = {0};
    for (unsigned i = 0; i < count; i++) {
        const char *name = NULL;
        if (driver->cuFuncGetName(&name, functions[i]) == CUDA_SUCCESS && name != NULL)
            clab_str_addf(&names, "%s%s", names.bytes != 0 ? ", " : "", name);
    }
    if (names.bytes != 0)
        clab_error_remedy(error, "the image has: %s", names.text);
    clab_str_free(&names);
}

static int function_attribute(const struct clab_device *device, CUfunction function,
                              CUfunction_attribute which)
{
    int value = 0;
    if (device->driver->cuFuncGetAttribute(&value, which, function) != CUDA_SUCCESS)
        return -1;
    return value;
}

clab_status clab_load(const struct clab_device *device, const char *path, const char *source,
                      const char *entry, struct clab_loaded *out_loaded, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    memset(out_loaded, 0, sizeof *out_loaded);
    snprintf(out_loaded->entry, sizeof out_loaded->entry, "%s", entry);
    snprintf(out_loaded->source, sizeof out_loaded->source, "%s", source);
    struct clab_image image = {0};
    struct clab_str name = {0};
    clab_status status = clab_image_read(path, &image, error);
    if (status == CLAB_OK && driver->channel != NULL) {
        name_text(&name, source);
        (void)driver->channel->set_option("source", name.text, NULL); /* only words depend on it */
        clab_str_free(&name);
    }
    if (status == CLAB_OK)
        status = clab_module_load(driver, &image, &out_loaded->module, error);
    clab_image_free(&image);
    if (status != CLAB_OK) {
        name_source(error, path, source);
        return status;
    }
    status = CLAB_CALL(driver, error, cuModuleGetFunction, (&out_loaded->function, out_loaded->module, entry),
                       "'%s'", entry);
    if (status != CLAB_OK) {
        name_source(error, path, source);
        if (status == CLAB_NOT_FOUND)
            list_entries(device, out_loaded->module, error);
        clab_unload(device, out_loaded);
        return status;
    }
    CUfunction function = out_loaded->function;
    out_loaded->registers = function_attribute(device, function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    out_loaded->static_shared_bytes =
        function_attribute(device, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    out_loaded->local_bytes = function_attribute(device, function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    out_loaded->max_threads = function_attribute(device, function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out_loaded->n_params = SIZE_MAX;
    if (driver->cuFuncGetParamInfo != NULL) {
        size_t n = 0, offset, size;
        while (n < 256 && driver->cuFuncGetParamInfo(function, n, &offset, &size) == CUDA_SUCCESS)
            out_loaded->param_bytes[n++] = size;
        out_loaded->n_params = n;
    }
    return CLAB_OK;
}

void clab_unload(const struct clab_device *device, struct clab_loaded *loaded)
{
    if (loaded->module != NULL)
        (void)device->driver->cuModuleUnload(loaded->module);
    loaded->module = NULL;
    loaded->function = NULL;
}

static bool read_shape(const json_t *array, unsigned out[3])
{
    out[0] = out[1] = out[2] = 1;
    if (!json_is_array(array) || json_array_size(array) == 0 || json_array_size(array) > 3)
        return false;
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_int_t value = json_integer_value(json_array_get(array, i));
        if (value < 0 || value > UINT32_MAX)
            return false;
        out[i] = (unsigned)value;
    }
    return true;
}

/* Raises one of the function's limits; a lower one would take it from a launch that was prepared before. */
static clab_status raise_limit(const struct clab_device *device, const struct clab_loaded *loaded,
                               CUfunction_attribute which, int value, const char *what,
                               struct clab_error *error)
{
    if (function_attribute(device, loaded->function, which) >= value)
        return CLAB_OK;
    return CLAB_CALL(device->driver, error, cuFuncSetAttribute, (loaded->function, which, value), "%s = %d",
                     what, value);
}

static unsigned cluster_size(const struct clab_launch *launch)
{
    return launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
}

/* Asks the occupancy query; its answer decides `fit` grids, and 0 means that the shape cannot run here at
 * all. */
static clab_status ask_clusters(const struct clab_device *device, struct clab_launch *launch,
                                int *out_clusters, struct clab_error *error)
{
    const unsigned product = cluster_size(launch);
    clab_status status =
        CLAB_CALL(device->driver, error, cuOccupancyMaxActiveClusters,
                  (out_clusters, launch->loaded->function, &launch->config), "cluster of %u CTAs", product);
    if (status == CLAB_OK && *out_clusters >= 1)
        return CLAB_OK;
    if (status != CLAB_OK && (error == NULL || error->native_code != CUDA_ERROR_INVALID_CLUSTER_SIZE))
        return status;
    int answer = status == CLAB_OK ? 0 : CUDA_ERROR_INVALID_CLUSTER_SIZE;
    clab_error_set(error, CLAB_WAIVED,
                   answer == 0 ? "the device holds no cluster of %u CTAs of this kernel (occupancy query: 0)"
                               : "the device takes no cluster of %u CTAs of this kernel (occupancy query: "
                                 "CUDA_ERROR_INVALID_CLUSTER_SIZE)",
                   product);
    return CLAB_WAIVED;
}

/* Shared memory beyond 48 KiB and clusters beyond 8 CTAs need the function's leave. */
static clab_status opt_in(const struct clab_device *device, const struct clab_launch *launch, int64_t shared,
                          struct clab_error *error)
{
    const struct clab_loaded *loaded = launch->loaded;
    clab_status status = CLAB_OK;
    if (shared + loaded->static_shared_bytes > 48 * 1024) {
        if (shared + loaded->static_shared_bytes > device->max_shared_optin_bytes)
            return clab_error_set(
                error, CLAB_WAIVED, "needs %lld bytes of shared memory per CTA, the device has %d",
                (long long)shared + loaded->static_shared_bytes, device->max_shared_optin_bytes);
        status = raise_limit(device, loaded, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared,
                             "max dynamic shared bytes", error);
    }
    if (status == CLAB_OK && launch->has_cluster && cluster_size(launch) > 8)
        status = raise_limit(device, loaded, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                             "non-portable cluster size", error);
    return status;
}

static clab_status check_division(const struct clab_launch *launch, const unsigned grid[3],
                                  struct clab_error *error)
{
    for (int i = 0; i < 3; i++)
        if (launch->cluster[i] != 0 && grid[i] % launch->cluster[i] != 0)
            return clab_error_set(
                error, CLAB_EXPERIMENT,
                "grid %u does not divide by cluster %u in dimension %c: the grid counts CTAs and "
                "must be a multiple of the cluster",
                grid[i], launch->cluster[i], "xyz"[i]);
    return CLAB_OK;
}

/* The CTAs of a `fit` grid: what the device holds at once, times `waves`, at most `at_most`, in whole
 * clusters. */
static clab_status fit_grid(const struct clab_device *device, const json_t *fit, struct clab_launch *launch,
                            struct clab_error *error)
{
    CUlaunchConfig *config = &launch->config;
    const int64_t size = cluster_size(launch), most = clab_json_int(fit, "at_most", INT64_MAX);
    const int64_t per_sm_limit = clab_json_int(fit, "ctas_per_sm", INT32_MAX);
    int64_t ctas = launch->active_clusters * size;
    if (launch->has_cluster && strcmp(clab_json_text(fit, "per", "cta"), "cluster") == 0) {
        if (ctas > per_sm_limit * device->sms)
            ctas = per_sm_limit * device->sms;
    } else {
        int per_sm = 0;
        clab_status status = CLAB_CALL(device->driver, error, cuOccupancyMaxActiveBlocksPerMultiprocessor,
                                       (&per_sm, launch->loaded->function,
                                        (int)(config->blockDimX * config->blockDimY * config->blockDimZ),
                                        config->sharedMemBytes),
                                       NULL);
        if (status != CLAB_OK)
            return status;
        ctas = (per_sm < per_sm_limit ? per_sm : per_sm_limit) * device->sms;
    }
    ctas *= clab_json_int(fit, "waves", 1);
    if (ctas < size)
        return clab_error_set(error, CLAB_WAIVED, "not one %s of this kernel fits the device",
                              launch->has_cluster ? "cluster" : "CTA");
    if (most < size)
        return clab_error_set(error, CLAB_WAIVED, "at most %lld CTAs are asked for, a cluster has %lld",
                              (long long)most, (long long)size);
    if (ctas > most)
        ctas = most;
    const int64_t clusters = ctas / size;
    if (clusters * launch->cluster[0] > INT32_MAX)
        return clab_error_set(error, CLAB_EXPERIMENT, "a grid of %lld CTAs is larger than any grid may be",
                              (long long)ctas);
    config->gridDimX = launch->cluster[0] * (unsigned)clusters;
    return CLAB_OK;
}

/* Everything of a launch but its arguments. */
static clab_status prepare_shape(const struct clab_device *device, const struct clab_loaded *loaded,
                                 const json_t *shape, struct clab_launch *launch, struct clab_error *error)
{
    unsigned grid[3], block[3];
    const json_t *fit = json_object_get(shape, "fit"), *cluster = json_object_get(shape, "cluster");
    const bool fits = json_is_object(fit);
    memset(launch, 0, sizeof *launch);
    launch->loaded = loaded;
    launch->has_cluster = json_is_array(cluster);
    if ((!read_shape(json_object_get(shape, "grid"), grid) && !fits) ||
        !read_shape(json_object_get(shape, "block"), block))
        return clab_error_set(error, CLAB_EXPERIMENT,
                              "launch.grid and launch.block must be one to three numbers");
    if (!read_shape(cluster, launch->cluster) && launch->has_cluster)
        return clab_error_set(error, CLAB_EXPERIMENT, "launch.cluster must be one to three numbers");
    const int64_t shared = clab_json_int(shape, "smem_bytes", 0);
    if (shared < 0 || shared > INT32_MAX)
        return clab_error_set(error, CLAB_EXPERIMENT, "launch.smem_bytes %lld is out of range",
                              (long long)shared);
    clab_status status = opt_in(device, launch, shared, error);
    if (status == CLAB_OK && launch->has_cluster && !fits)
        status = check_division(launch, grid, error);
    if (status != CLAB_OK)
        return status;
    CUlaunchConfig *config = &launch->config;
    config->gridDimX = fits ? launch->cluster[0] : grid[0]; /* one cluster, for the query */
    config->gridDimY = fits ? launch->cluster[1] : grid[1];
    config->gridDimZ = fits ? launch->cluster[2] : grid[2];
    config->blockDimX = block[0];
    config->blockDimY = block[1];
    config->blockDimZ = block[2];
    config->sharedMemBytes = (unsigned)shared;
    config->hStream = device->stream;
    config->attrs = launch->attributes;
    if (launch->has_cluster) {
        CUlaunchAttribute *attribute = &launch->attributes[config->numAttrs++];
        attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute->value.clusterDim.x = launch->cluster[0];
        attribute->value.clusterDim.y = launch->cluster[1];
        attribute->value.clusterDim.z = launch->cluster[2];
    }
    if (clab_json_bool(shape, "cooperative", false)) {
        CUlaunchAttribute *attribute = &launch->attributes[config->numAttrs++];
        attribute->id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute->value.cooperative = 1;
    }
    if (launch->has_cluster)
        status = ask_clusters(device, launch, &launch->active_clusters, error);
    return status == CLAB_OK && fits ? fit_grid(device, fit, launch, error) : status;
}

clab_status clab_launch_grid(const struct clab_device *device, const struct clab_loaded *loaded,
                             const json_t *row, unsigned out_grid[3], struct clab_error *error)
{
    struct clab_launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a launch");
    clab_status status = prepare_shape(device, loaded, json_object_get(row, "launch"), launch, error);
    out_grid[0] = launch->config.gridDimX;
    out_grid[1] = launch->config.gridDimY;
    out_grid[2] = launch->config.gridDimZ;
    free(launch);
    return status;
}

clab_status clab_launch_prepare(const struct clab_device *device, const struct clab_loaded *loaded,
                                const json_t *row,
                                CUdeviceptr (*buffer_address)(const char *name, void *context), void *context,
                                struct clab_launch *launch, struct clab_error *error)
{
    clab_status status = prepare_shape(device, loaded, json_object_get(row, "launch"), launch, error);
    if (status != CLAB_OK)
        return status;
    return clab_arguments_prepare(device, loaded, json_object_get(row, "args"), buffer_address, context,
                                  launch, error);
}

clab_status clab_launch_submit(const struct clab_device *device, struct clab_launch *launch,
                               struct clab_error *error)
{
    const CUlaunchConfig *config = &launch->config;
    clab_status status = CLAB_CALL(
        device->driver, error, cuLaunchKernelEx, (config, launch->loaded->function, launch->params, NULL),
        "'%s', grid %u x %u x %u, block %u x %u x %u, cluster %u x %u x %u", launch->loaded->entry,
        config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
        config->blockDimZ, launch->cluster[0], launch->cluster[1], launch->cluster[2]);
    if (status != CLAB_OK && launch->has_cluster && error != NULL &&
        error->native_code == CUDA_ERROR_INVALID_CLUSTER_SIZE)
        status = clab_error_set(error, CLAB_WAIVED,
                                "the device takes no cluster of %u CTAs of this kernel (launch: "
                                "CUDA_ERROR_INVALID_CLUSTER_SIZE; the occupancy query answered %d)",
                                cluster_size(launch), launch->active_clusters);
    if (status != CLAB_OK)
        name_source(error, "", launch->loaded->source);
    return status;
}

clab_status clab_device_wait(const struct clab_device *device, struct clab_error *error)
{
    return CLAB_CALL(device->driver, error, cuStreamSynchronize, (device->stream), NULL);
}

json_t *clab_launch_to_json(const struct clab_launch *launch)
{
    const CUlaunchConfig *c = &launch->config;
    json_t *cluster = launch->has_cluster ? json_pack("[i,i,i]", (int)launch->cluster[0],
                                                      (int)launch->cluster[1], (int)launch->cluster[2])
                                          : json_null();
    return json_pack("{s:[I,I,I],s:[I,I,I],s:o,s:I}", "grid", (json_int_t)c->gridDimX,
                     (json_int_t)c->gridDimY, (json_int_t)c->gridDimZ, "block", (json_int_t)c->blockDimX,
                     (json_int_t)c->blockDimY, (json_int_t)c->blockDimZ, "cluster", cluster, "smem_bytes",
                     (json_int_t)c->sharedMemBytes);
}
