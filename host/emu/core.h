/* What the driver surface (api_*.c) needs from the machine (decode, sched, warp, space): modules, kernels,
   memory, launches. One emu_machine per emulated device per process. Thread-safe unless said otherwise. */
#ifndef CLAB_EMU_CORE_H
#define CLAB_EMU_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "driver/channel.h" /* struct clab_counters */
#include "ptx/ptx.h"

/* Device model: model.c has one row per emulated device, each number with its source in a comment. */
struct emu_model {
    const char *arch; /* "sm_90" */
    const char *name; /* "NVIDIA H200 (emulated by clusterlab)" */
    uint16_t sm;      /* 90 */
    uint8_t cc_major, cc_minor;
    uint32_t sms, clock_khz, memory_clock_khz, bus_bits, l2_bytes;
    uint32_t shared_per_sm_bytes, shared_per_block_optin_bytes, registers_per_sm, threads_per_sm, ctas_per_sm;
    uint64_t memory_bytes;
    uint32_t max_cluster_portable, max_cluster;
    uint8_t sm_groups[32]; /* SMs per group (GPC or part of one), 0-terminated: the active-cluster formula */
    uint64_t sm_bits[4];   /* of a part of a device: the SMs that it has, a bit each; none: 0 to sms - 1 */
};
/* %smid of a model's SM number `index`. */
static inline uint32_t emu_model_smid(const struct emu_model *model, uint32_t index)
{
    uint32_t left = index;
    for (uint32_t i = 0; i < 4; i++) {
        for (uint64_t bits = model->sm_bits[i]; bits; bits &= bits - 1) {
            if (left-- == 0) {
                return i * 64 + (uint32_t)__builtin_ctzll(bits);
            }
        }
    }
    return index;
}
/* NULL for an unknown name. "sm_100a" and "sm_100f" give sm_100's model. */
const struct emu_model *emu_model_get(const char *arch);
extern const struct emu_model emu_models[];
extern const unsigned emu_model_count;

struct emu_options {
    enum { EMU_SCHEDULE_FAST, EMU_SCHEDULE_FAIR } schedule;
    uint64_t seed;
    uint32_t threads;              /* host threads for `fast`; 0: one per processor */
    uint32_t initial_clusters;     /* clusters started at once; 0: what the model holds */
    uint32_t decline;              /* CLC: decline every request after this many; UINT32_MAX never */
    uint64_t instruction_budget;   /* warp instructions per launch after which it times out; 0 none */
    int trace_cta, trace_warp;     /* linear CTA index and warp to trace, -1 none */
    const char *trace_file;        /* the trace is appended to it; NULL: standard error. Borrowed */
    const struct emu_hooks *hooks; /* observers of launches (hook.h), NULL none. Borrowed */
    char source[512];              /* what messages call the next image; "": a name for all */
    uint16_t driver_version; /* 90 = refuses .version above 9.0 (CLUSTERLAB_EMU_DRIVER=13.0); 0 any known */
    const char *isa;         /* "base", "v3", "v4", NULL best */
};

struct emu_machine;
clab_status emu_machine_new(const struct emu_model *model, struct emu_machine **out_machine,
                            struct clab_error *error);
void emu_machine_free(struct emu_machine *machine);
const struct emu_model *emu_machine_model(const struct emu_machine *machine);
struct emu_options *
emu_machine_options(struct emu_machine *machine); /* set before a launch, not during one */

/* Says that something changed that a running kernel may be waiting for (the host wrote device or mapped
   memory): a kernel that spins is then not declared dead yet. Callable from any thread. */
void emu_machine_progress(struct emu_machine *machine);

/* --- memory (space.c): the arena is reserved address space; a device address is its host address, so that
   copies are memcpy after a check. Unallocated, freed and out-of-range bytes are never readable or writable
   by a kernel. */
enum emu_memory_kind {
    EMU_MEMORY_DEVICE,
    EMU_MEMORY_CONST,
    EMU_MEMORY_MANAGED,
    EMU_MEMORY_HOST,
    EMU_MEMORY_HEAP,    /* of kernels: what malloc in a kernel gave */
    EMU_MEMORY_RESERVED /* addresses without memory of their own: cuMemAddressReserve */
};
/* Aligned to 512 bytes; zero-filled pages are not promised to the program. 0 when out of device memory. */
uint64_t emu_memory_alloc(struct emu_machine *machine, uint64_t bytes, enum emu_memory_kind kind);
/* Host memory made visible to kernels at its own address (cuMemHostRegister). False when it cannot be mapped;
   memory that may not be written can only with `read_only`. */
bool emu_memory_register(struct emu_machine *machine, void *host, uint64_t bytes, bool read_only);
bool emu_memory_unregister(struct emu_machine *machine, void *host);
/* False when `address` is not the start of a live allocation. */
bool emu_memory_free(struct emu_machine *machine, uint64_t address);
/* Was a kernel queued that may call malloc, since the heap was cleared? Then its size is settled. */
bool emu_memory_heap_in_use(const struct emu_machine *machine);
/* Frees what kernels have left on their heap. */
void emu_memory_heap_clear(struct emu_machine *machine);
/* The allocation that holds `address`, or false. */
bool emu_memory_find(const struct emu_machine *machine, uint64_t address, uint64_t *out_base,
                     uint64_t *out_bytes, enum emu_memory_kind *out_kind);
/* Host pointer for [address, address + bytes) when all of it is live, else NULL (for the API's copies and
 * sets). */
void *emu_memory_host(const struct emu_machine *machine, uint64_t address, uint64_t bytes);
void emu_memory_info(const struct emu_machine *machine, uint64_t *out_free, uint64_t *out_total);

/* --- virtual memory and sharing (space_virtual.c). Memory without an address is a file in memory, so that it
   can be mapped more than once and in more than one process. Sizes and addresses are multiples of
   EMU_PHYSICAL_STEP, except where something else is said. */
#define EMU_PHYSICAL_STEP (UINT64_C(2) << 20) /* the granularity of an H200 */
struct emu_physical;
/* Reserves addresses, at `wanted` if they are free there. alignment: 0 or a power of two. 0 when there is no
   such range. */
uint64_t emu_memory_reserve(struct emu_machine *machine, uint64_t bytes, uint64_t alignment, uint64_t wanted);
/* False when that is not exactly a reservation. Whatever is mapped inside is unmapped. */
bool emu_memory_unreserve(struct emu_machine *machine, uint64_t base, uint64_t bytes);
/* Memory: new, or that behind a descriptor of another process (which stays the caller's). NULL when there is
 * not enough of it, or the descriptor is none of ours. */
struct emu_physical *emu_physical_new(struct emu_machine *machine, uint64_t bytes);
struct emu_physical *emu_physical_import(struct emu_machine *machine, int fd);
void emu_physical_release(struct emu_machine *machine, struct emu_physical *physical);
uint64_t emu_physical_bytes(const struct emu_physical *physical);
/* Its descriptor, borrowed, to give to another process. */
int emu_physical_share(struct emu_machine *machine, struct emu_physical *physical);
/* Maps it inside a reservation: not accessible to kernels and copies yet. False when the host refuses. */
bool emu_memory_map(struct emu_machine *machine, uint64_t address, uint64_t bytes,
                    struct emu_physical *physical, uint64_t offset);
void emu_memory_unmap(struct emu_machine *machine, uint64_t address, uint64_t bytes);
/* What kernels and copies may do with a mapped range. */
void emu_memory_access(struct emu_machine *machine, uint64_t address, uint64_t bytes, bool read, bool write);
/* Turns a live allocation's pages into those of a file, contents kept, and returns its descriptor, borrowed
   (further calls give the same). -1 when the host refuses. Nothing may be running. */
int emu_memory_share(struct emu_machine *machine, uint64_t base);
/* A live allocation over another process's file: `bytes` of it. 0 when that cannot be. */
uint64_t emu_memory_attach(struct emu_machine *machine, int fd, uint64_t bytes);

/* --- modules. Parsed once; globals allocated and initialised; functions decoded when first fetched. */
struct emu_module;
struct emu_kernel;
/* text: PTX. Errors: PTX_SYNTAX, PTX_TARGET (.target not for this device), LOAD (.version refused),
 * NO_MEMORY. */
clab_status emu_module_load(struct emu_machine *machine, const char *text, size_t bytes, const char *name,
                            struct emu_module **out_module, struct clab_error *error);
void emu_module_unload(struct emu_module *module);
/* Decodes on first use. NOT_FOUND (message lists the entries), or the function's own error. Owned by the
 * module. */
clab_status emu_module_kernel(struct emu_module *module, const char *name, struct emu_kernel **out_kernel,
                              struct clab_error *error);
/* Names of the entries in order; NULL past the end. */
const char *emu_module_entry_name(const struct emu_module *module, unsigned index);
/* Address and size of a .global or .const variable; false when there is none of that name. */
bool emu_module_global(const struct emu_module *module, const char *name, uint64_t *out_address,
                       uint64_t *out_bytes);

/* The sm of its .target, 90 for sm_90a. */
unsigned emu_module_sm(const struct emu_module *module);
/* Is there a variable of that name with .attribute(.managed)? */
bool emu_module_is_managed(const struct emu_module *module, const char *name);

/* Address of a .texref (or .surfref) variable; false when there is none of that name. */
bool emu_module_reference(const struct emu_module *module, const char *name, bool is_surface,
                          uint64_t *out_address);

struct emu_kernel_info {
    const struct ptx_function *function; /* directives, parameters */
    struct emu_module *module;
    uint32_t static_shared_bytes; /* without the 1 KiB that the hardware reserves */
    uint32_t local_bytes;         /* per thread */
    uint32_t const_bytes;
    uint32_t registers_modelled; /* estimate of 32-bit registers per thread; modelled, never measured */
    uint32_t n_params;
    uint32_t param_bytes; /* size of the parameter block */
    const uint32_t *param_offsets, *param_sizes;
};
void emu_kernel_info_get(const struct emu_kernel *kernel, struct emu_kernel_info *out_info);
/* The kernel is queued: if its module calls malloc, the size of the heap is settled from now on. */
void emu_kernel_queued(struct emu_kernel *kernel);

/* --- launches: runs the whole grid before it returns, on the calling thread plus options->threads - 1
   others. Several launches may run at once from different threads (streams). */
struct emu_launch {
    struct emu_kernel *kernel;
    uint32_t grid[3], block[3], cluster[3]; /* cluster 1,1,1 when none */
    bool explicit_cluster, cooperative;
    uint32_t dynamic_shared_bytes;
    uint64_t heap_limit_bytes; /* of malloc in kernels (CU_LIMIT_MALLOC_HEAP_SIZE); 0: as the device has */
    const void *params;        /* param_bytes bytes laid out at param_offsets */
    const struct emu_model *model; /* the part of the device that it may use; NULL: all of it. Borrowed */
    volatile bool *cancel;         /* polled: true ends the launch with CLAB_INTERRUPTED; may be NULL */
    const struct emu_hooks *hooks; /* observers of this launch; NULL: those of the options */
    const void *task;              /* what the launch is to its maker, for those observers; may be NULL */
    uint32_t stack_bytes; /* a thread's, of kernels whose need is not known, beyond what they get anyway */
};
/* Legality (grid divisible, sizes, co-residency) is the API's business and already checked. *out_counters is
   filled also on failure. Errors: FAULT, DEADLOCK, TIMEOUT, UNSUPPORTED, NO_MEMORY, INTERRUPTED. */
clab_status emu_launch_run(struct emu_machine *machine, const struct emu_launch *launch,
                           struct clab_counters *out_counters, struct clab_error *error);
/* CTAs of `kernel` that fit one SM (threads, CTAs, registers, shared memory), and active clusters of `size`
   CTAs by the formula of the model's SM groups. */
uint32_t emu_occupancy_ctas(const struct emu_model *model, const struct emu_kernel *kernel,
                            uint32_t block_threads, uint32_t dynamic_shared_bytes);
uint32_t emu_occupancy_clusters(const struct emu_model *model, const struct emu_kernel *kernel,
                                uint32_t block_threads, uint32_t dynamic_shared_bytes, uint32_t size);

/* Text printed by vprintf is written here by the machine at the end of a launch; the API flushes to stdout.
 */

#endif
