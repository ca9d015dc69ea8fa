/* Stores that others see late. The memory model lets a strong store wait in its processor while later loads
   go ahead (PTX ISA 9.0, "Memory Consistency Model": only fence.sc orders a store before a later load of
   another place), which is what Dekker's and Peterson's locks break on. Under one seed in four of observed
   launches a store by one lane is held back: its place shows the old value until the same thread does
   anything but load from elsewhere or execute a fence that is not sequentially consistent. One store of a
   cluster at a time is held. */
#include <string.h>

#include "emu/hook.h"
#include "emu/machine.h"

#define MOST_LOADS 3u /* who waits for an answer to the store must not wait for ever */

static void flush(struct emu_held *held)
{
    memcpy(held->at, held->data, held->bytes);
    held->active = false;
    emu_progress(held->warp);
}

static bool overlaps(const struct emu_held *held, const struct emu_access *access)
{
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        const uintptr_t at = (uintptr_t)emu_access_host(access, (unsigned)__builtin_ctz(left));
        if (at < (uintptr_t)held->at + held->bytes && (uintptr_t)held->at < at + access->bytes) {
            return true;
        }
    }
    return false;
}

void emu_held_access(const struct emu_warp *warp, const struct emu_access *access)
{
    struct emu_held *held = &warp->cta->cluster->held;
    if (!warp->cta->run->hooks->one_thread || warp->cta->run->machine->options.seed % 4 != 2) {
        return;
    }
    if (held->active) {
        if (held->warp != warp || !(access->lanes & held->lane) ||
            (access->kind == EMU_ACCESS_LOAD && !overlaps(held, access) && ++held->loads < MOST_LOADS)) {
            return;
        }
        flush(held);
    }
    held->armed = access->kind == EMU_ACCESS_STORE && !(access->lanes & (access->lanes - 1)) &&
                  access->bytes <= sizeof held->data &&
                  (access->space == CLAB_SPACE_GLOBAL || access->space == CLAB_SPACE_SHARED);
    if (held->armed) {
        held->warp = (struct emu_warp *)(uintptr_t)warp;
        held->at =
            (unsigned char *)(uintptr_t)emu_access_host(access, (unsigned)__builtin_ctz(access->lanes));
        held->lane = access->lanes;
        held->bytes = access->bytes;
        memcpy(held->data, held->at, held->bytes);
    }
}

bool emu_held_begin(const struct emu_warp *warp)
{
    struct emu_held *held = &warp->cta->cluster->held;
    unsigned char now[sizeof held->data];
    if (!held->armed || held->warp != warp) {
        return held->active && held->warp == warp;
    }
    memcpy(now, held->at, held->bytes);
    memcpy(held->at, held->data, held->bytes);
    memcpy(held->data, now, held->bytes);
    held->armed = false;
    held->active = true;
    held->loads = 0;
    return true;
}

void emu_held_event(struct emu_cluster *cluster, const struct emu_warp *warp, const struct emu_event *event)
{
    struct emu_held *held = &cluster->held;
    if (event->kind == EMU_EVENT_CLUSTER_START) {
        *held = (struct emu_held){0};
    } else if (held->warp == warp && (event->lanes & held->lane)) {
        held->armed = false;
        if (held->active && (event->kind != EMU_EVENT_FENCE || event->wait)) {
            flush(held);
        }
    }
}
