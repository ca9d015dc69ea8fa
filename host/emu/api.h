/* The driver surface's own state and helpers, shared by the api_*.c files (one per chapter of the CUDA Driver
   API manual 13.0). Everything below is guarded by one lock, taken by api_enter and given back by api_leave
   or api_fail; it is never held while a kernel, a copy or a callback of the program runs, nor while anything
   waits. */
#ifndef CLAB_EMU_API_H
#define CLAB_EMU_API_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The definitions in api_*.c are the library's exports, whatever -fvisibility says. */
#pragma GCC visibility push(default)
#include "driver/cuda_names.h"
#pragma GCC visibility pop

#include "base/error.h"
#include "emu/core.h"
#include "emu/api_handle.h"
#include "emu/log.h"

#define API_DRIVER_VERSION  13000
#define API_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- process and device (api_init.c) ---- */

struct api_device {
    const struct emu_model *model;
    struct emu_machine *machine;
    CUuuid uuid;
    struct api_context *primary; /* NULL until first retained; then kept, active or not */
    unsigned primary_flags;
    CUresult poison; /* left by a kernel: this process gets no new context, as on an H200 */
    struct api_pool *default_pool, *current_pool; /* made on first use */
};
/* The one emulated device; NULL before cuInit. */
struct api_device *api_device(void);

/* ---- threads and the lock (api_state.c) ---- */

#define API_STACK_MAX 1024 /* contexts that one thread can push */

struct api_thread {
    CUcontext stack[API_STACK_MAX];
    unsigned depth;
    const char *call;           /* the driver call in progress */
    struct api_context *pinned; /* what that call works in; its end gives it back */
    bool in_callback; /* inside a host function: most driver calls are not permitted (api_checks.def) */
    bool per_thread_default; /* a _ptds or _ptsz form is in progress: stream 0 is the thread's own */
    CUstreamCaptureMode capture_mode;
    CUstream own_stream[8]; /* per-thread default streams, of the contexts below */
    CUcontext own_context[8];
    const struct check_task *task; /* in execution on this thread; NULL: none, or its order is not kept */
    bool has_error;
    struct clab_error error; /* detail of the last failure */
    unsigned untold;         /* messages of the call in progress that the callbacks have not heard */
};
/* The calling thread's state; made on first use, freed when the thread ends. Never NULL: when memory is out,
   a shared spare is used. */
struct api_thread *api_thread(void);
/* Frees the calling thread's state now. */
void api_thread_end(void);

/* Takes the lock; an error (lock not held, detail recorded) when cuInit was not called, the process is a fork
   of the one that called it, or the thread is inside a host function. */
CUresult api_enter(const char *call);
/* The same for a call that works before cuInit. */
CUresult api_enter_early(const char *call);
/* Is the process a fork of the one that called cuInit? With the lock. */
bool api_forked(void);
/* The same, and gives the current context when it is usable: else INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or
   the error that a kernel left behind. */
CUresult api_enter_context(const char *call, struct api_context **out_context);
/* Enters a call about an object: a dead or invented handle is refused with `missing` before anything else,
   before cuInit too, as an H200's driver does. NULL and *out_result when the call ends here. */
void *api_enter_object(const char *call, enum emu_handle_kind kind, const void *handle, CUresult missing,
                       CUresult *out_result);
/* After that: the call works in this context, whatever is current. Ends the call where it is gone or
 * unusable. */
CUresult api_use_context(struct api_context *context);
/* Enters a call with a stream argument: it works in the stream's context; for the default streams, in the
 * current one. */
CUresult api_enter_for(const char *call, CUstream handle, struct api_context **out_context);
/* Keeps the context's memory, and what hangs on it, until the calling thread's call ends: whoever ends the
   context waits for that. api_enter_context does it; for calls that find their context otherwise and then
   wait. */
void api_pin(struct api_context *context);
/* The same undone, for calls that give the lock to the program's own functions. */
void api_unpin(void);
/* Gives the lock back. Returns CUDA_SUCCESS. */
CUresult api_leave(void);
/* Gives the lock back. Returns `answer`, which is no failure: nothing is recorded. */
CUresult api_answer(CUresult answer);
/* Records why the call fails, gives the lock back, returns `result`. format "" when the name says all. */
CUresult api_fail(CUresult result, const char *format, ...) CLAB_PRINTF(2, 3);
/* The same with a whole record, copied; its native code is set here. */
CUresult api_fail_with(CUresult result, const struct clab_error *error);
/* Records only; the lock is not touched. For helpers that return a CUresult to a caller who ends with
 * api_result. */
CUresult api_set_error(CUresult result, const char *format, ...) CLAB_PRINTF(2, 3);
CUresult api_copy_error(CUresult result, const struct clab_error *error);
/* Ends a call whose helper has recorded the error, if any. */
CUresult api_result(CUresult result);
/* For waiting: until something completes somewhere, or the deadline (monotonic ns; 0 none). The lock is held
   again on return. */
void api_wait_for_change(void);
void api_signal_change(void);
/* The same for one waiter, who is woken by pthread_cond_signal(wake) only. */
void api_wait_for_wake(pthread_cond_t *wake);
void api_lock(void);
void api_unlock(void);

#define API_ENTER()                              \
    do {                                         \
        CUresult entered_ = api_enter(__func__); \
        if (entered_ != CUDA_SUCCESS)            \
            return entered_;                     \
    } while (0)
#define API_ENTER_CONTEXT(context)                                   \
    struct api_context *context;                                     \
    do {                                                             \
        CUresult entered_ = api_enter_context(__func__, &(context)); \
        if (entered_ != CUDA_SUCCESS)                                \
            return entered_;                                         \
    } while (0)
/* The most frequent refusal. */
#define API_REQUIRE(condition)                                                         \
    do {                                                                               \
        if (!(condition))                                                              \
            return api_fail(CUDA_ERROR_INVALID_VALUE, "%s does not hold", #condition); \
    } while (0)

/* The log that programs can read (api_logs.c): adds a message of the call in progress; gives the lock back
   and lets the program's callbacks hear of what the call has added. */
void api_log_add(const char *text);
void api_log_tell_and_unlock(void);

const char *api_error_name(CUresult result);   /* NULL for an unknown code (api_error.c) */
const char *api_error_string(CUresult result); /* likewise */

/* ---- contexts (api_context.c) ---- */

#define API_LIMIT_COUNT 9

/* A green context: the primary context with a part of the SMs (api_green.c). */
struct api_green {
    CUgreenCtx handle; /* the same as a CUcontext; NULL: destroyed */
    struct api_context *primary;
    struct api_stream *legacy; /* its default stream */
    struct emu_model model;    /* the device, with these SMs only */
    unsigned long long id;
    unsigned refs; /* handle, streams, launches */
};
void api_green_release(struct api_green *green);
/* The green context that is current to this thread, or NULL. */
struct api_green *api_green_current(void);
/* That of a CUcontext handle; NULL when it is none of a green one. */
struct api_green *api_green_of(CUcontext handle);
/* Those of a context that goes. */
void api_greens_end(struct api_context *context);
/* What kernels may use of the device: through a stream, or with what is current. */
const struct emu_model *api_model_of(const struct api_green *green);

struct api_context {
    CUcontext handle;
    bool primary;
    bool active;       /* a released primary context is not */
    unsigned retained; /* primary: number of retains */
    unsigned flags;
    unsigned long long id;
    CUfunc_cache cache;
    size_t limits[API_LIMIT_COUNT];
    CUresult sticky; /* what a failed kernel left behind: every later call returns it */
    struct clab_error fault;
    volatile bool cancel; /* the context goes away: running launches end */
    struct api_stream *legacy;
    struct api_stream *streams; /* all live ones, the legacy stream too */
    struct api_module *modules;
    unsigned workers; /* host threads of its streams */
    unsigned pins;    /* calls of other threads that work in it */
    bool ending;      /* a thread is taking it apart, and waits for those */
};
/* The context of a handle, or the current one for NULL; NULL when there is none. Not checked for sticky
 * errors. */
struct api_context *api_context_get(CUcontext handle);
/* The calling thread's current context: NULL and the reason when there is none. */
CUresult api_context_current(struct api_context **out_context);
/* Why a handle names no live context: CONTEXT_IS_DESTROYED, or INVALID_CONTEXT for what was none. */
CUresult api_context_error(CUcontext handle);
/* Frees everything that hangs on the context. Waits for the calls of other threads that work in it. */
void api_contexts_end(struct api_context *context);

/* ---- modules, functions, libraries (api_module.c, api_library.c, api_function.c) ---- */

struct api_settings {             /* what cuFuncSetAttribute and cuKernelSetAttribute set */
    int max_dynamic_shared_bytes; /* -1: the default, what 48 KiB leave */
    int carveout;                 /* -1 default */
    bool nonportable_allowed;
    int cluster[3]; /* required at run time; 0: none */
    int cluster_policy;
    CUfunc_cache cache;
};

struct api_function {
    CUfunction handle;
    struct api_module *module;
    struct emu_kernel *kernel;
    struct emu_kernel_info info;
    struct api_settings settings;
    struct api_old_launch *old; /* what the calls of api_launch_old.c have set; heap, NULL none */
    struct api_function *next;
};

struct api_module {
    CUmodule handle;
    struct api_context *context; /* NULL: the context is gone */
    struct emu_module *emu;
    struct api_library *library; /* NULL unless it belongs to one */
    struct api_function *functions;
    struct clab_map function_names; /* the same by name */
    unsigned refs;                  /* the handle's, and one per queued launch */
    struct api_module *next;
};

struct api_kernel {
    CUkernel handle;
    struct api_library *library;
    const char *name; /* of the entry; owned by the library's first module */
    struct api_settings settings;
    struct api_kernel *next;
};

struct api_library {
    CUlibrary handle;
    char *text; /* PTX, for contexts that come later */
    size_t text_bytes;
    struct emu_module *names;  /* loaded at cuLibraryLoadData; owns the entries' names */
    struct emu_module *parsed; /* the same until the first context takes it, then NULL */
    unsigned refs;             /* the handle's, and one per module */
    CUresult failed;           /* why its code could not be compiled; SUCCESS: it could */
    struct clab_error failure;
    struct api_kernel *kernels;
    unsigned n_kernels;
};

void api_module_release(struct api_module *module);
/* Takes it out of its context; its handles are dead. It lives on for queued launches. */
void api_module_drop(struct api_module *module);
void api_library_release(struct api_library *library);
/* The function object of an entry, made on first use. */
CUresult api_module_function(struct api_module *module, const char *name, struct api_function **out_function);
/* A CUfunction, or a CUkernel cast to one (then the function in `context`). */
CUresult api_function_get(struct api_context *context, CUfunction handle, struct api_function **out_function);
CUresult api_kernel_function(struct api_context *context, struct api_kernel *kernel,
                             struct api_function **out_function);
CUresult api_library_module(struct api_context *context, struct api_library *library,
                            struct api_module **out_module);
struct api_settings api_settings_default(void);
CUresult api_settings_set(struct api_settings *settings, const struct emu_kernel_info *info,
                          CUfunction_attribute attribute, int value);
CUresult api_settings_read(const struct api_settings *settings, const struct emu_kernel_info *info,
                           CUfunction_attribute attribute, int *out_value);
/* The largest dynamic shared memory that a launch may ask for now. */
uint32_t api_dynamic_shared_limit(const struct api_settings *settings, const struct emu_kernel_info *info);

/* ---- images (image.c, fatbin.c) ---- */

/* PTX text out of what a program passes as an image: PTX text, a fatbin or its wrapper, for this model.
   *out_text is heap memory with a NUL. Errors: INVALID_IMAGE, NO_BINARY_FOR_GPU (a cubin, or a fatbin without
   usable PTX). */
CUresult api_image_ptx(const void *image, size_t bytes, const struct emu_model *model, char **out_text,
                       size_t *out_bytes);
/* Loads it. Errors as cuModuleLoadData gives them, recorded; `error` keeps the detail for the log buffers. */
CUresult api_image_load(struct api_device *device, const void *image, size_t bytes, const char *name,
                        struct emu_module **out_module, char **out_text, size_t *out_text_bytes,
                        struct clab_error *error);

/* ---- memory (api_allocation.c, api_memory.c) ---- */

/* What a program advised about managed memory, of a whole allocation. */
struct api_advice {
    bool read_mostly;
    bool by_device, by_host;             /* accessed by */
    CUmemLocation preferred, prefetched; /* type INVALID: none */
};

struct api_allocation {
    uint64_t base, bytes;
    enum {
        API_MEMORY_DEVICE,
        API_MEMORY_HOST,
        API_MEMORY_REGISTERED,
        API_MEMORY_MANAGED,
        API_MEMORY_MODULE,
        API_MEMORY_VIRTUAL, /* a mapping of cuMemMap */
        API_MEMORY_IPC,     /* another process's, opened here */
        API_MEMORY_GRAPH,   /* of an allocation node; counted apart from other device memory */
        API_MEMORY_ARRAY    /* a CUDA array's; the program never sees the address */
    } kind;
    CUcontext context;             /* NULL: of no context (VIRTUAL) */
    struct api_pool *pool;         /* NULL unless it came from one */
    unsigned flags;                /* of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged */
    bool async_memops;             /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS was cleared; it has no effect */
    bool free_queued;              /* cuMemFreeAsync was called */
    const void *free_stream;       /* the stream of that call; only compared */
    unsigned frees_to_pass;        /* queued ones of earlier lives: the memory was given out again since */
    struct api_physical *physical; /* VIRTUAL: what is mapped; a reference is held */
    struct emu_physical *memory;   /* GRAPH: what is mapped */
    CUmemAccess_flags access;      /* VIRTUAL: of the device */
    struct api_advice advice;      /* MANAGED */
    unsigned opened;               /* IPC: times that cuIpcOpenMemHandle gave it */
    uint64_t origin;               /* IPC: a buffer of external memory: where its pages start; else 0 */
    uint64_t file;                 /* IPC: number of the file behind it */
    unsigned long long id;
};
struct api_pool {
    CUmemoryPool handle;
    uint64_t used_bytes, used_high_bytes, reserved_bytes, reserved_high_bytes;
    size_t queued_frees; /* allocations whose free is queued */
    uint64_t release_threshold_bytes;
    int reuse_flags[3];
    int kind; /* API_MEMORY_DEVICE, _HOST or _MANAGED */
    CUmemAccess_flags access, host_access;
    bool is_default, destroyed;
    uint64_t max_bytes;
    bool shareable; /* made with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    bool imported;  /* another process's: no memory is taken from it */
    uint64_t id;    /* of a shareable one: the same in every process; else 0 */
    struct api_pool *next;
};
/* A pool of device memory with the defaults; NULL when memory is out. */
struct api_pool *api_pool_new(void);
/* Its handle is dead already. */
void api_pool_free(struct api_pool *pool);
/* The host has synchronised with something: pools give back what they hold beyond their thresholds. */
void api_pools_settle(void);
/* Allocates and enters it in the table; NULL when out of memory. */
struct api_allocation *api_allocation_new(struct api_context *context, uint64_t bytes, int kind);
/* Host memory of the program; `read_only`: it need not be writable. */
struct api_allocation *api_allocation_register(struct api_context *context, void *host, uint64_t bytes,
                                               bool read_only);
/* Enters memory that is there already, and not counted: a mapping, another process's memory. context may be
 * NULL.
 */
struct api_allocation *api_allocation_enter(struct api_context *context, uint64_t base, uint64_t bytes,
                                            int kind);
/* The first allocation with a base at or above `address`, or NULL. */
struct api_allocation *api_allocation_next(uint64_t address);
/* Counts memory that is no allocation's own against what the host can spare. */
void api_memory_count(int64_t bytes);
/* The live allocation that holds `address`, or NULL. */
struct api_allocation *api_allocation_find(uint64_t address);
void api_allocation_free(struct api_allocation *allocation);
/* It begins a new life: a number of its own, and nothing of what was set for the last one. */
void api_allocation_renew(struct api_allocation *allocation);
/* Is it of a kind that cuMemFree and cuMemFreeAsync take? */
bool api_allocation_may_free(const struct api_allocation *allocation);
void api_allocations_free(CUcontext context);
size_t api_allocation_count(void);
/* Bytes that may still be allocated before the host's own memory gets scarce. */
uint64_t api_memory_spare(void);
/* Host pointer for [address, +bytes) of live device (or pinned, managed, module) memory, or NULL. */
void *api_memory(uint64_t address, uint64_t bytes);
/* Is it inside the range that the device's memory is reserved in (live or not)? Then it is no host memory. */
bool api_memory_reserved(uint64_t address);

/* ---- work: what streams and graphs are made of (api_work.c) ---- */

enum api_work_kind {
    API_WORK_EMPTY,
    API_WORK_KERNEL,
    API_WORK_COPY,
    API_WORK_SET,
    API_WORK_HOST,
    API_WORK_CALLBACK,
    API_WORK_RECORD,
    API_WORK_WAIT, /* graphs; in streams only for other processes' records, the rest become dependencies */
    API_WORK_FREE,
    API_WORK_ALLOC, /* graphs only */
    API_WORK_NEW,   /* memory has been allocated in stream order: for the hazard checker */
    API_WORK_BATCH, /* stream memory operations in order; graphs only */
    API_WORK_WRITE_VALUE,
    API_WORK_WAIT_VALUE,
    API_WORK_GRAPH
};

/* A box of rows: `width` bytes x `height` x `depth`; row y of slice z is at address + z * slice_pitch + y *
 * pitch. */
struct api_copy_side {
    uint64_t address;
    uint64_t pitch, slice_pitch;
    bool device; /* checked against live device memory when the copy runs */
};
struct api_copy {
    struct api_copy_side to, from;
    uint64_t width, height, depth;
    bool staged;          /* from.address is a heap copy that belongs to the work */
    CUDA_MEMCPY3D *given; /* of a node that was made by parameters: those, for who asks; heap, NULL none */
};

/* Attributes of a launch that steer hardware only: kept for those who ask a graph's node. */
struct api_hints {
    CUaccessPolicyWindow window;
    CUclusterSchedulingPolicy policy;
    bool has_map;
    CUlaunchMemSyncDomainMap map;
    CUlaunchMemSyncDomain domain;
    unsigned carveout;
};

struct api_launch {
    struct api_function *function; /* a reference to its module is held */
    uint32_t grid[3], block[3], cluster[3];
    bool explicit_cluster, cooperative;
    uint32_t dynamic_shared_bytes;
    void *params; /* heap */
    uint32_t param_bytes;
    int priority;
    struct api_hints hints;
    bool programmatic;        /* may start before the task before it has ended */
    struct api_green *green;  /* NULL: the whole device; a reference is held */
    CUevent fires;            /* recorded with the launch, NULL none; what waits for it may start early: */
    unsigned char fires_port; /* CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC or _LAUNCH_ORDER */
};

struct api_work {
    enum api_work_kind kind;
    union {
        struct api_launch launch;
        struct api_copy copy;
        struct {
            uint64_t address, pitch, width, height; /* width in elements */
            unsigned element_bytes;
            uint32_t value;
        } set;
        struct {
            CUhostFn function;
            void *data;
        } host;
        struct {
            CUstreamCallback function;
            CUstream stream;
            void *data;
        } callback;
        struct {
            struct api_event *event; /* a reference is held */
            uint64_t generation;
            uint64_t shared; /* of several processes: the number of the record; 0: taken when it runs */
        } event;
        struct {
            uint64_t address;
            uint64_t bytes; /* ALLOC */
        } memory;
        struct {
            uint64_t address, value;
            unsigned bytes, flags;
        } value;
        struct {
            struct api_work *items;        /* heap */
            CUstreamBatchMemOpParams *ops; /* heap: what they were made of; lent to who asks a node */
            unsigned count;
        } batch;
        struct api_exec *exec; /* a reference is held */
    };
};

/* Runs it on the calling thread, without the lock. CUDA_SUCCESS, or what makes the context unusable, with
 * `error`. */
CUresult api_work_run(struct api_context *context, struct api_work *work, struct clab_error *error);
/* Frees what it owns. With the lock. */
void api_work_fini(struct api_work *work);
/* A copy that owns its own memory and references. With the lock. */
CUresult api_work_copy(const struct api_work *work, struct api_work *out_work);

/* ---- streams and events (api_queue.c, api_stream.c, api_event.c) ---- */

/* What whoever comes next knows to be done (api_order.c). */
struct api_order {
    struct check_known *known; /* heap */
    size_t n, capacity;
    bool everything;
};

struct api_stream {
    CUstream handle;
    struct api_context *context; /* NULL once the context is gone */
    struct api_green *green;     /* NULL: of no green context; a reference is held */
    unsigned flags;
    int priority;
    unsigned long long id;
    bool legacy, per_thread, destroyed;
    uint64_t issued, completed; /* tasks */
    struct api_task *head, *tail;
    bool running; /* a thread is executing the head */
    bool has_worker;
    pthread_cond_t wake;            /* the worker's, while the queue is empty */
    struct api_context *worker_of;  /* the context that counts the worker */
    unsigned refs;                  /* handle, worker, events, dependencies */
    struct api_capture *capture;    /* NULL unless capturing */
    struct api_edge *capture_nodes; /* what the next node will depend on */
    size_t n_capture_nodes;
    CUgraphNode *lent_nodes;      /* to the caller of cuStreamGetCaptureInfo */
    CUgraphEdgeData *lent_data;   /* likewise */
    struct api_dependency *waits; /* of cuStreamWaitEvent, for the next task */
    size_t n_waits;
    CUsynchronizationPolicy sync_policy; /* -1: not set */
    CUaccessPolicyWindow window;         /* this and the next two: hints without effect, told again */
    CUlaunchMemSyncDomainMap domain_map;
    CUlaunchMemSyncDomain domain;
    struct api_order order;
    struct api_stream *next;
};
struct api_dependency {
    struct api_stream *stream; /* a reference is held */
    uint64_t issued;
};

struct api_event {
    CUevent handle;
    struct api_context *context; /* NULL once the context is gone */
    unsigned flags;
    bool recorded;
    bool was_captured;         /* last recorded in a capture that has ended */
    struct api_stream *stream; /* of the last record; a reference is held */
    uint64_t issued;           /* its task */
    struct api_order order;    /* what that task knew */
    uint64_t generation;
    uint64_t time_ns;
    struct api_shared_event *shared; /* of several processes (api_share_event.c); NULL: of this one */
    int shared_fd;
    bool imported;               /* opened from another process's handle */
    uint64_t shared_last;        /* the number, among all processes', of the record that `stream` describes */
    struct api_capture *capture; /* last recorded inside this capture, at the nodes below */
    struct api_edge *nodes;
    size_t n_nodes;
    unsigned refs;
};

/* Events of several processes (api_share_event.c). Records are numbered across all processes; the event is
   complete when the last of them is reached. `cancel` may be NULL. The wait is not for holders of the lock.
 */
bool api_shared_event_new(struct api_event *event);
void api_shared_event_free(struct api_event *event);
uint64_t api_shared_event_record(struct api_event *event);
void api_shared_event_done(struct api_event *event, uint64_t number);
uint64_t api_shared_event_last(const struct api_event *event);
bool api_shared_event_reached(const struct api_event *event, uint64_t number);
void api_shared_event_wait(const struct api_event *event, uint64_t number, const volatile bool *cancel);

/* Orders between tasks (api_order.c), for the hazard checker; nothing is done while launches are not checked.
   With the lock. */
struct api_work;
/* The next task of `stream` comes after task `issued` of `on`. `then`: what that task knew; NULL: what the
   stream knows now. */
void api_order_after(struct api_stream *stream, const struct api_stream *on, uint64_t issued,
                     const struct api_order *then);
/* What the stream's last task knew, for later; *out is made anew. */
void api_order_keep(struct api_order *out, const struct api_stream *stream);
/* The order of a task that is submitted now; heap, NULL when none is kept. */
struct check_task *api_order_task(struct api_stream *stream, uint64_t number, const struct api_work *work);
/* The host knows task `issued` of `on` to be done; what comes before `task`; all. */
void api_order_host_after(const struct api_stream *on, uint64_t issued, const struct api_order *then);
void api_order_host_after_task(const struct check_task *task);
void api_order_host_after_all(void);
void api_order_fini(struct api_order *order);

enum api_mode {
    API_ASYNC, /* returns at once */
    API_SYNC   /* returns when it is done, with its result */
};
/* Appends work to a stream (or to the graph that it captures into); takes over what `work` owns, also on
   failure. The lock is given up while a synchronous one waits. */
CUresult api_submit(struct api_stream *stream, struct api_work *work, enum api_mode mode);
/* Waits until the stream has done all that was submitted so far; the context's error if one came. */
CUresult api_stream_wait(struct api_stream *stream);
CUresult api_context_wait(struct api_context *context);
bool api_stream_idle(const struct api_stream *stream);
struct api_stream *api_stream_new(struct api_context *context, unsigned flags, int priority);
void api_stream_release(struct api_stream *stream);
/* The handle is gone; the stream stays in its context's list until its queue is empty. */
void api_stream_destroy(struct api_stream *stream);
/* Takes a destroyed stream with an empty queue out of its context. */
void api_stream_retire(struct api_stream *stream);
/* A program's stream argument: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle of this context.
   Errors: INVALID_HANDLE, INVALID_CONTEXT, STREAM_CAPTURE_IMPLICIT. */
CUresult api_stream_get(struct api_context *context, CUstream handle, struct api_stream **out_stream);
/* The stream that calls without a stream argument use. */
CUresult api_stream_default(struct api_context *context, struct api_stream **out_stream);
/* Makes the next task of `stream` wait for the event's last record. */
CUresult api_stream_wait_event(struct api_stream *stream, struct api_event *event);
/* Makes the next task of `stream` wait for that task of `on`. */
CUresult api_stream_wait_task(struct api_stream *stream, struct api_stream *on, uint64_t issued,
                              const struct api_order *then);
CUresult api_event_record(struct api_event *event, struct api_stream *stream, bool external);
/* The event is recorded by the task that `stream` gets next. */
void api_event_place(struct api_event *event, struct api_stream *stream);
/* That task was not issued, for want of memory: waits for the event end. `shared`: the number of the
   recording in an event of several processes, 0 none. */
void api_event_unplace(struct api_event *event, const struct api_stream *stream, uint64_t shared);
/* NULL when memory is out. `flags` are not checked. */
struct api_event *api_event_new(struct api_context *context, unsigned flags);
void api_event_release(struct api_event *event);

/* ---- capture and graphs (api_capture.c, api_graph.c) ---- */

/* Adds the work to the stream's capture instead of running it. Takes over what `work` owns. */
CUresult api_capture_add(struct api_stream *stream, struct api_work *work);
/* cuStreamWaitEvent with a captured event: joins `stream` to the event's capture. */
CUresult api_capture_join(struct api_stream *stream, struct api_event *event);
CUresult api_capture_record(struct api_stream *stream, struct api_event *event);
/* The same with the kernel that was captured last: what waits for it waits for that port of the kernel. */
CUresult api_capture_record_early(struct api_stream *stream, struct api_event *event, unsigned char port);
/* The capture cannot be finished any more. */
void api_capture_invalidate(struct api_capture *capture);
bool api_capture_invalid(const struct api_capture *capture);
void api_capture_drop(struct api_stream *stream);
/* cuCtxSynchronize: invalidates every capture of the context; was there one? */
bool api_capture_blocks_wait(struct api_context *context);
/* Does no capture in progress forbid the call (api_unsafe.def; NULL: one of those)? Those which do are
 * invalidated. */
bool api_capture_permits(const char *call);
/* For what no stream in capture can do: invalidates the capture. CUDA_SUCCESS for one that does not capture.
 */
CUresult api_capture_refuse(struct api_stream *stream);
CUresult api_exec_run(struct api_context *context, struct api_exec *exec, struct clab_error *error);
void api_exec_release(struct api_exec *exec);
void api_exec_hold(struct api_exec *exec);

/* ---- memory of graphs (api_graph_memory.c) ---- */

/* Addresses for `bytes`, as an allocation node's work. OUT_OF_MEMORY, INVALID_VALUE. */
CUresult api_graph_memory_new(uint64_t bytes, struct api_work *out_work);
/* Is it the start of an allocation node's addresses, whether or not memory is there? */
bool api_graph_memory_is(uint64_t address);
/* Does the range lie in an allocation node's addresses? Nodes and captured calls may name it before there is
   memory; whether there is some is checked when they run. */
bool api_graph_memory_holds(uint64_t address, uint64_t bytes);
/* Puts memory there, unless it is there already. With the lock. */
CUresult api_graph_memory_take(struct api_context *context, uint64_t address, uint64_t bytes);
/* Takes the memory away: for api_allocation_free. */
void api_graph_memory_give(struct api_allocation *allocation);

/* ---- launches (api_launch_rules.c) ---- */

/* A launch's grid in CTAs: as given, except for kernels whose grid counts clusters. */
CUresult api_grid_in_ctas(const struct api_function *function, uint32_t grid[3]);
/* Everything that cuLaunchKernelEx refuses, in its order; fills launch->cluster. `attributes` as in
   CUlaunchConfig. launch->function, grid, block, dynamic_shared_bytes are set by the caller. */
CUresult api_launch_check(struct api_device *device, struct api_launch *launch,
                          const CUlaunchAttribute *attributes, unsigned n_attributes);
/* Checks a launch and makes it work for a stream or a graph (api_launch.c). */
CUresult api_launch_prepare(struct api_context *context, struct api_green *green,
                            const CUlaunchConfig *config, CUfunction f, void **params, void **extra,
                            bool cooperative, struct api_work *out_work);
/* The cluster shape that a configuration asks for (attribute or the kernel's own), checked as
   cuLaunchKernelEx checks it except for sizes beyond the hardware's; out_cluster is 1,1,1 without one. */
CUresult api_cluster_shape(const struct api_function *function, const CUlaunchConfig *config,
                           uint32_t out_cluster[3], bool *out_has);

/* ---- channel (api_export.c) ---- */
void api_counters_set(const struct clab_counters *counters);

#endif
