/* Stores that others see late. The memory model lets a strong store wait in its processor while later loads
   go ahead (PTX ISA 9.0, "Memory Consistency Model": only fence.sc orders a store before a later load of
   another place), which is what Dekker's and Peterson's locks break on. Under one seed in four of observed
   launches a strong store by one lane is held back: its place shows the old value while the same thread does
   nothing but load from elsewhere, store elsewhere, or execute a fence that is not sequentially consistent.
   Strong stores that follow are held behind it, so that they become visible in order. One thread of a cluster
   at a time has stores held. */
#include <string.h>

#include "emu/hook.h"
#include "emu/machine.h"

#define MOST_LOADS 3u /* who waits for an answer to the store must not wait for ever */

static void flush(struct emu_held *held)
{
    for (uint32_t i = 0; i < held->n; i++) {
        memcpy(held->stores[i].at, held->stores[i].data, held->stores[i].bytes);
    }
    emu_progress(held->warp);
    held->n = 0;
}

static bool overlaps(const struct emu_held *held, const struct emu_access *access)
{
    for (uint32_t i = 0; i < held->n; i++) {
        const struct emu_held_store *store = &held->stores[i];
        for (uint32_t left = access->lanes; left; left &= left - 1) {
            const uintptr_t at = (uintptr_t)emu_access_host(access, (unsigned)__builtin_ctz(left));
            if (at < (uintptr_t)store->at + store->bytes && (uintptr_t)store->at < at + access->bytes) {
                return true;
            }
        }
    }
    return false;
}

static bool goes_ahead(struct emu_held *held, const struct emu_access *access)
{
    return !overlaps(held, access) &&
           ((access->kind == EMU_ACCESS_LOAD && ++held->loads < MOST_LOADS) ||
            (access->kind == EMU_ACCESS_STORE && access->lanes == held->lane && held->n < EMU_MOST_HELD));
}

void emu_held_access(const struct emu_warp *warp, const struct emu_access *access)
{
    struct emu_held *held = &warp->cta->cluster->held;
    if (!warp->cta->run->hooks->one_thread || warp->cta->run->machine->options.seed % 4 != 2) {
        return;
    }
    if (held->n && (held->warp != warp || !(access->lanes & held->lane))) {
        return;
    }
    held->armed = false;
    if (held->n && !goes_ahead(held, access)) {
        flush(held);
    }
    if (access->kind == EMU_ACCESS_STORE && !(access->lanes & (access->lanes - 1)) &&
        access->bytes <= sizeof held->stores[0].data &&
        (access->space == CLAB_SPACE_GLOBAL || access->space == CLAB_SPACE_SHARED)) {
        struct emu_held_store *store = &held->stores[held->n];
        held->warp = (struct emu_warp *)(uintptr_t)warp;
        held->lane = access->lanes;
        held->armed = true;
        store->at =
            (unsigned char *)(uintptr_t)emu_access_host(access, (unsigned)__builtin_ctz(access->lanes));
        store->bytes = access->bytes;
        memcpy(store->data, store->at, store->bytes);
    }
}

enum emu_held_turn emu_held_begin(const struct emu_warp *warp)
{
    struct emu_held *held = &warp->cta->cluster->held;
    struct emu_held_store *store = &held->stores[held->n];
    unsigned char now[sizeof store->data];
    if (held->warp != warp || !held->armed) {
        return held->n && held->warp == warp ? EMU_HELD_YIELD : EMU_HELD_NONE;
    }
    memcpy(now, store->at, store->bytes);
    memcpy(store->at, store->data, store->bytes);
    memcpy(store->data, now, store->bytes);
    held->loads = held->n ? held->loads : 0;
    held->armed = false;
    held->n++;
    return EMU_HELD_GO_ON;
}

void emu_held_event(struct emu_cluster *cluster, const struct emu_warp *warp, const struct emu_event *event)
{
    struct emu_held *held = &cluster->held;
    if (event->kind == EMU_EVENT_CLUSTER_START) {
        *held = (struct emu_held){0};
    } else if (held->warp == warp && (event->lanes & held->lane)) {
        held->armed = false;
        if (held->n && (event->kind != EMU_EVENT_FENCE || event->wait)) {
            flush(held);
        }
    }
}
