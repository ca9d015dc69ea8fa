/* The shadow of shared memory: for every 4 bytes the last write and what has read them since. Finer accesses
   split a cell into bytes; several readers without an order between them go to a list. After FastTrack
   (Flanagan and Freund, 2009): a read that is ordered after the remembered one replaces it, since whatever
   must come after both only needs to come after the later.

   An epoch is time << 32 | agent << 20 | lane << 15 | site << 1 | several, 0 for never. */
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "check/state.h"
#include "emu/space.h"

#define EPOCH_TAG \
    UINT64_C(0xffffffff00000000) /* the low half is an index: a list of readers, or a split cell */
#define READERS     30u
#define SEVERAL     UINT64_C(1)
#define LANE_SHIFT  15
#define AGENT_SHIFT 20

struct readers {
    uint32_t n, next_free;
    uint64_t e[READERS];
};
struct split {
    uint64_t w[4], r[4];
    uint32_t next_free;
};

void check_shared_init(struct check_cta *cta)
{
    cta->n_cells = (cta->cta->room_bytes + 15) / 16 * 4;
    if (cta->n_cells > cta->cells_capacity) {
        free(cta->cell_w);
        cta->cell_w = NULL;
        cta->cell_w = check_alloc(2 * (size_t)cta->n_cells * sizeof *cta->cell_w);
        cta->cell_r = cta->cell_w + cta->n_cells;
        cta->cells_capacity = cta->n_cells;
    } else if (cta->cells_used) {
        memset(cta->cell_w, 0, cta->cells_used * sizeof *cta->cell_w);
        memset(cta->cell_r, 0, cta->cells_used * sizeof *cta->cell_r);
    }
    cta->cells_used = 0;
}

/* Cells below `end` may be used: they are made fresh for the CTA that is next here. */
static inline void use(struct check_cta *cta, uint32_t end)
{
    cta->cells_used = end > cta->cells_used ? end : cta->cells_used;
}

static inline uint64_t epoch_of(const struct actor *a)
{
    return (uint64_t)a->time << 32 | (uint64_t)a->agent << AGENT_SHIFT | (uint64_t)a->site << 1;
}

static struct earlier earlier_of(const struct actor *a, uint64_t epoch, bool write)
{
    return (struct earlier){.cluster = a->cl->index,
                            .agent = (uint32_t)(epoch >> AGENT_SHIFT) & 0xfff,
                            .time = (uint32_t)(epoch >> 32),
                            .lane = (uint32_t)(epoch >> LANE_SHIFT) & 31,
                            .site = (uint32_t)(epoch >> 1) & 0x3fff,
                            .several = epoch & SEVERAL,
                            .write = write};
}

/* One word or byte being accessed. */
struct place {
    struct check_cta *owner;
    uint32_t offset, bytes; /* of the whole access, for reports */
    uint32_t at;            /* of this word */
    unsigned lane;
};

static void conflict(const struct actor *a, const struct place *p, const struct earlier *earlier)
{
    const bool remote = p->owner != a->warp->cta;
    check_race(a, p->lane, earlier, remote ? CLAB_SPACE_REMOTE : CLAB_SPACE_SHARED, p->owner, p->offset,
               p->bytes, p->owner->cta->shared + (p->offset - EMU_SHARED_FIRST));
}

static __attribute__((noinline)) void against_slow(const struct actor *a, const struct place *p,
                                                   uint64_t epoch, bool write, bool fresh)
{
    struct earlier earlier = earlier_of(a, epoch, write);
    earlier.fresh = fresh;
    if (!check_ordered(a, p->lane, &earlier) && !check_morally_strong(a, &earlier)) {
        conflict(a, p, &earlier);
    }
}

/* What one look shows to be no conflict: nearly everything. */
static inline void against(const struct actor *a, const struct place *p, uint64_t epoch, bool write,
                           bool fresh)
{
    const uint32_t agent = (uint32_t)(epoch >> AGENT_SHIFT) & 0xfff, time = (uint32_t)(epoch >> 32);
    if (agent < CHECK_WARP_AGENTS && a->known && !a->async_proxy) {
        const bool same_cta = agent >> 5 == a->warp->self.agent >> 5;
        if (time <= a->known->cluster_time || (same_cta && time <= a->known->cta_time)) {
            return;
        }
        const struct site *site = &a->check->sites.list[(uint32_t)(epoch >> 1) & 0x3fff];
        /* Any scope includes the CTA; volatile data is race.c's to judge. */
        if (same_cta && a->strong && site->strong && !site->is_volatile &&
            site_same_size(site, &a->check->sites.list[a->site])) {
            return;
        }
    }
    against_slow(a, p, epoch, write, fresh);
}

/* --- lists of readers */

static struct readers *readers_take(struct check_cluster *cl, uint32_t *out_index)
{
    if (cl->free_readers) {
        *out_index = cl->free_readers - 1;
        struct readers *r = &cl->readers[*out_index];
        cl->free_readers = r->next_free;
        r->n = 0;
        return r;
    }
    if (cl->n_readers == cl->readers_capacity) {
        cl->readers_capacity = cl->readers_capacity ? 2 * cl->readers_capacity : 64;
        cl->readers = check_grow(cl->readers, cl->readers_capacity * sizeof *cl->readers);
    }
    *out_index = cl->n_readers++;
    cl->readers[*out_index].n = 0;
    return &cl->readers[*out_index];
}

static void readers_give(struct check_cluster *cl, uint64_t r)
{
    const uint32_t index = (uint32_t)r;
    cl->readers[index].next_free = cl->free_readers;
    cl->free_readers = index + 1;
}

static bool same_thread(const struct actor *a, unsigned lane, uint64_t epoch)
{
    return !(epoch & SEVERAL) && ((uint32_t)(epoch >> AGENT_SHIFT) & 0xfff) == a->agent &&
           ((uint32_t)(epoch >> LANE_SHIFT) & 31) == lane;
}

static void read_note(const struct actor *a, const struct place *p, uint64_t *r)
{
    struct check_cluster *cl = a->cl;
    const uint64_t epoch = epoch_of(a) | (uint64_t)p->lane << LANE_SHIFT;
    if ((*r & EPOCH_TAG) == EPOCH_TAG) {
        struct readers *list = &cl->readers[(uint32_t)*r];
        uint32_t kept = 0;
        uint64_t mine = epoch;
        for (uint32_t i = 0; i < list->n; i++) {
            const struct earlier earlier = earlier_of(a, list->e[i], false);
            if (check_ordered(a, p->lane, &earlier)) {
                continue;
            }
            if (earlier.agent == a->agent && earlier.site == a->site) {
                mine |= SEVERAL;
                continue;
            }
            list->e[kept++] = list->e[i];
        }
        list->n = kept;
        if (kept == 0) {
            readers_give(cl, *r);
            *r = mine;
            return;
        }
        /* When it is full one is forgotten: a race with it may then be missed, none is invented. */
        list->e[kept < READERS ? list->n++ : p->at / 4 % READERS] = mine;
        return;
    }
    const struct earlier earlier = earlier_of(a, *r, false);
    if (*r == 0 || same_thread(a, p->lane, *r) || check_ordered(a, p->lane, &earlier)) {
        *r = epoch;
    } else if (earlier.agent == a->agent && earlier.site == a->site) {
        *r = epoch | SEVERAL; /* lanes of one warp at one instruction; reports name instructions */
    } else {
        uint32_t index;
        struct readers *list = readers_take(cl, &index);
        list->e[0] = *r;
        list->e[1] = epoch;
        list->n = 2;
        *r = EPOCH_TAG | index;
    }
}

static inline bool is_weak_write(const struct actor *a, uint64_t epoch);

static void reads_check(const struct actor *a, const struct place *p, uint64_t *r, bool fresh)
{
    if ((*r & EPOCH_TAG) == EPOCH_TAG) {
        for (uint32_t i = 0; i < a->cl->readers[(uint32_t)*r].n; i++) {
            against(a, p, a->cl->readers[(uint32_t)*r].e[i],
                    is_weak_write(a, a->cl->readers[(uint32_t)*r].e[i]), fresh);
        }
        readers_give(a->cl, *r);
    } else if (*r) {
        against(a, p, *r, is_weak_write(a, *r), fresh);
    }
    *r = 0;
}

/* --- one cell */

static void uninitialized(const struct actor *a, const struct place *p)
{
    struct clab_hazard *h = check_report(a->check, CLAB_HAZARD_UNINITIALIZED, a->site, 0, 0);
    if (!h) {
        return;
    }
    check_party(a->check, &h->parties[0], a->cl->index, a->warp->self.agent, UINT32_C(1) << p->lane, a->site,
                NULL);
    check_place_shared(a->check, h, a->warp->cta, p->owner, p->offset, p->bytes);
    check_say(h->missing, sizeof h->missing,
              "no store, copy or mbarrier.init has written these bytes before");
}

/* A weak write that an atomic covers still has to come before the other atomics, and before reads: it stays
   in the place of the reads. */
static inline bool is_weak_write(const struct actor *a, uint64_t epoch)
{
    if (!epoch || (epoch & EPOCH_TAG) == EPOCH_TAG) {
        return false;
    }
    const struct site *site = &a->check->sites.list[(uint32_t)(epoch >> 1) & 0x3fff];
    return site->store && !site->strong;
}

static inline void touch(const struct actor *a, const struct place *p, uint64_t *w, uint64_t *r, bool loads)
{
    if (loads && *w == 0 && p->at < p->owner->cta->shared_bytes) { /* not of the reserved 1 KiB, which is 0 */
        uninitialized(a, p);
    }
    if (*w) {
        against(a, p, *w, true, false);
    }
    if (a->write) {
        const uint64_t covered = !a->strong ? 0 : is_weak_write(a, *w) ? *w : is_weak_write(a, *r) ? *r : 0;
        if (*r) {
            reads_check(a, p, r, *w == 0);
        }
        *w = epoch_of(a) | (uint64_t)p->lane << LANE_SHIFT;
        *r = covered;
    } else {
        if (is_weak_write(a, *r)) {
            against(a, p, *r, true, false);
        }
        read_note(a, p, r);
    }
}

static struct split *split_of(const struct actor *a, uint64_t *w, uint64_t *r)
{
    struct check_cluster *cl = a->cl;
    if ((*w & EPOCH_TAG) == EPOCH_TAG) {
        return &cl->splits[(uint32_t)*w];
    }
    uint32_t index;
    if (cl->free_splits) {
        index = cl->free_splits - 1;
        cl->free_splits = cl->splits[index].next_free;
    } else {
        if (cl->n_splits == cl->splits_capacity) {
            cl->splits_capacity = cl->splits_capacity ? 2 * cl->splits_capacity : 64;
            cl->splits = check_grow(cl->splits, cl->splits_capacity * sizeof *cl->splits);
        }
        index = cl->n_splits++;
    }
    struct split *s = &cl->splits[index];
    for (unsigned b = 0; b < 4; b++) {
        s->w[b] = *w;
        s->r[b] = *r;
        if (b > 0 && (*r & EPOCH_TAG) == EPOCH_TAG) {
            uint32_t copy;
            struct readers *list = readers_take(cl, &copy);
            *list = cl->readers[(uint32_t)*r];
            s->r[b] = EPOCH_TAG | copy;
        }
    }
    *w = EPOCH_TAG | index;
    *r = 0;
    return s;
}

/* Bytes [first, first + n) of a cell. */
static void bytes_touch(const struct actor *a, struct place *p, uint64_t *w, uint64_t *r, unsigned first,
                        unsigned n, bool loads)
{
    struct split *s = split_of(a, w, r);
    for (unsigned b = first; b < first + n; b++) {
        touch(a, p, &s->w[b], &s->r[b], loads);
    }
    if (n == 4 && a->write) {
        const uint32_t index = (uint32_t)*w;
        *w = s->w[0];
        *r = 0;
        s->next_free = a->cl->free_splits;
        a->cl->free_splits = index + 1;
    }
}

void check_shared_range(const struct actor *a, struct check_cta *owner, unsigned lane, uint32_t offset,
                        uint32_t bytes)
{
    struct place p = {.owner = owner, .offset = offset, .bytes = bytes, .lane = lane};
    const bool loads = !a->write || a->reduces;
    uint32_t at = offset - EMU_SHARED_FIRST;
    const uint32_t end = at + bytes;
    use(owner, (end + 3) / 4 < owner->n_cells ? (end + 3) / 4 : owner->n_cells);
    while (at < end && at / 4 < owner->n_cells) {
        uint64_t *w = &owner->cell_w[at / 4], *r = &owner->cell_r[at / 4];
        const uint32_t next = (at / 4 + 1) * 4 < end ? (at / 4 + 1) * 4 : end;
        p.at = at;
        if (next - at == 4 && (*w & EPOCH_TAG) != EPOCH_TAG) {
            touch(a, &p, w, r, loads);
        } else {
            bytes_touch(a, &p, w, r, at % 4, next - at, loads);
        }
        at = next;
    }
}

void check_shared_mark(struct check_cta *owner, uint32_t offset, uint32_t agent, uint32_t time, unsigned lane,
                       uint32_t site)
{
    const uint32_t first = (offset - EMU_SHARED_FIRST) / 4;
    use(owner, first + 2);
    for (uint32_t i = first; i < first + 2; i++) {
        owner->cell_w[i] = (uint64_t)time << 32 | (uint64_t)agent << AGENT_SHIFT |
                           (uint64_t)lane << LANE_SHIFT | (uint64_t)site << 1;
        owner->cell_r[i] = 0;
    }
}

/* Whole rows of words: nearly everything is ordered by a barrier, which the times tell: the upper halves of
   the epochs, all ones for a tag and 0 for never. Nothing later than `floor` may be there, and something, for
   a load. A row that passes is accessed. */
static bool row_plain(uint64_t *restrict w, uint64_t *restrict r, uint32_t floor, uint64_t epoch, bool write)
{
    uint64_t bad = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        const uint64_t limit = (uint64_t)floor << 32 | UINT32_MAX;
        bad |= w[i] | (limit - w[i]) | r[i] | (limit - r[i]) | (write ? 0 : w[i] - 1);
    }
    if (bad >> 63) {
        return false;
    }
    uint64_t *restrict to = write ? w : r;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        to[i] = epoch | (uint64_t)i << LANE_SHIFT;
    }
    for (unsigned i = 0; write && i < EMU_LANES; i++) {
        r[i] = 0;
    }
    return true;
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) bool row_avx2(uint64_t *restrict w, uint64_t *restrict r,
                                                     uint32_t floor, uint64_t epoch, bool write)
{
    enum { N = EMU_LANES / 4 };
    __m256i *wide_w = (__m256i *)(void *)w, *wide_r = (__m256i *)(void *)r;
    const __m256i limit = _mm256_set1_epi64x((long long)((uint64_t)floor << 32 | UINT32_MAX));
    __m256i latest = limit, least = _mm256_set1_epi64x(-1);
    for (unsigned i = 0; i < N; i++) {
        const __m256i x = _mm256_loadu_si256(&wide_w[i]);
        latest = _mm256_max_epu32(_mm256_max_epu32(latest, x), _mm256_loadu_si256(&wide_r[i]));
        least = _mm256_min_epu32(least, x);
    }
    /* The lower halves of `limit` are the greatest there are: they never differ. */
    const __m256i later = _mm256_xor_si256(latest, limit);
    const __m256i never = _mm256_cmpeq_epi32(least, _mm256_setzero_si256());
    if (!_mm256_testz_si256(later, later) ||
        (!write && !_mm256_testz_si256(never, _mm256_set1_epi64x((long long)EPOCH_TAG)))) {
        return false;
    }
    __m256i *to = write ? wide_w : wide_r;
    __m256i now = _mm256_add_epi64(_mm256_set1_epi64x((long long)epoch),
                                   _mm256_slli_epi64(_mm256_set_epi64x(3, 2, 1, 0), LANE_SHIFT));
    for (unsigned i = 0; i < N; i++) {
        _mm256_storeu_si256(&to[i], now);
        now = _mm256_add_epi64(now, _mm256_set1_epi64x(4ll << LANE_SHIFT));
    }
    for (unsigned i = 0; write && i < N; i++) {
        _mm256_storeu_si256(&wide_r[i], _mm256_setzero_si256());
    }
    return true;
}

static __attribute__((target("avx512f"))) bool row_avx512(uint64_t *restrict w, uint64_t *restrict r,
                                                          uint32_t floor, uint64_t epoch, bool write)
{
    enum { N = EMU_LANES / 8 };
    const __m512i limit = _mm512_set1_epi64((long long)((uint64_t)floor << 32 | UINT32_MAX));
    __m512i latest = limit, least = _mm512_set1_epi64(-1);
    for (unsigned i = 0; i < N; i++) {
        const __m512i x = _mm512_loadu_si512(w + (size_t)8 * i);
        latest = _mm512_max_epu64(_mm512_max_epu64(latest, x), _mm512_loadu_si512(r + (size_t)8 * i));
        least = _mm512_min_epu64(least, x);
    }
    if (_mm512_cmpneq_epu64_mask(latest, limit) || (!write && _mm512_testn_epi64_mask(least, least))) {
        return false;
    }
    uint64_t *to = write ? w : r;
    __m512i now = _mm512_add_epi64(_mm512_set1_epi64((long long)epoch),
                                   _mm512_slli_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), LANE_SHIFT));
    for (unsigned i = 0; i < N; i++) {
        _mm512_storeu_si512(to + (size_t)8 * i, now);
        now = _mm512_add_epi64(now, _mm512_set1_epi64(8ll << LANE_SHIFT));
    }
    for (unsigned i = 0; write && i < N; i++) {
        _mm512_storeu_si512(r + (size_t)8 * i, _mm512_setzero_si512());
    }
    return true;
}
#endif

check_row_access *check_shared_row(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? row_avx512
           : __builtin_cpu_supports("avx2")  ? row_avx2
                                             : row_plain;
#else
    return row_plain;
#endif
}

bool check_shared_quick(const struct check *check, struct check_warp *warp, const struct emu_access *access,
                        uint32_t time, uint32_t site)
{
    struct check_cta *cta = warp->cta;
    const struct known *known = &warp->groups[0].mem;
    /* In a cluster the CTA's own time says nothing of what others wrote here. */
    const uint32_t floor = cta->cluster->size == 1 && known->cta_time > known->cluster_time
                               ? known->cta_time
                               : known->cluster_time;
    const uint64_t epoch =
        (uint64_t)time << 32 | (uint64_t)warp->self.agent << AGENT_SHIFT | (uint64_t)site << 1;
    const uintptr_t at = (uintptr_t)access->at - (uintptr_t)cta->cta->shared;
    uint64_t *w = &cta->cell_w[at / 4], *r = &cta->cell_r[at / 4];
    const bool write = access->kind == EMU_ACCESS_STORE;
    if (at & 3) {
        return false;
    }
    use(cta, (uint32_t)(at / 4) + EMU_LANES);
    return check->shared_row(w, r, floor, epoch, write);
}

/* A word of each lane, in few steps where nothing is to be said. */
static void lane_words(const struct actor *a, struct check_cta *owner, const struct emu_access *access)
{
    const uintptr_t base = (uintptr_t)owner->cta->shared;
    const bool loads = !a->write || a->reduces;
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint32_t at = (uint32_t)((uintptr_t)emu_access_host(access, lane) - base);
        if (at / 4 >= owner->n_cells) {
            continue;
        }
        uint64_t *w = &owner->cell_w[at / 4], *r = &owner->cell_r[at / 4];
        if ((*w & EPOCH_TAG) == EPOCH_TAG) {
            check_shared_range(a, owner, lane, at + EMU_SHARED_FIRST, 4);
            continue;
        }
        const struct place p = {
            .owner = owner, .offset = at + EMU_SHARED_FIRST, .bytes = 4, .at = at, .lane = lane};
        use(owner, at / 4 + 1);
        touch(a, &p, w, r, loads);
    }
}

void check_shared(const struct actor *a, struct check_cta *owner, const struct emu_access *access)
{
    if (access->bytes == 4) { /* which is aligned, or the access would have faulted */
        lane_words(a, owner, access);
        return;
    }
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint32_t offset =
            (uint32_t)((uintptr_t)emu_access_host(access, lane) - (uintptr_t)owner->cta->shared) +
            EMU_SHARED_FIRST;
        check_shared_range(a, owner, lane, offset, access->bytes);
    }
}
