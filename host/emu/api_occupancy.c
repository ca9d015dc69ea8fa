/* "Occupancy": how many CTAs and clusters fit (occupancy.c has the arithmetic), and the block size that fills
 * an SM. */
#include "emu/api.h"

static CUresult enter_function(const char *call, CUfunction handle, struct api_function **out_function)
{
    struct api_context *context;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_function_get(context, handle, out_function);
    return result == CUDA_SUCCESS ? CUDA_SUCCESS : api_result(result);
}

static uint32_t ctas(const struct api_function *function, int threads, size_t bytes)
{
    const uint32_t dynamic = (uint32_t)bytes; /* so the H200's driver reads it */
    if (dynamic >
        api_dynamic_shared_limit(&function->settings, &function->info)) /* not opted in: none, on the H200 */
        return 0;
    return emu_occupancy_ctas(api_device()->model, function->kernel, (uint32_t)threads, dynamic);
}

static CUresult active_blocks(const char *call, int *numBlocks, CUfunction func, int blockSize,
                              size_t dynamic, unsigned flags)
{
    struct api_function *function;
    CUresult result = enter_function(call, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(numBlocks != NULL && blockSize > 0);
    API_REQUIRE((flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == 0);
    *numBlocks = (int)ctas(function, blockSize, dynamic);
    return api_leave();
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                             size_t dynamicSMemSize)
{
    return active_blocks(__func__, numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                                      int blockSize, size_t dynamicSMemSize,
                                                                      unsigned int flags)
{
    return active_blocks(__func__, numBlocks, func, blockSize, dynamicSMemSize, flags);
}

/* Blocks of whole warps from the largest down; the first that keeps most threads resident. */
static CUresult potential(const char *call, int *minGridSize, int *blockSize, CUfunction func,
                          CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit, unsigned flags)
{
    struct api_function *function;
    CUresult result = enter_function(call, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(minGridSize != NULL && blockSize != NULL && limit >= 0);
    API_REQUIRE((flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == 0);
    int most = 1024, best = 0;
    uint32_t best_ctas = 0;
    api_settings_read(&function->settings, &function->info, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &most);
    if (limit > 0 && limit < most)
        most = limit;
    for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
        size_t bytes = dynamic;
        if (dynamic_of != NULL) {
            const CUfunction handle = function->handle;
            (void)api_leave(); /* the program's function */
            bytes = dynamic_of(threads);
            api_lock();
            api_thread()->call = call;
            function = emu_handle_get(EMU_HANDLE_FUNCTION, handle);
            if (function == NULL)
                return api_fail(CUDA_ERROR_INVALID_HANDLE, "the function was unloaded meanwhile");
        }
        uint32_t fit = ctas(function, threads, bytes);
        if ((uint64_t)fit * (unsigned)threads > (uint64_t)best_ctas * (unsigned)best) {
            best = threads;
            best_ctas = fit;
        }
    }
    *blockSize = best;
    *minGridSize = (int)(best_ctas * api_model_of(api_green_current())->sms);
    return api_leave();
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                  CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                  size_t dynamicSMemSize, int blockSizeLimit)
{
    return potential(__func__, minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                     blockSizeLimit, 0);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                           CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                           size_t dynamicSMemSize, int blockSizeLimit,
                                                           unsigned int flags)
{
    return potential(__func__, minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                     blockSizeLimit, flags);
}

/* The dynamic shared memory left to each of numBlocks CTAs on one SM. */
CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                         int numBlocks, int blockSize)
{
    struct api_function *function;
    CUresult result = enter_function(__func__, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(dynamicSmemSize != NULL && numBlocks > 0 && blockSize > 0);
    if (ctas(function, blockSize, 0) < (uint32_t)numBlocks)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%d CTAs of %d threads do not fit one SM", numBlocks,
                        blockSize);
    const struct emu_model *model = api_device()->model;
    /* The 1 KiB that is reserved per CTA is not taken off: an H200's driver does not either. */
    uint32_t each = model->shared_per_sm_bytes / (uint32_t)numBlocks / 128 * 128;
    uint32_t left = each > function->info.static_shared_bytes ? each - function->info.static_shared_bytes : 0;
    uint32_t most = api_dynamic_shared_limit(&function->settings, &function->info);
    *dynamicSmemSize = left < most ? left : most;
    return api_leave();
}

/* ---- clusters ---- */

/* What both cluster queries check. A block that no launch would take has no place: *out_threads is 0 then. */
static CUresult check_config(const struct api_function *function, const CUlaunchConfig *config,
                             uint32_t *out_threads, uint32_t out_cluster[3], bool *out_has)
{
    uint64_t plane = (uint64_t)config->blockDimX * config->blockDimY, threads = plane * config->blockDimZ;
    if (threads == 0 || config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 ||
        config->gridDimX > INT32_MAX || config->gridDimY > UINT16_MAX || config->gridDimZ > UINT16_MAX)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "grid %u x %u x %u of blocks of %llu threads",
                             config->gridDimX, config->gridDimY, config->gridDimZ,
                             (unsigned long long)threads);
    *out_threads = plane > 1024 || threads > 1024 ? 0 : (uint32_t)threads;
    return api_cluster_shape(function, config, out_cluster, out_has);
}

/* Of the green context that the configuration's stream is in. */
static const struct emu_model *model_of(const CUlaunchConfig *config)
{
    const struct api_stream *stream = emu_handle_get(EMU_HANDLE_STREAM, config->hStream);
    return api_model_of(stream != NULL ? stream->green : api_green_current());
}

/* An H200's query does not know that no launch may ask for more than 16 CTAs, and answers by the formula.
   UNVERIFIED on parts that hold at most eight (CUDA Driver API 13.0, "Occupancy"): no cluster is active there
   that a launch would refuse. */
static uint32_t clusters(const struct emu_model *model, const struct api_function *function, uint32_t threads,
                         uint32_t dynamic, uint64_t size)
{
    const bool portable_only = model->max_cluster == model->max_cluster_portable;
    if (threads == 0 || size > UINT32_MAX || (portable_only && size > model->max_cluster) ||
        dynamic > api_dynamic_shared_limit(&function->settings, &function->info))
        return 0;
    return emu_occupancy_clusters(model, function->kernel, threads, dynamic, (uint32_t)size);
}

/* These two work in the function's context, whatever is current. */
static CUresult enter_any(const char *call, CUfunction handle, struct api_function **out_function)
{
    CUresult result;
    api_lock();
    const bool is_kernel = emu_handle_get(EMU_HANDLE_KERNEL, handle) != NULL,
               was_function = emu_handle_was(EMU_HANDLE_FUNCTION, handle) != 0;
    api_unlock();
    if (is_kernel)
        return enter_function(call, handle, out_function);
    *out_function =
        api_enter_object(call, EMU_HANDLE_FUNCTION, handle,
                         was_function ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_VALUE, &result);
    return *out_function == NULL ? result : api_use_context((*out_function)->module->context);
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
    struct api_function *function;
    CUresult result = enter_any(__func__, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(numClusters != NULL && config != NULL);
    uint32_t threads = 0, cluster[3];
    bool has;
    result = check_config(function, config, &threads, cluster, &has);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    uint64_t size = (uint64_t)cluster[0] * cluster[1] * cluster[2];
    *numClusters = has ? (int)clusters(model_of(config), function, threads, config->sharedMemBytes, size) : 0;
    return api_leave();
}

/* The largest size that fits somewhere. The kernel's own cluster directives do not narrow it on an H200,
   though the manual says so; a configuration that they refuse is refused here too. */
CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                    const CUlaunchConfig *config)
{
    struct api_function *function;
    CUresult result = enter_any(__func__, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(clusterSize != NULL && config != NULL);
    const struct emu_model *model = model_of(config);
    uint32_t threads = 0, cluster[3];
    bool has;
    result = check_config(function, config, &threads, cluster, &has);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    uint32_t size = function->settings.nonportable_allowed ? model->max_cluster : model->max_cluster_portable;
    while (size > 0 && clusters(model, function, threads, config->sharedMemBytes, size) == 0)
        size--;
    *clusterSize = (int)size;
    return api_leave();
}
