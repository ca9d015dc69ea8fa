/* "Device Management / IPC": memory of cuMemAlloc in another process (cuIpcGetMemHandle and its kind). The
   handle names the exporting process and one of its descriptors; who opens it goes through /proc, so both
   processes must belong to one user and see each other, and the exporter must be alive, as on a GPU. The
   exported allocation's pages become those of a file when it is exported first, once its context is idle.

   Events of other processes: api_share_event.c; memory pools: api_share_pool.c. */
#include "emu/api.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct memory_handle {
    char magic[8];
    int32_t pid, fd;
    uint64_t file; /* inode number: a descriptor that now names something else is recognised */
    uint64_t bytes;
};
_Static_assert(sizeof(struct memory_handle) <= CU_IPC_HANDLE_SIZE, "fits the API's handle");
static const char magic[8] = "clabipc";

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pHandle != NULL);
    const struct api_allocation *allocation = api_allocation_find(dptr);
    if (allocation == NULL || allocation->kind != API_MEMORY_DEVICE || allocation->pool != NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not memory of cuMemAlloc",
                        (unsigned long long)dptr);
    const uint64_t base = allocation->base;
    CUresult result = api_context_wait(context);
    allocation = api_allocation_find(base);
    if (result != CUDA_SUCCESS || allocation == NULL)
        return api_result(result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE);
    const int fd = emu_memory_share(api_device()->machine, base);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot share the memory");
    struct memory_handle handle = {
        .pid = (int32_t)getpid(), .fd = fd, .file = about.st_ino, .bytes = allocation->bytes};
    memcpy(handle.magic, magic, sizeof magic);
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &handle, sizeof handle);
    return api_leave();
}

static struct api_allocation *opened_before(uint64_t file)
{
    struct api_allocation *found = api_allocation_next(0);
    while (found != NULL && !(found->kind == API_MEMORY_IPC && found->file == file && found->pool == NULL &&
                              found->origin == 0))
        found = api_allocation_next(found->base + 1);
    return found;
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pdptr != NULL && Flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    struct memory_handle from;
    struct stat about;
    memcpy(&from, &handle, sizeof from);
    if (memcmp(from.magic, magic, sizeof magic) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a handle of an emulated process");
    if (from.pid == (int32_t)getpid())
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "the memory is this process's own");
    struct api_allocation *allocation = opened_before(from.file);
    if (allocation == NULL) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)from.pid, (int)from.fd);
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        uint64_t base = 0;
        if (fd >= 0 && fstat(fd, &about) == 0 && about.st_ino == from.file)
            base = emu_memory_attach(api_device()->machine, fd, from.bytes);
        if (fd >= 0)
            close(fd);
        if (base == 0)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "process %d does not share this memory (any more)",
                            (int)from.pid);
        allocation = api_allocation_enter(context, base, from.bytes, API_MEMORY_IPC);
        if (allocation == NULL) {
            emu_memory_free(api_device()->machine, base);
            return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the table of allocations");
        }
        allocation->file = from.file;
    }
    allocation->opened++;
    *pdptr = allocation->base;
    return api_leave();
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    API_ENTER_CONTEXT(context);
    struct api_allocation *allocation = api_allocation_find(dptr);
    if (allocation == NULL || allocation->kind != API_MEMORY_IPC || allocation->pool != NULL ||
        allocation->origin != 0 || allocation->base != dptr)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx was not opened from a handle",
                        (unsigned long long)dptr);
    if (allocation->opened > 1) {
        allocation->opened--;
        return api_leave();
    }
    CUresult result = api_context_wait(context);
    allocation = api_allocation_find(dptr);
    if (allocation != NULL && allocation->kind == API_MEMORY_IPC)
        api_allocation_free(allocation);
    return api_result(result);
}
