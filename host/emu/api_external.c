/* "External Resource Interoperability" and "Graphics Interoperability". External memory is what cuMemCreate
   made and cuMemExportToShareableHandle exported, as an H200's driver takes it too; no other library makes
   memory for an emulated device. There are no external semaphores and no graphics resources: handles of them
   are refused as an H200's driver refuses wrong ones (tests/api/data/h200_resources.txt). Leaves out:
   mipmapped arrays over external memory. */
#include "emu/api_graph.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- memory ---- */

struct external {
    int fd;
    uint64_t bytes; /* what the program said */
};

static bool all_zero(const unsigned *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] != 0)
            return false;
    return true;
}

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *extMem_out,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(extMem_out != NULL && memHandleDesc != NULL);
    API_REQUIRE(memHandleDesc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD && memHandleDesc->size > 0);
    API_REQUIRE((memHandleDesc->flags & ~(unsigned)CUDA_EXTERNAL_MEMORY_DEDICATED) == 0 &&
                all_zero(memHandleDesc->reserved, API_COUNT_OF(memHandleDesc->reserved)));
    struct emu_physical *physical = emu_physical_import(api_device()->machine, memHandleDesc->handle.fd);
    if (physical == NULL)
        return api_fail(CUDA_ERROR_UNKNOWN, "descriptor %d is not that of memory for an emulated device",
                        memHandleDesc->handle.fd);
    emu_physical_release(api_device()->machine, physical); /* it was only to see what it is */
    struct external *made = calloc(1, sizeof *made);
    CUexternalMemory handle = made != NULL ? emu_handle_new(EMU_HANDLE_EXTERNAL, made) : NULL;
    if (handle == NULL) {
        free(made);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for external memory's record");
    }
    *made = (struct external){.fd = memHandleDesc->handle.fd,
                              .bytes = memHandleDesc->size}; /* ours from now on */
    *extMem_out = handle;
    return api_leave();
}

CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    API_ENTER_CONTEXT(context);
    const struct external *external = emu_handle_get(EMU_HANDLE_EXTERNAL, extMem);
    API_REQUIRE(devPtr != NULL && bufferDesc != NULL && external != NULL);
    API_REQUIRE(bufferDesc->flags == 0 && bufferDesc->size > 0 && bufferDesc->size <= external->bytes &&
                bufferDesc->offset <= external->bytes - bufferDesc->size);
    struct emu_machine *machine = api_device()->machine;
    const uint64_t base = emu_memory_attach(machine, external->fd, bufferDesc->offset + bufferDesc->size);
    if (base == 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the memory has fewer than %llu bytes",
                        bufferDesc->offset + bufferDesc->size);
    struct api_allocation *allocation =
        api_allocation_enter(context, base + bufferDesc->offset, bufferDesc->size, API_MEMORY_IPC);
    if (allocation == NULL) {
        emu_memory_free(machine, base);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the table of allocations");
    }
    allocation->origin = base;
    *devPtr = allocation->base;
    return api_leave();
}

CUresult CUDAAPI
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(mipmap != NULL && mipmapDesc != NULL && emu_handle_get(EMU_HANDLE_EXTERNAL, extMem) != NULL);
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "arrays over external memory are not emulated");
}

/* Buffers that were mapped stay. */
CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory extMem)
{
    API_ENTER();
    struct external *external = emu_handle_get(EMU_HANDLE_EXTERNAL, extMem);
    API_REQUIRE(external != NULL);
    emu_handle_free(extMem);
    close(external->fd);
    free(external);
    return api_leave();
}

/* ---- semaphores ---- */

CUresult CUDAAPI cuImportExternalSemaphore(CUexternalSemaphore *extSem_out,
                                           const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(extSem_out != NULL && semHandleDesc != NULL);
    API_REQUIRE(semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD);
    return api_fail(CUDA_ERROR_UNKNOWN, "descriptor %d is not that of a semaphore for an emulated device",
                    semHandleDesc->handle.fd);
}

static CUresult no_semaphore(const char *call)
{
    CUresult result = api_enter(call);
    return result != CUDA_SUCCESS
               ? result
               : api_fail(CUDA_ERROR_INVALID_VALUE, "no external semaphore can have been made");
}

CUresult CUDAAPI cuDestroyExternalSemaphore(CUexternalSemaphore extSem)
{
    (void)extSem;
    return no_semaphore(__func__);
}

CUresult CUDAAPI cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                                 const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
                                                 unsigned int numExtSems, CUstream stream)
{
    (void)extSemArray, (void)paramsArray, (void)numExtSems, (void)stream;
    return no_semaphore(__func__);
}

CUresult CUDAAPI cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                               const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
                                               unsigned int numExtSems, CUstream stream)
{
    (void)extSemArray, (void)paramsArray, (void)numExtSems, (void)stream;
    return no_semaphore(__func__);
}

CUresult api_external_work(unsigned count)
{
    return count == 0 ? CUDA_SUCCESS
                      : api_set_error(CUDA_ERROR_INVALID_VALUE, "no external semaphore can have been made");
}

/* Nodes of no semaphores can be made, on the H200 too. */
static CUresult add_node(const char *call, CUgraphNode *out_handle, CUgraph hGraph,
                         const CUgraphNode *dependencies, size_t count, CUgraphNodeType type, bool given,
                         unsigned n_semaphores)
{
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(given);
    result = api_external_work(n_semaphores);
    return result != CUDA_SUCCESS
               ? api_result(result)
               : api_node_add_call(out_handle, hGraph, dependencies, NULL, count, type, &work, NULL);
}

CUresult CUDAAPI cuGraphAddExternalSemaphoresSignalNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                                        const CUgraphNode *dependencies,
                                                        size_t numDependencies,
                                                        const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    return add_node(__func__, phGraphNode, hGraph, dependencies, numDependencies,
                    CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, nodeParams != NULL,
                    nodeParams != NULL ? nodeParams->numExtSems : 0);
}

CUresult CUDAAPI cuGraphAddExternalSemaphoresWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                                      const CUgraphNode *dependencies, size_t numDependencies,
                                                      const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    return add_node(__func__, phGraphNode, hGraph, dependencies, numDependencies,
                    CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, nodeParams != NULL,
                    nodeParams != NULL ? nodeParams->numExtSems : 0);
}

/* Enters with a node of that type: its parameters are always those of no semaphores. */
static CUresult enter_node(const char *call, CUgraphNode handle, CUgraphNodeType type, const void *params)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    const struct api_node *node = emu_handle_get(EMU_HANDLE_NODE, handle);
    API_REQUIRE(node != NULL && node->type == type && params != NULL);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode hNode,
                                                              CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params_out)
{
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, params_out);
    if (result != CUDA_SUCCESS)
        return result;
    *params_out = (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS){0};
    return api_leave();
}

CUresult CUDAAPI cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode hNode,
                                                            CUDA_EXT_SEM_WAIT_NODE_PARAMS *params_out)
{
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, params_out);
    if (result != CUDA_SUCCESS)
        return result;
    *params_out = (CUDA_EXT_SEM_WAIT_NODE_PARAMS){0};
    return api_leave();
}

static CUresult set_node(const char *call, CUgraphNode handle, CUgraphNodeType type, const void *params,
                         unsigned n_semaphores)
{
    CUresult result = enter_node(call, handle, type, params);
    return result != CUDA_SUCCESS ? result : api_result(api_external_work(n_semaphores));
}

CUresult CUDAAPI cuGraphExternalSemaphoresSignalNodeSetParams(
    CUgraphNode hNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    return set_node(__func__, hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, nodeParams,
                    nodeParams != NULL ? nodeParams->numExtSems : 0);
}

CUresult CUDAAPI cuGraphExternalSemaphoresWaitNodeSetParams(CUgraphNode hNode,
                                                            const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    return set_node(__func__, hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, nodeParams,
                    nodeParams != NULL ? nodeParams->numExtSems : 0);
}

static CUresult set_step(const char *call, CUgraphExec handle, CUgraphNode hNode, CUgraphNodeType type,
                         const void *params, unsigned n_semaphores)
{
    CUresult result = enter_node(call, hNode, type, params);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(emu_handle_get(EMU_HANDLE_EXEC, handle) != NULL);
    return api_result(api_external_work(n_semaphores));
}

CUresult CUDAAPI cuGraphExecExternalSemaphoresSignalNodeSetParams(
    CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    return set_step(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, nodeParams,
                    nodeParams != NULL ? nodeParams->numExtSems : 0);
}

CUresult CUDAAPI cuGraphExecExternalSemaphoresWaitNodeSetParams(
    CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    return set_step(__func__, hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, nodeParams,
                    nodeParams != NULL ? nodeParams->numExtSems : 0);
}

/* ---- graphics ---- */

static CUresult no_resource(const char *call)
{
    CUresult result = api_enter(call);
    return result != CUDA_SUCCESS
               ? result
               : api_fail(CUDA_ERROR_INVALID_HANDLE, "no graphics resource can have been made");
}

CUresult CUDAAPI cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
    (void)resource;
    return no_resource(__func__);
}

CUresult CUDAAPI cuGraphicsSubResourceGetMappedArray(CUarray *pArray, CUgraphicsResource resource,
                                                     unsigned int arrayIndex, unsigned int mipLevel)
{
    (void)pArray, (void)resource, (void)arrayIndex, (void)mipLevel;
    return no_resource(__func__);
}

CUresult CUDAAPI cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray *pMipmappedArray,
                                                           CUgraphicsResource resource)
{
    (void)pMipmappedArray, (void)resource;
    return no_resource(__func__);
}

CUresult CUDAAPI cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *pDevPtr, size_t *pSize,
                                                       CUgraphicsResource resource)
{
    (void)pDevPtr, (void)pSize, (void)resource;
    return no_resource(__func__);
}

CUresult CUDAAPI cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource resource, unsigned int flags)
{
    (void)resource, (void)flags;
    return no_resource(__func__);
}

CUresult CUDAAPI cuGraphicsResourceSetMapFlags(CUgraphicsResource resource, unsigned int flags)
{
    return cuGraphicsResourceSetMapFlags_v2(resource, flags);
}

static CUresult map(const char *call, unsigned count, const CUgraphicsResource *resources)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count > 0 && resources != NULL);
    return api_fail(CUDA_ERROR_INVALID_HANDLE, "no graphics resource can have been made");
}

CUresult CUDAAPI cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    (void)hStream;
    return map(__func__, count, resources);
}

CUresult CUDAAPI cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    (void)hStream;
    return map(__func__, count, resources);
}
