/* "Stream Ordered Memory Allocator": memory pools of several processes (cuMemPoolExportToShareableHandle,
   cuMemPoolImportFromShareableHandle, cuMemPoolExportPointer, cuMemPoolImportPointer). A pool's descriptor is
   a small file that holds the number by which all processes know the pool. An exported pointer names the
   exporting process and its descriptor of the allocation's pages; who imports it goes through /proc, as
   api_share.c does.    An imported pool gives no memory, has no attributes, and stays while memory that was
   imported through it does. UNVERIFIED: that it can be destroyed afterwards. */
#include "emu/api.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "clabpol";

struct pool_file {
    char magic[8];
    uint64_t id;
};
struct pointer_data {
    char magic[8];
    uint64_t pool, file; /* the pool's number; inode number of the pages */
    int32_t pid, fd;
    uint64_t bytes, offset; /* of the allocation; of the pointer in it */
};
_Static_assert(sizeof(struct pointer_data) <= sizeof(CUmemPoolPtrExportData), "fits the API's struct");

CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                                  CUmemAllocationHandleType handleType,
                                                  unsigned long long flags)
{
    static uint64_t next = 1;
    API_ENTER();
    API_REQUIRE(handle_out != NULL && flags == 0);
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool");
    if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !found->shareable)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the pool was not made for handles of type %d",
                        (int)handleType);
    if (found->id == 0)
        found->id = (uint64_t)getpid() << 32 | next++;
    struct pool_file content = {.id = found->id};
    memcpy(content.magic, magic, sizeof magic);
    const int fd = memfd_create("clusterlab pool", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, &content, sizeof content, 0) != (ssize_t)sizeof content) {
        if (fd >= 0)
            close(fd);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot share the pool");
    }
    memcpy(handle_out, &fd, sizeof fd);
    return api_leave();
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                    CUmemAllocationHandleType handleType,
                                                    unsigned long long flags)
{
    API_ENTER();
    API_REQUIRE(pool_out != NULL && flags == 0);
    API_REQUIRE(handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    struct pool_file content;
    const int fd = (int)(intptr_t)handle;
    if (pread(fd, &content, sizeof content, 0) != (ssize_t)sizeof content ||
        memcmp(content.magic, magic, sizeof magic) != 0)
        return api_fail(CUDA_ERROR_UNKNOWN, "descriptor %d is not that of an emulated pool", fd);
    size_t cursor = 0;
    struct api_pool *pool;
    while ((pool = emu_handle_next(EMU_HANDLE_POOL, &cursor)) != NULL)
        if (pool->imported && pool->id == content.id) { /* the same handle again */
            *pool_out = pool->handle;
            return api_leave();
        }
    pool = api_pool_new();
    if (pool == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a pool");
    pool->imported = true;
    pool->id = content.id;
    *pool_out = pool->handle;
    return api_leave();
}

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    API_ENTER();
    API_REQUIRE(shareData_out != NULL);
    const struct api_allocation *allocation = api_allocation_find(ptr);
    if (allocation == NULL || allocation->pool == NULL || !allocation->pool->shareable ||
        allocation->pool->id == 0 || ptr != allocation->base)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not the start of memory of an exported pool",
                        (unsigned long long)ptr);
    const int fd = emu_memory_share(api_device()->machine, allocation->base);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot share the memory");
    struct pointer_data data = {.pool = allocation->pool->id,
                                .file = about.st_ino,
                                .pid = (int32_t)getpid(),
                                .fd = fd,
                                .bytes = allocation->bytes,
                                .offset = ptr - allocation->base};
    memcpy(data.magic, magic, sizeof magic);
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &data, sizeof data);
    return api_leave();
}

/* Imported again, it is at the same address. */
static struct api_allocation *imported_before(const struct api_pool *pool, uint64_t file)
{
    struct api_allocation *found = api_allocation_next(0);
    while (found != NULL && !(found->kind == API_MEMORY_IPC && found->file == file && found->pool == pool))
        found = api_allocation_next(found->base + 1);
    return found;
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                        CUmemPoolPtrExportData *shareData)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(ptr_out != NULL && shareData != NULL);
    *ptr_out = 0; /* also when it fails, as on the H200 */
    struct pointer_data data;
    struct stat about;
    memcpy(&data, shareData, sizeof data);
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL || !found->imported)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool that was imported");
    if (memcmp(data.magic, magic, sizeof magic) != 0 || data.pool != found->id || data.bytes == 0 ||
        data.offset >= data.bytes)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a pointer exported from the pool's memory");
    struct api_allocation *allocation = imported_before(found, data.file);
    if (allocation == NULL) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)data.pid, (int)data.fd);
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        uint64_t base = 0;
        if (fd >= 0 && fstat(fd, &about) == 0 && about.st_ino == data.file)
            base = emu_memory_attach(api_device()->machine, fd, data.bytes);
        if (fd >= 0)
            close(fd);
        if (base == 0)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "process %d does not share this memory (any more)",
                            (int)data.pid);
        allocation = api_allocation_enter(context, base, data.bytes, API_MEMORY_IPC);
        if (allocation == NULL) {
            emu_memory_free(api_device()->machine, base);
            return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the table of allocations");
        }
        allocation->file = data.file;
        allocation->pool = found;
        found->used_bytes += data.bytes;
    }
    *ptr_out = allocation->base + data.offset;
    return api_leave();
}
