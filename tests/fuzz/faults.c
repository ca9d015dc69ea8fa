/* The C library's calls, failing and late as faults.h says. Decided by a hash of the seed and the number of
   the call, so that one thread's run repeats. */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>

static struct fuzz_faults now;
static _Atomic uint64_t calls, locks;
static _Atomic bool failed;

void fuzz_faults_set(struct fuzz_faults faults)
{
    now = faults;
    atomic_store(&calls, 0);
    atomic_store(&locks, 0);
    atomic_store(&failed, false);
}

uint64_t fuzz_faults_count(void)
{
    return atomic_load(&calls);
}

static uint64_t hash(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x7fb5d329728ea185);
    value = (value ^ value >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return value ^ value >> 33;
}

static bool fails(void)
{
    const uint64_t call = atomic_fetch_add(&calls, 1) + 1;
    bool fail = now.lasting && atomic_load(&failed);
    if (now.only != 0)
        fail |= call == now.only;
    else if (now.one_in != 0)
        fail |= hash(now.seed * 1000003 + call) % now.one_in == 0;
    if (fail)
        atomic_store(&failed, true);
    return fail;
}

static void be_late(void)
{
    if (!now.late)
        return;
    const uint64_t dice = hash(now.seed + (atomic_fetch_add(&locks, 1) << 20));
    if (dice % 16 == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(dice >> 32 & 0x3ffff)}, NULL); /* up to 0.26 ms */
}

/* The hazard checker leaves what it holds when memory is out (host/check/memory.c). */
const char *__lsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__lsan_default_suppressions(void)
{
    return "leak:check_alloc\nleak:check_grow\n";
}

/* The names are the linker's. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-declarations"
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
void *__real_mmap(void *, size_t, int, int, int, off_t);
int __real_mprotect(void *, size_t, int);
int __real_madvise(void *, size_t, int);
int __real_memfd_create(const char *, unsigned);
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __real_pthread_mutex_lock(pthread_mutex_t *);
int __real_pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, bytes, protection, flags, file, offset);
}

int __wrap_mprotect(void *address, size_t bytes, int protection)
{
    if (fails()) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(address, bytes, protection);
}

int __wrap_madvise(void *address, size_t bytes, int advice)
{
    if (fails()) {
        errno = EAGAIN;
        return -1;
    }
    return __real_madvise(address, bytes, advice);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (fails()) {
        errno = EMFILE;
        return -1;
    }
    return __real_memfd_create(name, flags);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                          void *argument)
{
    return fails() ? EAGAIN : __real_pthread_create(thread, attributes, start, argument);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    be_late();
    return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    const int result = __real_pthread_cond_wait(condition, mutex);
    if (now.late) {
        pthread_mutex_unlock(mutex); /* loses it to another */
        be_late();
        __real_pthread_mutex_lock(mutex);
    }
    return result;
}
