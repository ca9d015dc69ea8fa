/* Attributes of functions and kernels ("CUfunction_attribute"): what can be read, what can be set, in which
 * range. */
#include "emu/api.h"

#define DEFAULT_DYNAMIC_SHARED (48 * 1024)

struct api_settings api_settings_default(void)
{
    return (struct api_settings){.max_dynamic_shared_bytes = -1, .carveout = -1};
}

static uint32_t opted_in(const struct emu_kernel_info *info)
{
    uint32_t most = api_device()->model->shared_per_block_optin_bytes;
    return info->static_shared_bytes < most ? most - info->static_shared_bytes : 0;
}

uint32_t api_dynamic_shared_limit(const struct api_settings *settings, const struct emu_kernel_info *info)
{
    if (settings->max_dynamic_shared_bytes >= 0)
        return (uint32_t)settings->max_dynamic_shared_bytes;
    return info->static_shared_bytes < DEFAULT_DYNAMIC_SHARED
               ? DEFAULT_DYNAMIC_SHARED - info->static_shared_bytes
               : 0;
}

static int max_threads(const struct emu_kernel_info *info)
{
    const struct ptx_directives *directives = &info->function->directives;
    uint64_t threads = 1;
    if (!directives->has_maxntid) /* .reqntid leaves it at 1024, as on the H200 */
        return 1024;
    for (int i = 0; i < 3; i++)
        threads *= directives->maxntid[i] != 0 ? directives->maxntid[i] : 1;
    return threads < 1024 ? (int)threads : 1024;
}

CUresult api_settings_read(const struct api_settings *settings, const struct emu_kernel_info *info,
                           CUfunction_attribute attribute, int *out_value)
{
    const struct ptx_directives *directives = &info->function->directives;
    const struct emu_model *model = api_device()->model;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out_value = max_threads(info);
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *out_value = (int)info->static_shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *out_value = (int)info->const_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *out_value = (int)info->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *out_value = (int)info->registers_modelled;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: /* of the .target, as the driver counts it: 90 for sm_90 */
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *out_value = model->sm;
        break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *out_value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out_value = (int)api_dynamic_shared_limit(settings, info);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *out_value = settings->carveout;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *out_value = directives->explicitcluster;
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
        int axis = (int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
        *out_value = directives->has_reqnctapercluster ? (int)directives->reqnctapercluster[axis]
                                                       : settings->cluster[axis];
        break;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *out_value = settings->nonportable_allowed;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *out_value = settings->cluster_policy;
        break;
    default:
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "function attribute %d", (int)attribute);
    }
    return CUDA_SUCCESS;
}

CUresult api_settings_set(struct api_settings *settings, const struct emu_kernel_info *info,
                          CUfunction_attribute attribute, int value)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (uint32_t)value > opted_in(info))
            return api_set_error(CUDA_ERROR_INVALID_VALUE,
                                 "%d bytes of dynamic shared memory: wanted 0 to %u", value, opted_in(info));
        settings->max_dynamic_shared_bytes = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "carveout %d: wanted -1 to 100", value);
        settings->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (info->function->directives.has_reqnctapercluster) {
            int axis = (int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
            if ((int)info->function->directives.reqnctapercluster[axis] == value)
                return CUDA_SUCCESS;
            return api_set_error(CUDA_ERROR_INVALID_VALUE,
                                 "the kernel fixes its cluster with .reqnctapercluster");
        }
        if (value < 0)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "cluster dimension %d", value);
        settings->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        settings->nonportable_allowed = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (value < CU_CLUSTER_SCHEDULING_POLICY_DEFAULT ||
            value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "scheduling policy %d", value);
        settings->cluster_policy = value;
        return CUDA_SUCCESS;
    default:
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "function attribute %d cannot be set", (int)attribute);
    }
}
