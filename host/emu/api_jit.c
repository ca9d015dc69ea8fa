/* JIT options (jit.h). Options that steer ptxas's optimiser are accepted and have nothing to steer: the
   emulator runs the PTX as written. */
#include "emu/api_jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult api_jit_read(unsigned count, CUjit_option *options, void **values, struct api_jit *out_jit)
{
    *out_jit = (struct api_jit){0};
    if (count > 0 && (options == NULL || values == NULL))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u options, but no list", count);
    int has_info = 0, has_error = 0;
    unsigned n_symbols = 0;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            out_jit->info = values[i];
            has_info = 1;
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            out_jit->info_size = &values[i];
            out_jit->info_bytes = (unsigned)(uintptr_t)values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            out_jit->error = values[i];
            has_error = 1;
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            out_jit->error_size = &values[i];
            out_jit->error_bytes = (unsigned)(uintptr_t)values[i];
            break;
        case CU_JIT_MAX_REGISTERS:
            out_jit->max_registers = (unsigned)(uintptr_t)values[i];
            if (out_jit->max_registers == 0)
                return api_set_error(CUDA_ERROR_INVALID_VALUE, "at most 0 registers");
            break;
        case CU_JIT_TARGET:
            out_jit->has_target = true;
            out_jit->target = (unsigned)(uintptr_t)values[i];
            break;
        case CU_JIT_NEW_SM3X_OPT:
            out_jit->has_sm3x = true;
            break;
        case CU_JIT_FALLBACK_STRATEGY:
            out_jit->has_fallback = true;
            break;
        case CU_JIT_CACHE_MODE:
            if ((uintptr_t)values[i] > CU_JIT_CACHE_OPTION_CA)
                return api_set_error(CUDA_ERROR_INVALID_VALUE, "cache mode %zu",
                                     (size_t)(uintptr_t)values[i]);
            break;
        case CU_JIT_REFERENCED_KERNEL_NAMES:
        case CU_JIT_REFERENCED_VARIABLE_NAMES:
            if (values[i] == NULL)
                return api_set_error(CUDA_ERROR_INVALID_VALUE, "JIT option %d names nothing",
                                     (int)options[i]);
            break;
        case CU_JIT_WALL_TIME:
            out_jit->wall_time = &values[i];
            break;
        case CU_JIT_GLOBAL_SYMBOL_NAMES:
        case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
        case CU_JIT_GLOBAL_SYMBOL_COUNT:
            n_symbols++;
            break;
        default:
            if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
                return api_set_error(CUDA_ERROR_INVALID_VALUE, "unknown JIT option %d", (int)options[i]);
            break;
        }
    }
    /* A buffer goes with its size, and the three of the host's symbols go together. */
    if (has_info != (out_jit->info_size == NULL ? 0 : 1) ||
        has_error != (out_jit->error_size == NULL ? 0 : 1) || (n_symbols != 0 && n_symbols != 3))
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "a log buffer without its size, or a size without its buffer");
    if (n_symbols != 0)
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED,
                             "JIT options 17 to 19 (global symbols of the host) are not emulated");
    return CUDA_SUCCESS;
}

/* CU_JIT_TARGET as an H200 takes it. The code is compiled for the device, whatever is asked for. */
static CUresult check_target(unsigned target)
{
    static const unsigned short known[] = {30, 32, 35, 37, 50, 52, 53,  60,  61,  62,  70, 72,
                                           75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    const unsigned kinds = CU_COMPUTE_ACCELERATED_TARGET_BASE | CU_COMPUTE_FAMILY_TARGET_BASE;
    const unsigned sm = target & ~kinds;
    if (target < 30)
        return api_set_error(CUDA_ERROR_INVALID_IMAGE, "target %u", target);
    for (size_t i = 0; i < API_COUNT_OF(known); i++)
        if (known[i] == sm && (target & kinds) != kinds)
            return sm <= (unsigned)api_device()->model->sm
                       ? CUDA_SUCCESS
                       : api_set_error(CUDA_ERROR_INVALID_SOURCE, "target %u is above the device", sm);
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "unknown target %u", target);
}

CUresult api_jit_check_load(const struct api_jit *jit)
{
    if (jit->has_sm3x)
        return api_set_error(CUDA_ERROR_INVALID_PTX, "CU_JIT_NEW_SM3X_OPT is known to no assembler any more");
    return jit->has_target ? check_target(jit->target) : CUDA_SUCCESS;
}

static void put(char *buffer, size_t bytes, void **size, const char *text)
{
    size_t length = strlen(text);
    if (buffer != NULL && bytes > 0)
        snprintf(buffer, bytes, "%s", text);
    if (size != NULL)
        *size = (void *)(uintptr_t)(buffer == NULL || bytes == 0 ? 0 : length < bytes ? length : bytes - 1);
}

void api_jit_answer(const struct api_jit *jit, const struct clab_error *error, double seconds)
{
    char *text = error != NULL && error->status != CLAB_OK ? clab_error_format(error) : NULL;
    put(jit->info, jit->info_bytes, jit->info_size, "");
    put(jit->error, jit->error_bytes, jit->error_size, text != NULL ? text : "");
    free(text);
    if (jit->wall_time != NULL) {
        float milliseconds = (float)(seconds * 1e3);
        memcpy(jit->wall_time, &milliseconds, sizeof milliseconds);
    }
}
