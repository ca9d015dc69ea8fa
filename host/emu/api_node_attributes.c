/* "Graph Management": attributes of kernel nodes: those of cuLaunchKernelEx that a node keeps, checked as a
   launch's. Which these are, and what fresh nodes answer: an H200 (tests/api/data/h200_graphs.txt). */
#include "emu/api_context.h"
#include "emu/api_graph.h"

#include <string.h>

static CUresult enter(const char *call, CUgraphNode handle, struct api_node **out_node)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_node = emu_handle_get(EMU_HANDLE_NODE, handle);
    API_REQUIRE(*out_node != NULL && (*out_node)->type == CU_GRAPH_NODE_TYPE_KERNEL);
    return CUDA_SUCCESS;
}

/* The launch with these attributes on top of its own. */
static CUresult change(struct api_launch *changed, const CUlaunchAttribute *attributes, unsigned count)
{
    struct api_launch launch = *changed;
    CUlaunchAttribute all[8];
    unsigned n = 0;
    bool has_cluster = false;
    for (; n < count; n++) {
        all[n] = attributes[n];
        has_cluster = has_cluster || all[n].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    }
    if (!has_cluster && launch.explicit_cluster) {
        all[n].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        memcpy(&all[n].value.clusterDim, launch.cluster, sizeof launch.cluster);
        n++;
    }
    CUresult result = api_launch_check(api_device(), &launch, all, n);
    if (result == CUDA_SUCCESS)
        *changed = launch;
    return result;
}

CUresult api_attributes_keep(const struct api_launch *old, struct api_launch *fresh)
{
    CUlaunchAttribute attributes[3] = {
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = old->cooperative},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = old->priority},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION},
    };
    /* A kernel whose own directives say its clusters needs no attribute for them. */
    const struct ptx_directives *directives = &fresh->function->info.function->directives;
    const bool cluster = old->explicit_cluster && !directives->has_reqnctapercluster;
    memcpy(&attributes[2].value.clusterDim, old->cluster, sizeof old->cluster);
    CUresult result = change(fresh, attributes, cluster ? 3 : 2);
    if (result == CUDA_SUCCESS)
        fresh->hints = old->hints;
    return result;
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                               const CUkernelNodeAttrValue *value)
{
    struct api_node *node;
    CUresult result = enter(__func__, hNode, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(value != NULL);
    CUlaunchAttribute attribute = {.id = attr, .value = *value};
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: /* clamped */
        if (attribute.value.priority > API_PRIORITY_LEAST)
            attribute.value.priority = API_PRIORITY_LEAST;
        if (attribute.value.priority < API_PRIORITY_GREATEST)
            attribute.value.priority = API_PRIORITY_GREATEST;
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        if (value->deviceUpdatableKernelNode.deviceUpdatable == 0)
            return api_leave();
        break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d is none of a kernel node", (int)attr);
    }
    return api_result(change(&node->work.launch, &attribute, 1));
}

/* Only the attribute's own bytes of `value` are written. */
CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                               CUkernelNodeAttrValue *value)
{
    struct api_node *node;
    CUresult result = enter(__func__, hNode, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(value != NULL);
    const struct api_launch *launch = &node->work.launch;
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = launch->hints.window;
        break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        value->cooperative = launch->cooperative;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        memset(&value->clusterDim, 0, sizeof value->clusterDim);
        if (launch->explicit_cluster)
            memcpy(&value->clusterDim, launch->cluster, sizeof launch->cluster);
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        value->clusterSchedulingPolicyPreference = launch->hints.policy;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = launch->priority;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap =
            launch->hints.has_map ? launch->hints.map : (CUlaunchMemSyncDomainMap){.remote = 1};
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = launch->hints.domain;
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        value->deviceUpdatableKernelNode.deviceUpdatable = 0;
        value->deviceUpdatableKernelNode.devNode = NULL;
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        value->sharedMemCarveout = launch->hints.carveout;
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d is none of a kernel node", (int)attr);
    }
    return api_leave();
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    struct api_node *to;
    CUresult result = enter(__func__, dst, &to);
    if (result != CUDA_SUCCESS)
        return result;
    const struct api_node *from = emu_handle_get(EMU_HANDLE_NODE, src);
    API_REQUIRE(from != NULL && from->type == CU_GRAPH_NODE_TYPE_KERNEL);
    return api_result(api_attributes_keep(&from->work.launch, &to->work.launch));
}
