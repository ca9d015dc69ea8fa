/* "Execution Control": cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel. The launch calls
   of CUDA 3: api_launch_old.c. A launch is checked (api_launch_rules.c), its parameters are
   copied, and it is queued. */
#include "emu/api.h"

#include <stdlib.h>
#include <string.h>

/* Copies the parameters into one block laid out as the kernel's. */
static CUresult take_params(const struct emu_kernel_info *info, void **params, void **extra,
                            struct api_launch *launch)
{
    const void *buffer = NULL;
    size_t buffer_bytes = 0;
    bool has_buffer = false, has_size = false;
    for (size_t i = 0; extra != NULL && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[i + 1];
            has_buffer = true;
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != NULL) {
            buffer_bytes = *(const size_t *)extra[i + 1];
            has_size = true;
        } else {
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "entry %zu of extra is unknown", i);
        }
    }
    /* A buffer without a size is none, on the H200; beside one kernelParams must be NULL. */
    if (has_size && (!has_buffer || (buffer == NULL && buffer_bytes > 0)))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "extra lacks a parameter buffer");
    if (params != NULL && buffer_bytes > 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "both kernelParams and extra are given");
    if (info->n_params == 0)
        return buffer_bytes == 0 ? CUDA_SUCCESS
                                 : api_set_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                                                 "parameters are given, the kernel has none");
    if (params == NULL && buffer_bytes == 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the kernel has %u parameters, none are given",
                             info->n_params);
    uint32_t last = info->n_params - 1, needed = info->param_offsets[last] + info->param_sizes[last];
    /* An H200's driver takes a shorter buffer (what it lacks is undefined: zero here), and refuses a longer
     * one so. */
    if (buffer_bytes > needed)
        return api_set_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                             "the parameter buffer has %zu bytes, the kernel's "
                             "parameters %u",
                             buffer_bytes, needed);
    unsigned char *block = calloc(1, info->param_bytes > needed ? info->param_bytes : needed);
    if (block == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for kernel parameters");
    launch->params = block;
    launch->param_bytes = info->param_bytes > needed ? info->param_bytes : needed;
    if (buffer_bytes > 0) {
        memcpy(block, buffer, buffer_bytes);
        return CUDA_SUCCESS;
    }
    for (uint32_t i = 0; i < info->n_params; i++) {
        if (params[i] == NULL)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "parameter %u is NULL", i);
        memcpy(block + info->param_offsets[i], params[i], info->param_sizes[i]);
    }
    return CUDA_SUCCESS;
}

CUresult api_launch_prepare(struct api_context *context, struct api_green *green,
                            const CUlaunchConfig *config, CUfunction f, void **params, void **extra,
                            bool cooperative, struct api_work *out_work)
{
    struct api_function *function;
    CUresult result = api_function_get(context, f, &function);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_launch launch = {
        .function = function,
        .green = green,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .cooperative = cooperative,
        .dynamic_shared_bytes = config->sharedMemBytes,
    };
    result = api_grid_in_ctas(function, launch.grid);
    if (result == CUDA_SUCCESS)
        result = api_launch_check(api_device(), &launch, config->attrs, config->numAttrs);
    if (result == CUDA_SUCCESS)
        result = take_params(&function->info, params, extra, &launch);
    if (result != CUDA_SUCCESS) {
        free(launch.params);
        return result;
    }
    function->module->refs++;
    if (green != NULL)
        green->refs++;
    *out_work = (struct api_work){.kind = API_WORK_KERNEL, .launch = launch};
    return CUDA_SUCCESS;
}

/* Records the event that the launch asked for. */
static CUresult fire(struct api_stream *stream, CUevent handle, unsigned char port)
{
    struct api_event *event = emu_handle_get(EMU_HANDLE_EVENT, handle);
    if (event == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the launch's event is gone");
    return stream->capture != NULL ? api_capture_record_early(stream, event, port)
                                   : api_event_record(event, stream, false);
}

static CUresult launch(const char *call, const CUlaunchConfig *config, CUfunction f, void **params,
                       void **extra, bool cooperative)
{
    struct api_context *context;
    struct api_stream *stream;
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = api_enter_for(call, config != NULL ? config->hStream : NULL, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(config != NULL);
    const struct api_function *function = emu_handle_get(EMU_HANDLE_FUNCTION, f);
    if (function != NULL && function->module->context != context)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "the function is of another context than the stream");
    result = api_stream_get(context, config->hStream, &stream);
    if (result == CUDA_SUCCESS)
        result =
            api_launch_prepare(stream->context, stream->green, config, f, params, extra, cooperative, &work);
    if (result != CUDA_SUCCESS && api_thread()->error.message[0] != '\0')
        emu_log_refused("%s returns %s: %s", call, api_error_name(result), api_thread()->error.message);
    const CUevent fires = result == CUDA_SUCCESS ? work.launch.fires : NULL;
    const unsigned char port = fires != NULL ? work.launch.fires_port : 0;
    if (result == CUDA_SUCCESS) {
        stream->refs++; /* for what follows the launch */
        if (stream->capture == NULL)
            emu_kernel_queued(work.launch.function->kernel);
        result = api_submit(stream, &work, API_ASYNC);
        if (result == CUDA_SUCCESS && fires != NULL)
            result = fire(stream, fires, port);
        api_stream_release(stream);
    }
    return api_result(result);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                  void **extra)
{
    return launch(__func__, config, f, kernelParams, extra, false);
}

/* What the two calls below spell as arguments. */
#define SHAPE_OF_ARGUMENTS                                                                                   \
    {                                                                                                        \
        .gridDimX = gridDimX, .gridDimY = gridDimY, .gridDimZ = gridDimZ, .blockDimX = blockDimX,            \
        .blockDimY = blockDimY, .blockDimZ = blockDimZ, .sharedMemBytes = sharedMemBytes, .hStream = hStream \
    }

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                void **kernelParams, void **extra)
{
    const CUlaunchConfig config = SHAPE_OF_ARGUMENTS;
    return launch(__func__, &config, f, kernelParams, extra, false);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                           unsigned int gridDimZ, unsigned int blockDimX,
                                           unsigned int blockDimY, unsigned int blockDimZ,
                                           unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
    const CUlaunchConfig config = SHAPE_OF_ARGUMENTS;
    return launch(__func__, &config, f, kernelParams, NULL, true);
}
#undef SHAPE_OF_ARGUMENTS
