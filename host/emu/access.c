/* Accesses lane by lane: what the fast forms of access.h do not place. Every fault of a memory operation is
   worded here. PTX ISA 9.0, "State Spaces", "Generic Addressing"; which fault gives which error code:
   measured on an H200 (design, "Faults"; tests/emu/memory/fault_*.ptx). */
#include "emu/access.h"

#include <stdio.h>

#include "emu/code.h"
#include "emu/module.h"

#define STEPS_OF(b)                                                                                         \
    {                                                                                                       \
        0 * (b), 1 * (b), 2 * (b), 3 * (b), 4 * (b), 5 * (b), 6 * (b), 7 * (b), 8 * (b), 9 * (b), 10 * (b), \
            11 * (b), 12 * (b), 13 * (b), 14 * (b), 15 * (b), 16 * (b), 17 * (b), 18 * (b), 19 * (b),       \
            20 * (b), 21 * (b), 22 * (b), 23 * (b), 24 * (b), 25 * (b), 26 * (b), 27 * (b), 28 * (b),       \
            29 * (b), 30 * (b), 31 * (b)                                                                    \
    }
const uint64_t emu_lane_steps[EMU_TRAFFIC_SIZES][EMU_LANES] = {STEPS_OF(1), STEPS_OF(2),  STEPS_OF(4),
                                                               STEPS_OF(8), STEPS_OF(16), STEPS_OF(32)};
#undef STEPS_OF

static const char *const verbs[] = {
    [EMU_LOAD] = "load", [EMU_STORE] = "store", [EMU_ATOMIC] = "atomic operation"};
static const char *const reaches[] = {
    [EMU_REACH_GLOBAL] = "global",     [EMU_REACH_CONST] = "const",
    [EMU_REACH_PARAM] = "param",       [EMU_REACH_LOCAL] = "local",
    [EMU_REACH_SHARED_CTA] = "shared", [EMU_REACH_SHARED_CLUSTER] = "shared::cluster",
    [EMU_REACH_GENERIC] = "generic"};

struct lane_access {
    struct emu_warp *warp;
    const struct emu_op *op;
    unsigned lane;
    enum emu_reach reach;
    uint64_t address; /* as the program gave it */
    uint32_t bytes;
    uint32_t align; /* a power of two */
    enum emu_access_mode mode;
};

static unsigned char *lane_fault(const struct lane_access *x, enum emu_fault_kind kind, const char *reason)
{
    emu_fault_kind_set(x->warp, kind);
    emu_fault(x->warp, x->op, x->lane, CLAB_FAULT, reaches[x->reach], x->address, "%s of %u byte%s: %s",
              verbs[x->mode], x->bytes, x->bytes == 1 ? "" : "s", reason);
    return NULL;
}

static bool lane_aligned(const struct lane_access *x)
{
    if (x->address & (x->align - 1)) {
        char text[80];
        snprintf(text, sizeof text, "misaligned address: not a multiple of %u", x->align);
        lane_fault(x, EMU_FAULT_MISALIGNED_ADDRESS, text);
        return false;
    }
    return true;
}

/* A load that compilers make: where they know the alignment they fill gaps between loads up to 16 bytes
   (LLVM's load-store vectoriser), so the last bytes may lie behind an allocation. Allocations and
   variables are "aligned to at least 256 bytes" (CUDA C++ Programming Guide 13.0, "Device Memory Accesses"),
   so no GPU faults. What the last bytes read is unspecified. */
static void *widened_load(const struct lane_access *x)
{
    const struct emu_space *space = emu_warp_space(x->warp);
    const uint64_t last = x->address + x->bytes - (x->bytes < 16 ? x->bytes : 16);
    return x->mode == EMU_LOAD && x->bytes >= 8 &&
                   last - space->base < space->granules << EMU_GRANULE_SHIFT &&
                   emu_space_range_read(space, last, 1) != NULL
               ? emu_space_range_read(space, x->address, 1)
               : NULL;
}

static bool is_scalar_load(const struct lane_access *x)
{
    const struct emu_frame *frame = x->warp->fragment ? x->warp->fragment->frame : NULL;
    if (x->mode != EMU_LOAD || x->bytes >= 8 || x->bytes != x->align || !frame ||
        x->op->insn >= frame->code->function->n_insns) {
        return false;
    }
    const struct ptx_insn *insn = &frame->code->function->insns[x->op->insn];
    return !ptx_has(insn, PTX_MOD_V2) && !ptx_has(insn, PTX_MOD_V4) && !ptx_has(insn, PTX_MOD_V8);
}

/* A narrower load that begins in a variable and ends behind it, in the same aligned word: clang up to 15
   loads its 1-bit variables (.u8, .align 2 or more) with ld.u16. No GPU faults. Vectors, stores, and memory
   that a program allocated are held to the size. */
static unsigned char *word_of_variable(const struct emu_space *space, const struct lane_access *x)
{
    return is_scalar_load(x) &&
                   emu_module_has_variable_at(x->warp->cta->run->launch->kernel->module, x->address)
               ? emu_space_range_read(space, x->address, 1)
               : NULL;
}

static unsigned char *lane_device(const struct lane_access *x, enum clab_space_id *out_space)
{
    const struct emu_space *space = emu_warp_space(x->warp);
    unsigned char *at = x->mode == EMU_LOAD ? emu_space_range_read(space, x->address, x->bytes)
                                            : emu_space_range_write(space, x->address, x->bytes);
    const enum emu_address_class class = emu_space_classify(space, x->address);
    if (!at && (class == EMU_ADDRESS_GLOBAL || class == EMU_ADDRESS_CONST)) {
        at = widened_load(x);
        at = at ? at : word_of_variable(space, x);
    }
    if (!at) {
        char text[256];
        emu_space_explain(space, x->address, x->bytes, x->mode != EMU_LOAD, text, sizeof text);
        const bool window = class == EMU_ADDRESS_SHARED || class == EMU_ADDRESS_LOCAL;
        return lane_fault(x, window ? EMU_FAULT_INVALID_ADDRESS_SPACE : EMU_FAULT_ILLEGAL_ADDRESS, text);
    }
    if (x->reach == EMU_REACH_CONST && class != EMU_ADDRESS_CONST) {
        return lane_fault(x, EMU_FAULT_ILLEGAL_ADDRESS, "the address is not in constant memory");
    }
    if (x->reach == EMU_REACH_PARAM && class != EMU_ADDRESS_PARAM) {
        return lane_fault(x, EMU_FAULT_ILLEGAL_ADDRESS, "the address is not in the launch's parameters");
    }
    *out_space = class == EMU_ADDRESS_CONST   ? CLAB_SPACE_CONST
                 : class == EMU_ADDRESS_PARAM ? CLAB_SPACE_PARAM
                                              : CLAB_SPACE_GLOBAL;
    return at;
}

/* The same (widened_load) of the CTA's shared memory, which comes in units of 128 bytes (cuda_occupancy.h).
 */
static bool is_widened(const struct lane_access *x, uint32_t at, uint32_t shared_bytes)
{
    return x->mode == EMU_LOAD && x->bytes >= 8 && at < shared_bytes &&
           (uint64_t)at + x->bytes <= (((uint64_t)shared_bytes + 15) & ~UINT64_C(15));
}

static unsigned char *lane_shared(const struct lane_access *x, uint32_t address,
                                  enum clab_space_id *out_space)
{
    const struct emu_cta *own = x->warp->cta;
    const struct emu_cluster *cluster = own->cluster;
    const uint32_t rank = address >> EMU_RANK_SHIFT, offset = address & ((1u << EMU_RANK_SHIFT) - 1);
    char text[256];
    if (rank != own->rank && x->reach == EMU_REACH_SHARED_CTA) {
        snprintf(
            text, sizeof text,
            "the address names the CTA of rank %u, but .shared::cta reaches only the executing CTA, rank %u",
            rank, own->rank);
        return lane_fault(x, EMU_FAULT_ILLEGAL_INSTRUCTION, text);
    }
    if (rank >= cluster->size) {
        snprintf(text, sizeof text, "the address names the CTA of rank %u, but the cluster has %u CTA%s",
                 rank, cluster->size, cluster->size == 1 ? "" : "s");
        return lane_fault(x, EMU_FAULT_LAUNCH_FAILED, text);
    }
    const struct emu_cta *peer = &cluster->ctas[rank];
    if (peer->state != EMU_CTA_RUNNING) {
        snprintf(text, sizeof text,
                 "CTA (%u,%u,%u) of rank %u, whose shared memory is accessed, has %s; the access is by CTA "
                 "(%u,%u,%u) of rank %u",
                 peer->ctaid[0], peer->ctaid[1], peer->ctaid[2], rank,
                 peer->state == EMU_CTA_EXITED ? "exited" : "not started", own->ctaid[0], own->ctaid[1],
                 own->ctaid[2], own->rank);
        return lane_fault(x, EMU_FAULT_LAUNCH_FAILED, text);
    }
    if (offset < EMU_SHARED_FIRST && peer->room_bytes != peer->shared_bytes) {
        *out_space = rank == own->rank ? CLAB_SPACE_SHARED : CLAB_SPACE_REMOTE;
        return peer->shared + (peer->room_bytes - EMU_SHARED_FIRST) + offset;
    }
    if (offset < EMU_SHARED_FIRST) {
        snprintf(text, sizeof text,
                 "offset 0x%x of the window lies in the 1 KiB that is reserved for the system", offset);
        return lane_fault(x, EMU_FAULT_ILLEGAL_ADDRESS, text);
    }
    const uint32_t at = offset - EMU_SHARED_FIRST;
    if ((uint64_t)at + x->bytes > peer->shared_bytes && !is_widened(x, at, peer->shared_bytes)) {
        snprintf(text, sizeof text,
                 "out of bounds: offset %u of the %u bytes of shared memory of CTA (%u,%u,%u), rank %u", at,
                 peer->shared_bytes, peer->ctaid[0], peer->ctaid[1], peer->ctaid[2], rank);
        /* Measured on an H200 (driver 13.0, 2026-11-30): of a peer's window the first 228 KiB, as many bytes
           as an SM has, give the first code (233468), what lies behind the second (233472). */
        const bool remote = x->reach == EMU_REACH_SHARED_CLUSTER && rank != own->rank &&
                            offset < own->run->machine->model->shared_per_sm_bytes;
        return lane_fault(x, remote ? EMU_FAULT_LAUNCH_FAILED : EMU_FAULT_ILLEGAL_ADDRESS, text);
    }
    *out_space = rank == own->rank ? CLAB_SPACE_SHARED : CLAB_SPACE_REMOTE;
    return peer->shared + at;
}

static unsigned char *lane_local(const struct lane_access *x, uint64_t offset, enum clab_space_id *out_space)
{
    const uint32_t room = x->warp->cta->local_bytes;
    if (x->mode == EMU_ATOMIC) {
        return lane_fault(x, EMU_FAULT_INVALID_ADDRESS_SPACE,
                          "the address is in local memory, which has no atomic operations");
    }
    if (offset > room || x->bytes > room - offset) {
        char text[128];
        snprintf(text, sizeof text, "out of bounds: offset %llu of the thread's %u bytes of local memory",
                 (unsigned long long)offset, room);
        return lane_fault(x, EMU_FAULT_ILLEGAL_ADDRESS, text);
    }
    *out_space = CLAB_SPACE_LOCAL;
    return emu_local(x->warp, x->lane) + offset;
}

unsigned char *emu_access_lane(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                               enum emu_reach reach, uint64_t address, uint32_t bytes,
                               enum emu_access_mode mode, enum clab_space_id *out_space)
{
    return emu_access_range(warp, op, lane, reach, address, bytes, bytes, mode, out_space);
}

unsigned char *emu_access_range(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                enum emu_reach reach, uint64_t address, uint32_t bytes, uint32_t align,
                                enum emu_access_mode mode, enum clab_space_id *out_space)
{
    const struct lane_access x = {warp, op, lane, reach, address, bytes, align, mode};
    if (!lane_aligned(&x)) {
        return NULL;
    }
    switch (reach) {
    case EMU_REACH_GLOBAL:
    case EMU_REACH_CONST:
    case EMU_REACH_PARAM:
        return lane_device(&x, out_space);
    case EMU_REACH_LOCAL:
        return lane_local(&x, address, out_space);
    case EMU_REACH_SHARED_CTA:
    case EMU_REACH_SHARED_CLUSTER:
        return lane_shared(&x, (uint32_t)address, out_space);
    case EMU_REACH_GENERIC:
        break;
    }
    const struct emu_space *space = emu_warp_space(warp);
    switch (emu_space_classify(space, address)) {
    case EMU_ADDRESS_SHARED:
        return lane_shared(&x, (uint32_t)address, out_space);
    case EMU_ADDRESS_LOCAL:
        return lane_local(&x, address - space->local_window, out_space);
    case EMU_ADDRESS_GLOBAL:
    case EMU_ADDRESS_CONST:
    case EMU_ADDRESS_PARAM:
        break;
    }
    return lane_device(&x, out_space);
}

/* Whose shared memory a host address lies in; NULL: none of the cluster's. */
static const struct emu_cta *owner_of(const struct emu_cluster *cluster, const unsigned char *at)
{
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        const struct emu_cta *cta = &cluster->ctas[rank];
        if ((uintptr_t)at - (uintptr_t)cta->shared < cta->room_bytes) {
            return cta;
        }
    }
    return NULL;
}

void emu_access_tell(const struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                     enum clab_space_id space, const unsigned char *at, uint32_t bytes,
                     enum emu_access_mode mode)
{
    const struct emu_hooks *hooks = warp->cta->run->hooks;
    if (!hooks || !hooks->access) {
        return;
    }
    const bool shared = space == CLAB_SPACE_SHARED || space == CLAB_SPACE_REMOTE;
    const struct emu_access access = {
        .kind = mode == EMU_LOAD    ? EMU_ACCESS_LOAD
                : mode == EMU_STORE ? EMU_ACCESS_STORE
                                    : EMU_ACCESS_ATOMIC,
        .shape = EMU_SHAPE_ONE,
        .space = space,
        .lanes = UINT32_C(1) << lane,
        .bytes = bytes,
        .owner = shared ? owner_of(warp->cta->cluster, at) : NULL,
        .at = at,
    };
    emu_hook_access(warp, op, &access);
}

void emu_access_tell_map(const struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                         enum clab_space_id space, const unsigned char *at, bool write)
{
    emu_hook_event(warp->cta, warp, op,
                   &(struct emu_event){.kind = EMU_EVENT_TENSOR_MAP,
                                       .lanes = UINT32_C(1) << lane,
                                       .address = (uint64_t)(uintptr_t)at,
                                       .value = (uint64_t)space,
                                       .wait = write});
}

/* Tells observers of lanes that may be in several spaces and CTAs: one call for each of those. */
static void tell_each(const struct emu_warp *warp, const struct emu_op *op, uint32_t lanes,
                      const enum clab_space_id spaces[EMU_LANES], unsigned size, enum emu_access_mode mode,
                      const struct emu_lanes *out)
{
    const struct emu_hooks *hooks = warp->cta->run->hooks;
    const struct emu_cta *owners[EMU_LANES] = {NULL};
    if (!hooks || !hooks->access) {
        return;
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        if (spaces[lane] == CLAB_SPACE_SHARED || spaces[lane] == CLAB_SPACE_REMOTE) {
            owners[lane] = owner_of(warp->cta->cluster, out->lane[lane]);
        }
    }
    for (uint32_t left = lanes, same = 0; left; left &= ~same) {
        const unsigned first = (unsigned)__builtin_ctz(left);
        same = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(rest);
            same |= (uint32_t)(spaces[lane] == spaces[first] && owners[lane] == owners[first]) << lane;
        }
        const struct emu_access access = {
            .kind = mode == EMU_LOAD    ? EMU_ACCESS_LOAD
                    : mode == EMU_STORE ? EMU_ACCESS_STORE
                                        : EMU_ACCESS_ATOMIC,
            .shape = EMU_SHAPE_EACH,
            .space = spaces[first],
            .lanes = same,
            .bytes = 1u << size,
            .owner = owners[first],
            .each = out->lane,
        };
        emu_hook_access(warp, op, &access);
    }
}

enum emu_lanes_kind emu_access_each(struct emu_warp *warp, const struct emu_op *op, enum emu_reach reach,
                                    const void *addresses, bool wide, uint64_t offset, unsigned size,
                                    enum emu_access_mode mode, struct emu_lanes *out)
{
    const uint64_t *a64 = addresses;
    const uint32_t *a32 = addresses;
    enum clab_space_id spaces[EMU_LANES];
    out->shared = false;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint64_t address = wide ? a64[lane] + offset : (uint32_t)(a32[lane] + (uint32_t)offset);
        out->lane[lane] = emu_access_lane(warp, op, lane, reach, address, 1u << size, mode, &spaces[lane]);
        if (!out->lane[lane]) {
            tell_each(warp, op, warp->exec & ((UINT32_C(1) << lane) - 1), spaces, size, mode, out);
            return EMU_LANES_FAULT;
        }
        emu_access_count(warp, spaces[lane], size, mode, 1);
    }
    tell_each(warp, op, warp->exec, spaces, size, mode, out);
    return EMU_LANES_EACH;
}

enum emu_lanes_kind emu_access_same(struct emu_warp *warp, const struct emu_op *op, enum emu_reach reach,
                                    uint64_t address, unsigned size, enum emu_access_mode mode,
                                    struct emu_lanes *out)
{
    uint64_t addresses[EMU_LANES];
    for (unsigned i = 0; i < EMU_LANES; i++) {
        addresses[i] = address;
    }
    return emu_access_each(warp, op, reach, addresses, true, 0, size, mode, out);
}
