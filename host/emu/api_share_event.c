/* "Device Management / IPC": events of several processes (CU_EVENT_INTERPROCESS, cuIpcGetEventHandle and
   cuIpcOpenEventHandle). Such an event is a page of memory that all of them map: how often it was recorded,
   and up to which of these records its streams have got. The handle names the exporting process and its
   descriptor of the page; who opens it goes through /proc, as api_share.c does for memory. */
#include "emu/api.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char magic[8] = "clabevt";

struct api_shared_event {
    char magic[8];
    uint64_t recorded; /* calls that recorded it, in all processes */
    uint64_t done;     /* the greatest of these numbers that a stream has got to */
};

struct event_handle {
    char magic[8];
    int32_t pid, fd;
    uint64_t file; /* inode number: a descriptor that now names something else is recognised */
};
_Static_assert(sizeof(struct event_handle) <= CU_IPC_HANDLE_SIZE, "fits the API's handle");

static struct api_shared_event *page_map(int fd)
{
    void *page = mmap(NULL, sizeof(struct api_shared_event), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return page != MAP_FAILED ? page : NULL;
}

bool api_shared_event_new(struct api_event *event)
{
    event->shared_fd = memfd_create("clusterlab event", MFD_CLOEXEC);
    if (event->shared_fd < 0)
        return false;
    if (ftruncate(event->shared_fd, sizeof(struct api_shared_event)) == 0)
        event->shared = page_map(event->shared_fd);
    if (event->shared == NULL) {
        close(event->shared_fd);
        return false;
    }
    memcpy(event->shared->magic, magic, sizeof magic);
    return true;
}

void api_shared_event_free(struct api_event *event)
{
    munmap(event->shared, sizeof *event->shared);
    close(event->shared_fd);
    event->shared = NULL;
}

uint64_t api_shared_event_record(struct api_event *event)
{
    return __atomic_add_fetch(&event->shared->recorded, 1, __ATOMIC_SEQ_CST);
}

void api_shared_event_done(struct api_event *event, uint64_t number)
{
    uint64_t done = __atomic_load_n(&event->shared->done, __ATOMIC_SEQ_CST);
    while (done < number && !__atomic_compare_exchange_n(&event->shared->done, &done, number, false,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
}

uint64_t api_shared_event_last(const struct api_event *event)
{
    return __atomic_load_n(&event->shared->recorded, __ATOMIC_SEQ_CST);
}

bool api_shared_event_reached(const struct api_event *event, uint64_t number)
{
    return __atomic_load_n(&event->shared->done, __ATOMIC_SEQ_CST) >= number;
}

void api_shared_event_wait(const struct api_event *event, uint64_t number, const volatile bool *cancel)
{
    while (!api_shared_event_reached(event, number) && (cancel == NULL || !*cancel))
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* ---- calls ---- */

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    struct stat about;
    API_REQUIRE(pHandle != NULL && event != NULL);
    const struct api_event *found = emu_handle_get(EMU_HANDLE_EVENT, event);
    if (found == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a live event");
    if (found->shared == NULL || found->imported)
        return api_fail(CUDA_ERROR_INVALID_HANDLE,
                        "the event was not created with CU_EVENT_INTERPROCESS in this process");
    if (fstat(found->shared_fd, &about) != 0)
        return api_fail(CUDA_ERROR_MAP_FAILED, "the event's page is gone");
    struct event_handle handle = {.pid = (int32_t)getpid(), .fd = found->shared_fd, .file = about.st_ino};
    memcpy(handle.magic, magic, sizeof magic);
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &handle, sizeof handle);
    return api_leave();
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    API_ENTER_CONTEXT(context);
    struct event_handle from;
    struct stat about;
    API_REQUIRE(phEvent != NULL);
    memcpy(&from, &handle, sizeof from);
    if (memcmp(from.magic, magic, sizeof magic) != 0)
        return api_fail(CUDA_ERROR_MAP_FAILED, "not a handle of an emulated process's event");
    if (from.pid == (int32_t)getpid())
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "the event is this process's own");
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)from.pid, (int)from.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    struct api_shared_event *page = NULL;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_ino == from.file &&
        about.st_size == (off_t)sizeof(struct api_shared_event))
        page = page_map(fd);
    if (page != NULL && memcmp(page->magic, magic, sizeof magic) != 0) {
        munmap(page, sizeof *page);
        page = NULL;
    }
    if (page == NULL) {
        if (fd >= 0)
            close(fd);
        return api_fail(CUDA_ERROR_MAP_FAILED, "process %d does not share this event (any more)",
                        (int)from.pid);
    }
    struct api_event *event = api_event_new(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    if (event == NULL) {
        munmap(page, sizeof *page);
        close(fd);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an event");
    }
    event->shared = page;
    event->shared_fd = fd;
    event->imported = true;
    *phEvent = event->handle;
    return api_leave();
}
