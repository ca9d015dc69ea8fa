/* From a row of addresses to host memory: what every ld, st, atom, red and asynchronous operation does first.

   emu_access_<reach>() checks all lanes of an access at once and says which of three shapes it has:
   consecutive lanes at consecutive addresses (one check, then a plain copy), one address for all lanes, or a
   pointer per lane. What these fast forms cannot place (a fault, registered host memory, lanes in different
   spaces or CTAs) goes lane by lane through emu_access_each() of access.c, which alone words the faults.

   Included by ops_*.c, so that the loops are compiled once per instruction set. PTX ISA 9.0, "State Spaces",
   "Generic Addressing", "Addresses as Operands". */
#ifndef CLAB_EMU_ACCESS_H
#define CLAB_EMU_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/hook.h"
#include "emu/op.h"
#include "emu/space.h"
#include "emu/traffic.h"
#include "emu/warp.h"

/* Scalar loops over lanes whose steps are independent: the processor overlaps them when the loop is not in
 * the way. */
#if defined(__clang__)
#define EMU_UNROLL _Pragma("clang loop unroll_count(8)")
#else
#define EMU_UNROLL _Pragma("GCC unroll 8")
#endif

/* Where an instruction's address may point. */
enum emu_reach {
    EMU_REACH_GLOBAL,
    EMU_REACH_CONST,
    EMU_REACH_PARAM,
    EMU_REACH_LOCAL,
    EMU_REACH_SHARED_CTA,     /* 32-bit window addresses */
    EMU_REACH_SHARED_CLUSTER, /* the same, any CTA of the cluster */
    EMU_REACH_GENERIC
};

enum emu_access_mode { EMU_LOAD, EMU_STORE, EMU_ATOMIC };

enum emu_lanes_kind {
    EMU_LANES_FAULT, /* emu_fault was called; the handler returns NULL */
    EMU_LANES_ROW,   /* lane i is at `at + i * bytes`; only the lanes in exec may be touched */
    EMU_LANES_ONE,   /* every lane is at `at` */
    EMU_LANES_EACH   /* lane i is at lane[i]; valid for the lanes in exec only */
};

struct emu_lanes {
    unsigned char *at;
    bool shared; /* all of it in shared memory, which only this host thread touches; false: may be global */
    unsigned char *lane[EMU_LANES];
};

/* Steps of consecutive lanes for accesses of 1, 2, 4, 8, 16, 32 bytes. */
extern const uint64_t emu_lane_steps[EMU_TRAFFIC_SIZES][EMU_LANES];

/* Resolves one lane. Returns the host pointer and the space it counts for, or NULL after emu_fault.
   `address`: a device or generic address, an offset of the local window, or a shared window address, as
   `reach` says. */
unsigned char *emu_access_lane(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                               enum emu_reach reach, uint64_t address, uint32_t bytes,
                               enum emu_access_mode mode, enum clab_space_id *out_space);
/* The same for any number of bytes (not 0) at a multiple of `align`. */
unsigned char *emu_access_range(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                enum emu_reach reach, uint64_t address, uint32_t bytes, uint32_t align,
                                enum emu_access_mode mode, enum clab_space_id *out_space);
/* Tells observers, if there are any, of one lane's access of any number of bytes at host address `at`. */
void emu_access_tell(const struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                     enum clab_space_id space, const unsigned char *at, uint32_t bytes,
                     enum emu_access_mode mode);
/* The same for a tensor map, whose accesses are not counted. */
void emu_access_tell_map(const struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                         enum clab_space_id space, const unsigned char *at, bool write);
/* The same as emu_access_lane for all lanes of warp->exec; `wide` rows hold 64-bit addresses, others 32-bit;
   `offset` is added. Counts the lanes. */
enum emu_lanes_kind emu_access_each(struct emu_warp *warp, const struct emu_op *op, enum emu_reach reach,
                                    const void *addresses, bool wide, uint64_t offset, unsigned size,
                                    enum emu_access_mode mode, struct emu_lanes *out);

/* The CTA of rank `rank` in the cluster of `cta`, when its shared memory may be accessed; else NULL. */
static inline struct emu_cta *emu_cta_peer(const struct emu_cta *cta, uint32_t rank)
{
    struct emu_cluster *cluster = cta->cluster;
    return rank < cluster->size && cluster->ctas[rank].state == EMU_CTA_RUNNING ? &cluster->ctas[rank] : NULL;
}

static inline const struct emu_space *emu_warp_space(const struct emu_warp *warp)
{
    return warp->cta->run->machine->space;
}

/* The same for one address that all lanes name. */
enum emu_lanes_kind emu_access_same(struct emu_warp *warp, const struct emu_op *op, enum emu_reach reach,
                                    uint64_t address, unsigned size, enum emu_access_mode mode,
                                    struct emu_lanes *out);

/* Tells observers of an access that a fast form has placed. `owner`: whose shared memory, or NULL. */
static inline void emu_access_seen(const struct emu_warp *warp, const struct emu_op *op,
                                   enum clab_space_id space, const struct emu_cta *owner, unsigned size,
                                   enum emu_access_mode mode, enum emu_access_shape shape,
                                   const struct emu_lanes *out)
{
    (void)warp, (void)op, (void)space, (void)owner, (void)size, (void)mode, (void)shape, (void)out;
    EMU_HOOK_ACCESS(warp, op,
                    &(struct emu_access){.kind = mode == EMU_LOAD    ? EMU_ACCESS_LOAD
                                                 : mode == EMU_STORE ? EMU_ACCESS_STORE
                                                                     : EMU_ACCESS_ATOMIC,
                                         .shape = shape,
                                         .space = space,
                                         .lanes = warp->exec,
                                         .bytes = 1u << size,
                                         .owner = owner,
                                         .at = shape == EMU_SHAPE_EACH ? NULL : out->at,
                                         .each = out->lane});
}

static inline void emu_access_count(struct emu_warp *warp, enum clab_space_id space, unsigned size,
                                    enum emu_access_mode mode, uint64_t lanes)
{
    struct emu_traffic *traffic = warp->traffic;
    if (mode == EMU_LOAD) {
        traffic->loads[space][size] += lanes;
    } else if (mode == EMU_STORE) {
        traffic->stores[space][size] += lanes;
    } else if (space == CLAB_SPACE_SHARED) {
        traffic->atomics_shared += lanes;
    } else if (space == CLAB_SPACE_REMOTE) {
        traffic->atomics_remote += lanes;
    } else {
        traffic->atomics_global += lanes;
    }
}

/* Whether [address, address + bytes), at most 1024 bytes, lies in the arena and may be accessed. *out_flags:
   the flags of its first granule. */
static inline bool emu_access_near(const struct emu_space *space, uint64_t address, unsigned bytes,
                                   bool write, uint16_t *out_flags)
{
    const uint64_t start = address - space->base;
    const uint64_t first = start >> EMU_GRANULE_SHIFT, last = (start + bytes - 1) >> EMU_GRANULE_SHIFT;
    if (start >= (UINT64_C(1) << 63) || last >= space->granules) {
        return false;
    }
    const uint16_t refused = write ? EMU_GRANULE_READ_ONLY : 0;
    *out_flags = space->map[first];
    for (uint64_t i = first; i < last; i++) {
        if ((space->map[i] & (EMU_GRANULE_VALID | refused)) != EMU_GRANULE_BYTES) {
            return false;
        }
    }
    const uint16_t entry = space->map[last];
    return ((start + bytes - 1) & (EMU_GRANULE_BYTES - 1)) < (entry & EMU_GRANULE_VALID) &&
           !(entry & refused);
}

/* Device memory: .global, .const, .param of an entry, and generic addresses that the caller expects there. */
static inline enum emu_lanes_kind emu_access_device(struct emu_warp *warp, const struct emu_op *op,
                                                    enum emu_reach reach, const unsigned size,
                                                    const enum emu_access_mode mode, const bool full,
                                                    struct emu_lanes *out)
{
    const struct emu_space *space = emu_warp_space(warp);
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    const uint64_t *steps = emu_lane_steps[size];
    const uint32_t *on = warp->lane_mask;
    const unsigned bytes = 1u << size;
    const unsigned first = full ? 0 : (unsigned)__builtin_ctz(warp->exec);
    const unsigned last = full ? EMU_LANES - 1 : 31 - (unsigned)__builtin_clz(warp->exec);
    const uint64_t lanes = full ? EMU_LANES : (uint64_t)__builtin_popcount(warp->exec);
    const uint16_t wanted = reach == EMU_REACH_CONST   ? EMU_GRANULE_CONST
                            : reach == EMU_REACH_PARAM ? EMU_GRANULE_PARAM
                                                       : 0;
    const enum clab_space_id counted = reach == EMU_REACH_CONST   ? CLAB_SPACE_CONST
                                       : reach == EMU_REACH_PARAM ? CLAB_SPACE_PARAM
                                                                  : CLAB_SPACE_GLOBAL;
    const uint16_t foreign = (EMU_GRANULE_CONST | EMU_GRANULE_PARAM) & ~wanted;
    const uint64_t origin = a[first] - steps[first];
    uint64_t apart = 0;
    uint16_t flags;

    out->shared = false;
    if (a[last] - a[first] == steps[last] - steps[first]) {
        EMU_EACH_LANE(i)
        {
            const uint64_t difference = a[i] ^ (origin + steps[i]);
            apart |= full ? difference : difference & (uint64_t)(int64_t)(int32_t)on[i];
        }
        const uint64_t start = origin + op->imm;
        if (!apart && !(start & (bytes - 1)) &&
            emu_access_near(space, start + steps[first], (unsigned)(steps[last] - steps[first]) + bytes,
                            mode != EMU_LOAD, &flags) &&
            (flags & wanted) == wanted && !(flags & foreign)) {
            emu_access_count(warp, counted, size, mode, lanes);
            out->at = (unsigned char *)(uintptr_t)start;
            emu_access_seen(warp, op, counted, NULL, size, mode, EMU_SHAPE_ROW, out);
            return EMU_LANES_ROW;
        }
        if (!apart && !wanted && !(start & (bytes - 1)) &&
            emu_space_is_host_row(space, start + steps[first], steps[last] - steps[first] + bytes,
                                  mode != EMU_LOAD)) {
            emu_access_count(warp, CLAB_SPACE_GLOBAL, size, mode, lanes);
            out->at = (unsigned char *)(uintptr_t)start;
            emu_access_seen(warp, op, CLAB_SPACE_GLOBAL, NULL, size, mode, EMU_SHAPE_ROW, out);
            return EMU_LANES_ROW;
        }
    } else if (a[last] == a[first]) {
        EMU_EACH_LANE(i)
        {
            const uint64_t difference = a[i] ^ a[first];
            apart |= full ? difference : difference & (uint64_t)(int64_t)(int32_t)on[i];
        }
        const uint64_t start = a[first] + op->imm;
        if (!apart && !(start & (bytes - 1)) &&
            emu_access_near(space, start, bytes, mode != EMU_LOAD, &flags) && (flags & wanted) == wanted &&
            !(flags & foreign)) {
            emu_access_count(warp, counted, size, mode, lanes);
            out->at = (unsigned char *)(uintptr_t)start;
            emu_access_seen(warp, op, counted, NULL, size, mode, EMU_SHAPE_ONE, out);
            return EMU_LANES_ONE;
        }
    }
    /* A pointer per lane: first the granules, then what the map says of them. Off lanes need no bytes. */
    const uint64_t base = space->base;
    const int64_t granules = (int64_t)space->granules;
    const uint16_t *map = space->map;
    uint32_t index[EMU_LANES], end[EMU_LANES];
    uint64_t low = 0;
    EMU_EACH_LANE(i)
    {
        const uint64_t address = a[i] + op->imm;
        const int64_t granule = (int64_t)((address - base) >> EMU_GRANULE_SHIFT);
        const uint64_t keep = full ? UINT64_MAX : (uint64_t)(int64_t)(int32_t)on[i];
        out->lane[i] = (unsigned char *)(uintptr_t)address;
        index[i] = (uint32_t)(granule < granules ? granule : granules);
        end[i] = ((uint32_t)(address & (EMU_GRANULE_BYTES - 1)) + bytes) & (uint32_t)keep;
        low |= address & keep;
    }
    int32_t room = 0;
    uint32_t any = 0, every = wanted;
    EMU_UNROLL
    for (unsigned i = 0; i < EMU_LANES; i++) {
        const uint32_t entry = map[index[i]], keep = full ? EMU_ALL : on[i];
        room |= (int32_t)(entry & EMU_GRANULE_VALID) - (int32_t)end[i];
        any |= entry & keep;
        every &= entry | ~keep;
    }
    const uint32_t refused = foreign | (mode != EMU_LOAD ? EMU_GRANULE_READ_ONLY : 0u);
    if (__builtin_expect(room >= 0 && !(low & (bytes - 1)) && !(any & refused) && (every & wanted) == wanted,
                         1)) {
        emu_access_count(warp, counted, size, mode, lanes);
        emu_access_seen(warp, op, counted, NULL, size, mode, EMU_SHAPE_EACH, out);
        return EMU_LANES_EACH;
    }
    return emu_access_each(warp, op, reach, a, true, op->imm, size, mode, out);
}

/* Shared memory by 32-bit window addresses `a`. */
static inline enum emu_lanes_kind emu_access_window(struct emu_warp *warp, const struct emu_op *op,
                                                    enum emu_reach reach, const uint32_t *a, uint32_t offset,
                                                    const unsigned size, const enum emu_access_mode mode,
                                                    const bool full, struct emu_lanes *out)
{
    const uint32_t *on = warp->lane_mask;
    const unsigned bytes = 1u << size;
    const unsigned first = full ? 0 : (unsigned)__builtin_ctz(warp->exec);
    const struct emu_cta *cta = warp->cta;
    enum clab_space_id counted = CLAB_SPACE_SHARED;
    const uint32_t rank = (a[first] + offset) >> EMU_RANK_SHIFT;
    if (rank != cta->rank) {
        counted = CLAB_SPACE_REMOTE;
        cta = reach == EMU_REACH_SHARED_CTA ? NULL : emu_cta_peer(cta, rank);
    }
    if (__builtin_expect(cta != NULL, 1)) {
        const uint32_t delta = offset - (rank << EMU_RANK_SHIFT) - EMU_SHARED_FIRST;
        const uint32_t start = a[first] + delta;
        uint32_t top = 0, low = 0, apart = 0, differ = 0;
        /* A row first: one comparison for each lane, and the ends tell the rest. */
        const unsigned last = full ? EMU_LANES - 1 : 31 - (unsigned)__builtin_clz(warp->exec);
        const uint64_t lanes = full ? EMU_LANES : (uint64_t)__builtin_popcount(warp->exec);
        if (a[last] - a[first] == (last - first) * bytes) {
            const uint32_t origin = a[first] - first * bytes;
            EMU_EACH_LANE(i)
            {
                const uint32_t difference = a[i] ^ (origin + (uint32_t)i * bytes);
                apart |= full ? difference : difference & on[i];
            }
            if (!apart && !(start & (bytes - 1)) &&
                start + (uint64_t)(last - first + 1) * bytes <= cta->shared_bytes) {
                out->shared = true;
                emu_access_count(warp, counted, size, mode, lanes);
                out->at = (unsigned char *)((uintptr_t)cta->shared + start - (uintptr_t)first * bytes);
                emu_access_seen(warp, op, counted, cta, size, mode, EMU_SHAPE_ROW, out);
                return EMU_LANES_ROW;
            }
        }
        EMU_EACH_LANE(i)
        {
            const uint32_t at = full ? a[i] + delta : (a[i] + delta) & on[i];
            top = top > at ? top : at;
            low |= at;
            differ |= full ? at ^ start : at ^ (start & on[i]);
        }
        if (__builtin_expect((uint64_t)top + bytes <= cta->shared_bytes && !(low & (bytes - 1)), 1)) {
            out->shared = true;
            emu_access_count(warp, counted, size, mode, lanes);
            if (!differ) {
                out->at = cta->shared + start;
                emu_access_seen(warp, op, counted, cta, size, mode, EMU_SHAPE_ONE, out);
                return EMU_LANES_ONE;
            }
            unsigned char *shared = cta->shared;
            EMU_EACH_LANE(i)
            {
                out->lane[i] = shared + (uint32_t)(a[i] + delta);
            }
            emu_access_seen(warp, op, counted, cta, size, mode, EMU_SHAPE_EACH, out);
            return EMU_LANES_EACH;
        }
    }
    return emu_access_each(warp, op, reach, a, false, offset, size, mode, out);
}

static inline enum emu_lanes_kind emu_access_shared(struct emu_warp *warp, const struct emu_op *op,
                                                    enum emu_reach reach, const unsigned size,
                                                    const enum emu_access_mode mode, const bool full,
                                                    struct emu_lanes *out)
{
    return emu_access_window(warp, op, reach, EMU_ROW(uint32_t, warp, op->a), (uint32_t)op->imm, size, mode,
                             full, out);
}

/* Local memory: offsets into the executing thread's own window. */
static inline enum emu_lanes_kind emu_access_local(struct emu_warp *warp, const struct emu_op *op,
                                                   const uint64_t *a, uint64_t offset, const unsigned size,
                                                   const enum emu_access_mode mode, const bool full,
                                                   struct emu_lanes *out)
{
    const uint32_t *on = warp->lane_mask;
    const unsigned bytes = 1u << size;
    const uint64_t room = warp->cta->local_bytes;
    unsigned char *memory = emu_local(warp, 0);
    uint32_t bad = room < bytes;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        const uint64_t at = a[i] + offset;
        const uint32_t wrong = (uint32_t)(at > room - bytes) | (uint32_t)(at & (bytes - 1));
        bad |= full ? wrong : wrong & on[i];
        out->lane[i] = (unsigned char *)((uintptr_t)memory + (uintptr_t)i * (uintptr_t)room + (uintptr_t)at);
    }
    if (__builtin_expect(!bad, 1)) {
        emu_access_count(warp, CLAB_SPACE_LOCAL, size, mode,
                         full ? EMU_LANES : (uint64_t)__builtin_popcount(warp->exec));
        emu_access_seen(warp, op, CLAB_SPACE_LOCAL, NULL, size, mode, EMU_SHAPE_EACH, out);
        return EMU_LANES_EACH;
    }
    return emu_access_each(warp, op, EMU_REACH_LOCAL, a, true, offset, size, mode, out);
}

/* Generic addresses: the space of the first lane is tried for all. */
static inline enum emu_lanes_kind emu_access_generic(struct emu_warp *warp, const struct emu_op *op,
                                                     const unsigned size, const enum emu_access_mode mode,
                                                     const bool full, struct emu_lanes *out)
{
    const struct emu_space *space = emu_warp_space(warp);
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    const uint32_t *on = warp->lane_mask;
    const unsigned first = full ? 0 : (unsigned)__builtin_ctz(warp->exec);
    const uint64_t start = a[first] + op->imm;
    if (start - space->shared_window >= 2 * EMU_WINDOW_BYTES) {
        return emu_access_device(warp, op, EMU_REACH_GENERIC, size, mode, full, out);
    }
    const bool shared = start - space->shared_window < EMU_WINDOW_BYTES;
    const uint64_t window = shared ? space->shared_window : space->local_window;
    uint64_t offsets[EMU_LANES], high = 0;
    EMU_EACH_LANE(i)
    {
        const uint64_t at = a[i] + op->imm - window;
        offsets[i] = at;
        high |= full ? at : at & (uint64_t)(int64_t)(int32_t)on[i];
    }
    if (!(high >> 32)) {
        if (shared) {
            uint32_t low[EMU_LANES];
            EMU_EACH_LANE(i)
            {
                low[i] = (uint32_t)offsets[i];
            }
            return emu_access_window(warp, op, EMU_REACH_SHARED_CLUSTER, low, 0, size, mode, full, out);
        }
        if (mode != EMU_ATOMIC) {
            return emu_access_local(warp, op, offsets, 0, size, mode, full, out);
        }
    }
    return emu_access_each(warp, op, EMU_REACH_GENERIC, a, true, op->imm, size, mode, out);
}

#endif
