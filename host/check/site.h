/* Instructions that the checker has met: what it needs to know of each, once. A site is a number from 1; 0 is
 * none. */
#ifndef CLAB_CHECK_SITE_H
#define CLAB_CHECK_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/code.h"

#define SITE_LIMIT 16383u /* they must fit 14 bits; instructions met later share the last number */

struct site {
    const struct emu_code *code;
    uint32_t insn;
    const char *action;
    bool load, store, atomic; /* of memory operations */
    bool strong, acquire, release, is_volatile;
    bool polls; /* a volatile load in a loop that branches on its value */
    bool cp_async;
    bool read_only;                /* a load by a path that need not see what the grid itself has written */
    uint8_t scope;                 /* enum check_scope */
    uint8_t bytes;                 /* of one scalar of a strong operation; 0 unknown */
    bool has_scope;                /* written, not the default */
    bool aligned;                  /* wants the whole warp */
    bool tensor;                   /* reads a tensor map */
    bool map_acquire, map_release; /* fence.proxy.tensormap */
    bool proxy_async, proxy_shared, proxy_global, mbarrier_init, fence_acquire, fence_release;
    bool remote;     /* of shared::cluster */
    bool bulk, read; /* commit and wait of bulk groups; .read */
};

/* Strong operations of one place must be of one size, or they race like weak ones (PTX ISA 9.0, "Morally
   strong operations": they overlap completely). Lenient below 4 bytes: libcu++ makes its small atomics out of
   words. */
static inline bool site_same_size(const struct site *a, const struct site *b)
{
    return a->bytes == b->bytes || a->bytes < 4 || b->bytes < 4;
}

struct sites {
    uint16_t **numbers; /* by code->index, then instruction; NULL until met */
    uint32_t n_codes;
    struct site *list; /* [0] unused */
    uint32_t n, capacity;
    const struct emu_code *last_code;
    uint16_t *last_numbers;
};

uint32_t site_make(struct sites *sites, const struct emu_code *code, uint32_t insn);
void sites_free(struct sites *sites);

/* The number that an instruction has; 0: none yet, or another function's were asked for last. */
static inline uint32_t site_known(const struct sites *sites, const struct emu_code *code, uint32_t insn)
{
    return sites->last_code == code && insn < code->function->n_insns ? sites->last_numbers[insn] : 0;
}

static inline uint32_t site_of(struct sites *sites, const struct emu_code *code, uint32_t insn)
{
    const uint32_t number = site_known(sites, code, insn);
    return number ? number : site_make(sites, code, insn);
}
const struct ptx_insn *site_insn(const struct site *site);

#endif
