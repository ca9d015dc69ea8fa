/* What a launch may ask for ("Execution Control", cuLaunchKernel and cuLaunchKernelEx). The cluster rules are
   what an H200's driver 580.159.04 answers, case by case (tests/api/data/h200.txt). A launch
   attribute is honoured, is a hint that a scheduler may disregard, or is refused by name; none is silently
   ignored. */
#include "emu/api.h"

#define MAX_GRID_X  UINT32_C(0x7fffffff)
#define MAX_GRID_YZ UINT32_C(65535)
#define MAX_BLOCK   UINT32_C(1024)
#define MAX_BLOCK_Z UINT32_C(64)

static uint64_t product(const uint32_t three[3])
{
    return (uint64_t)three[0] * three[1] * three[2];
}

static CUresult check_block(const struct api_function *function, const uint32_t block[3])
{
    const struct ptx_directives *directives = &function->info.function->directives;
    if (block[0] == 0 || block[1] == 0 || block[2] == 0 || block[0] > MAX_BLOCK || block[1] > MAX_BLOCK ||
        block[2] > MAX_BLOCK_Z || product(block) > MAX_BLOCK)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "block %u x %u x %u: wanted 1 to 1024 threads, z up to 64", block[0], block[1],
                             block[2]);
    int most = 0;
    api_settings_read(&function->settings, &function->info, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &most);
    if (directives->has_reqntid) {
        for (int i = 0; i < 3; i++)
            if (block[i] != (directives->reqntid[i] != 0 ? directives->reqntid[i] : 1))
                return api_set_error(CUDA_ERROR_INVALID_VALUE,
                                     "block %u x %u x %u differs from the kernel's .reqntid", block[0],
                                     block[1], block[2]);
    } else if (product(block) > (uint64_t)most) {
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "%llu threads per block: the kernel's .maxntid allows %d",
                             (unsigned long long)product(block), most);
    }
    return CUDA_SUCCESS;
}

static void keep(struct api_hints *hints, const CUlaunchAttribute *attribute)
{
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        hints->window = attribute->value.accessPolicyWindow;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        hints->map = attribute->value.memSyncDomainMap;
        hints->has_map = true;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        hints->domain = attribute->value.memSyncDomain;
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        hints->carveout = attribute->value.sharedMemCarveout;
        break;
    default:
        break;
    }
}

/* An event that may be recorded before the kernel ends: here it is when the kernel has, which the manual
   allows (CUDA Driver API 13.0, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT). */
static CUresult fire(struct api_launch *launch, CUevent handle, int flags, unsigned char port)
{
    const struct api_event *event = emu_handle_get(EMU_HANDLE_EVENT, handle);
    if (event == NULL)
        return api_set_error(CUDA_ERROR_INVALID_HANDLE, "not a live event");
    if (flags != 0)
        return api_set_error(CUDA_ERROR_ILLEGAL_STATE, "flags 0x%x of the event", (unsigned)flags);
    if ((event->flags & CU_EVENT_DISABLE_TIMING) == 0 || (event->flags & CU_EVENT_INTERPROCESS) != 0)
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED,
                             "the event must be of this process, and without timing");
    launch->fires = handle;
    launch->fires_port = port;
    return CUDA_SUCCESS;
}

/* One attribute of the list. */
static CUresult apply(const CUlaunchAttribute *attribute, struct api_launch *launch,
                      const uint32_t **out_cluster)
{
    const CUlaunchAttributeValue *value = &attribute->value;
    _Static_assert(sizeof value->clusterDim == 3 * sizeof(uint32_t), "x, y, z");
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch->cooperative = value->cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        *out_cluster = &value->clusterDim.x;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if ((unsigned)value->clusterSchedulingPolicyPreference > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "cluster scheduling policy %d",
                                 (int)value->clusterSchedulingPolicyPreference);
        launch->hints.policy = value->clusterSchedulingPolicyPreference;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        launch->priority = value->priority;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        /* Permissions, this one and the next: to start before the previous kernel ends, to use larger
           clusters where they fit. Not making use of them is one of the outcomes that the manual allows; the
           hazard checker tells what others may do. */
        launch->programmatic = value->programmaticStreamSerializationAllowed != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        if ((attribute->id == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING &&
             value->nvlinkUtilCentricScheduling > 1) ||
            (attribute->id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN &&
             (unsigned)value->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE))
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "launch attribute %d has no such value",
                                 (int)attribute->id);
        keep(&launch->hints, attribute);
        emu_log_once("launch attribute %d is a hint that changes nothing here", (int)attribute->id);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "launch attribute 3 (synchronisation policy) is a stream's");
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return fire(launch, value->programmaticEvent.event, value->programmaticEvent.flags,
                    value->programmaticEvent.triggerAtBlockStart != 0
                        ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
                        : CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return fire(launch, value->launchCompletionEvent.event, value->launchCompletionEvent.flags,
                    CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED,
                             "launch attribute 13 (device-updatable node) is not emulated");
    default:
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "launch attribute %d is unknown", (int)attribute->id);
    }
}

/* The shape that kernel and attribute agree on. `attribute`: x, y, z, or NULL; 0, 0, 0 is as if absent. */
static CUresult agree(const struct api_function *function, const uint32_t *attribute, uint32_t cluster[3],
                      bool *out_has)
{
    const struct ptx_directives *directives = &function->info.function->directives;
    const int *settings = function->settings.cluster;
    uint32_t required[3] = {0, 0, 0};
    bool has_required =
        directives->has_reqnctapercluster || settings[0] != 0 || settings[1] != 0 || settings[2] != 0;
    for (int i = 0; i < 3; i++) {
        uint32_t one =
            directives->has_reqnctapercluster ? directives->reqnctapercluster[i] : (uint32_t)settings[i];
        required[i] = one != 0 ? one : 1;
        cluster[i] = 1;
    }
    if (!directives->has_reqnctapercluster && has_required &&
        (settings[0] == 0 || settings[1] == 0 || settings[2] == 0))
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                             "the function's required cluster is %d x %d x %d: all "
                             "dimensions or none",
                             settings[0], settings[1], settings[2]);
    bool given = attribute != NULL && (attribute[0] != 0 || attribute[1] != 0 || attribute[2] != 0);
    *out_has = given || has_required;
    if (given && (attribute[0] == 0 || attribute[1] == 0 || attribute[2] == 0))
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE, "cluster %u x %u x %u has an empty dimension",
                             attribute[0], attribute[1], attribute[2]);
    if (given && has_required &&
        (attribute[0] != required[0] || attribute[1] != required[1] || attribute[2] != required[2]))
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                             "cluster %u x %u x %u, but the kernel requires %u x %u x "
                             "%u",
                             attribute[0], attribute[1], attribute[2], required[0], required[1], required[2]);
    if (!*out_has && directives->explicitcluster)
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                             "the kernel is .explicitcluster: a cluster dimension must "
                             "be given");
    for (int i = 0; i < 3 && *out_has; i++)
        cluster[i] = given ? attribute[i] : required[i];
    return CUDA_SUCCESS;
}

/* Size and divisibility. The hardware's limit is the launch's own check: the occupancy query does not know
 * it. */
static CUresult check_cluster(const struct api_function *function, const uint32_t grid[3],
                              const uint32_t cluster[3])
{
    const struct ptx_directives *directives = &function->info.function->directives;
    const struct emu_model *model = api_device()->model;
    uint64_t size = product(cluster);
    if (size > model->max_cluster_portable && !function->settings.nonportable_allowed)
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                             "a cluster of %llu is above the portable %u: set "
                             "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
                             (unsigned long long)size, model->max_cluster_portable);
    if (directives->maxclusterrank != 0 && size > directives->maxclusterrank)
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                             "a cluster of %llu is above the kernel's "
                             ".maxclusterrank %u",
                             (unsigned long long)size, directives->maxclusterrank);
    for (int i = 0; i < 3; i++)
        if (grid[i] % cluster[i] != 0)
            return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                                 "grid dimension %c is %u, no multiple of the "
                                 "cluster's %u",
                                 'x' + i, grid[i], cluster[i]);
    return CUDA_SUCCESS;
}

/* PTX ISA 9.0, ".blocksareclusters": the grid of such a kernel counts clusters (as an H200 does, driver 13.0,
   2026-11-30). */
CUresult api_grid_in_ctas(const struct api_function *function, uint32_t grid[3])
{
    const struct ptx_directives *directives = &function->info.function->directives;
    for (int i = 0; i < 3 && directives->blocksareclusters && directives->has_reqnctapercluster; i++) {
        uint32_t each = directives->reqnctapercluster[i] != 0 ? directives->reqnctapercluster[i] : 1;
        if (__builtin_mul_overflow(grid[i], each, &grid[i]))
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "a grid of clusters whose CTAs overflow");
    }
    return CUDA_SUCCESS;
}

CUresult api_cluster_shape(const struct api_function *function, const CUlaunchConfig *config,
                           uint32_t out_cluster[3], bool *out_has)
{
    struct api_launch ignored = {0};
    const uint32_t *attribute = NULL;
    uint32_t grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    CUresult result = api_grid_in_ctas(function, grid);
    if (config->numAttrs > 0 && config->attrs == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u attributes, but no list", config->numAttrs);
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++)
        result = apply(&config->attrs[i], &ignored, &attribute);
    if (result == CUDA_SUCCESS)
        result = agree(function, attribute, out_cluster, out_has);
    return result == CUDA_SUCCESS && *out_has ? check_cluster(function, grid, out_cluster) : result;
}

/* A preferred cluster is made of whole clusters, and the grid of it. */
static CUresult check_preferred(const CUlaunchAttribute *attributes, unsigned n_attributes,
                                const struct api_launch *launch, bool clustered)
{
    for (unsigned i = 0; i < n_attributes; i++) {
        if (attributes[i].id != CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
            continue;
        const uint32_t *preferred = &attributes[i].value.preferredClusterDim.x;
        for (int k = 0; k < 3; k++)
            if (!clustered || preferred[k] == 0 || preferred[k] % launch->cluster[k] != 0 ||
                launch->grid[k] % preferred[k] != 0)
                return api_set_error(
                    CUDA_ERROR_INVALID_CLUSTER_SIZE,
                    "preferred cluster dimension %c is %u: wanted a multiple of the cluster's, and the "
                    "grid's a multiple of it",
                    'x' + k, preferred[k]);
    }
    return CUDA_SUCCESS;
}

CUresult api_launch_check(struct api_device *device, struct api_launch *launch,
                          const CUlaunchAttribute *attributes, unsigned n_attributes)
{
    const struct api_function *function = launch->function;
    const struct emu_model *model = launch->green != NULL ? &launch->green->model : device->model;
    const uint32_t *attribute = NULL, *grid = launch->grid;
    bool clustered;
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > MAX_GRID_X || grid[1] > MAX_GRID_YZ ||
        grid[2] > MAX_GRID_YZ)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "grid %u x %u x %u: wanted 1 to 2147483647 x 65535 x 65535", grid[0], grid[1],
                             grid[2]);
    const struct ptx_directives *directives = &function->info.function->directives;
    if (directives->has_reqntid &&
        product(launch->block) == 1) /* stands for the required block, on the H200 */
        for (int i = 0; i < 3; i++)
            launch->block[i] = directives->reqntid[i] != 0 ? directives->reqntid[i] : 1;
    CUresult result = check_block(function, launch->block);
    if (n_attributes > 0 && attributes == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u attributes, but no list", n_attributes);
    for (unsigned i = 0; i < n_attributes && result == CUDA_SUCCESS; i++)
        result = apply(&attributes[i], launch, &attribute);
    if (result != CUDA_SUCCESS)
        return result;
    result = agree(function, attribute, launch->cluster, &clustered);
    if (result == CUDA_SUCCESS && clustered)
        result = check_cluster(function, grid, launch->cluster);
    if (result == CUDA_SUCCESS)
        result = check_preferred(attributes, n_attributes, launch, clustered);
    if (result != CUDA_SUCCESS)
        return result;
    uint32_t limit = api_dynamic_shared_limit(&function->settings, &function->info);
    if (launch->dynamic_shared_bytes > limit)
        return api_set_error(launch->cooperative && !clustered &&
                                     launch->dynamic_shared_bytes <= model->shared_per_sm_bytes
                                 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                 : CUDA_ERROR_INVALID_VALUE,
                             "%u bytes of dynamic shared memory: the function allows %u "
                             "(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it)",
                             launch->dynamic_shared_bytes, limit);
    launch->explicit_cluster = clustered;
    uint64_t size = product(launch->cluster), threads = product(launch->block), ctas = product(grid);
    if (size > model->max_cluster)
        return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE, "a cluster of %llu is above the device's %u",
                             (unsigned long long)size, model->max_cluster);
    uint32_t per_sm =
        emu_occupancy_ctas(model, function->kernel, (uint32_t)threads, launch->dynamic_shared_bytes);
    if (per_sm == 0)
        return api_set_error(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                             "no SM can hold a CTA of %llu threads with %u "
                             "registers each",
                             (unsigned long long)threads, function->info.registers_modelled);
    uint64_t resident = (uint64_t)per_sm * model->sms;
    if (clustered) {
        resident = size * emu_occupancy_clusters(model, function->kernel, (uint32_t)threads,
                                                 launch->dynamic_shared_bytes, (uint32_t)size);
        if (resident == 0)
            return api_set_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                                 "no group of SMs can hold a cluster of %llu", (unsigned long long)size);
    }
    if (launch->cooperative && ctas > resident)
        return api_set_error(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                             "a cooperative grid of %llu CTAs: %llu can be "
                             "resident",
                             (unsigned long long)ctas, (unsigned long long)resident);
    return CUDA_SUCCESS;
}
