/* The mbarrier object's state machine (mbarrier.h). PTX ISA 9.0, "mbarrier": init, inval, arrive-on,
   arrive_drop, expect-tx, complete-tx, phase completion, test. Which objects are live is kept beside shared
   memory, so that an operation on memory that mbarrier.init has not prepared is reported and not executed.

   Measured on an H200 (tests/emu/memory/mbarrier_words.ptx): the state that an arrival returns is the object
   before it, before its expect-tx too, with the instruction's count or byte operand for a low word;
   complete_tx before expect_tx is fine; arrive_drop lowers the next phase's count. Leaves out: detecting a
   wait for a phase older than the preceding one (the state holds one bit of phase), and that ordinary loads
   of a live object read zero. */
#include "emu/mbarrier.h"

#include <stdlib.h>

#include "emu/cta_memory.h"
#include "emu/hook.h"

#define COUNT_ONE  (UINT64_C(1) << 20)
#define COUNT_BITS (COUNT_ONE - 1)
#define TX_BITS    ((UINT64_C(1) << 21) - 1)
#define LOW_WORD   UINT64_C(0xffffffff)

static const char not_live[] =
    "there is no mbarrier at this address: it was not initialised with mbarrier.init, or was "
    "invalidated";
static const char out_of_memory[] = "the emulator is out of memory";

struct object {
    uint32_t expected, pending;
    int32_t tx; /* bytes completed minus expected */
    unsigned parity;
};

static uint32_t offset_of(uint32_t address)
{
    return (address & ((UINT32_C(1) << EMU_RANK_SHIFT) - 1)) - EMU_SHARED_FIRST;
}

static uint64_t *word_of(const struct emu_cta *cta, uint32_t address)
{
    return (uint64_t *)(void *)(cta->shared + offset_of(address));
}

static struct object unpack(uint64_t word)
{
    const int32_t tx = (int32_t)((word >> 21) & TX_BITS);
    return (struct object){.expected = (uint32_t)((COUNT_ONE - ((word >> 1) & COUNT_BITS)) & COUNT_BITS),
                           .pending = (uint32_t)((COUNT_ONE - ((word >> 43) & COUNT_BITS)) & COUNT_BITS),
                           .tx = tx & (1 << 20) ? tx - (1 << 21) : tx,
                           .parity = (unsigned)(word >> 63)};
}

static uint64_t pack(const struct object *object)
{
    return (uint64_t)object->parity << 63 | ((COUNT_ONE - object->pending) & COUNT_BITS) << 43 |
           ((uint64_t)(uint32_t)object->tx & TX_BITS) << 21 |
           ((COUNT_ONE - object->expected) & COUNT_BITS) << 1;
}

struct emu_cta_memory *emu_cta_memory_get(struct emu_cta *cta)
{
    if (!cta->memory) {
        cta->memory = calloc(1, sizeof(struct emu_cta_memory));
    }
    return cta->memory;
}

/* The live bits' word and bit of an address. */
static uint64_t *live_word(const struct emu_cta *cta, uint32_t address, uint64_t *out_bit)
{
    const struct emu_cta_memory *memory = cta->memory;
    const uint32_t index = offset_of(address) / 8;
    *out_bit = UINT64_C(1) << (index & 63);
    return memory && memory->live ? &memory->live[index / 64] : NULL;
}

/* requires: the object is live. */
static struct emu_mbarrier_bytes *bytes_of(const struct emu_cta *cta, uint32_t address)
{
    const struct emu_cta_memory *memory = cta->memory;
    return &memory->bytes[offset_of(address) / 8];
}

bool emu_mbarrier_is_live(const struct emu_cta *cta, uint32_t address)
{
    uint64_t bit;
    const uint64_t *live = live_word(cta, address, &bit);
    return live && (*live & bit);
}

const char *emu_mbarrier_init(struct emu_cta *cta, uint32_t address, uint32_t count)
{
    if (count < 1 || count > EMU_MBARRIER_MAX) {
        return "the count of mbarrier.init is not in 1 .. 2^20-1";
    }
    struct emu_cta_memory *memory = emu_cta_memory_get(cta);
    if (memory && !memory->live) {
        memory->live = calloc(cta->shared_bytes / 512 + 1, sizeof *memory->live);
        memory->bytes = calloc(cta->shared_bytes / 8 + 1, sizeof *memory->bytes);
    }
    if (!memory || !memory->live || !memory->bytes) {
        return out_of_memory;
    }
    *bytes_of(cta, address) = (struct emu_mbarrier_bytes){0, 0};
    uint64_t bit;
    uint64_t *live = live_word(cta, address, &bit);
    *live |= bit;
    *word_of(cta, address) = pack(&(struct object){.expected = count, .pending = count});
    return NULL;
}

const char *emu_mbarrier_inval(struct emu_cta *cta, uint32_t address)
{
    uint64_t bit;
    uint64_t *live = live_word(cta, address, &bit);
    if (!live || !(*live & bit)) {
        return not_live;
    }
    *live &= ~bit;
    return NULL;
}

/* Stores the object, and completes its phase when nothing is pending. */
static void settle(struct emu_cta *cta, uint32_t address, struct object *object)
{
    if (object->pending == 0 && object->tx == 0) {
        object->parity ^= 1;
        object->pending = object->expected;
        *bytes_of(cta, address) = (struct emu_mbarrier_bytes){0, 0};
        cta->cluster->thread->traffic.mbarrier_phases++;
        *word_of(cta, address) = pack(object);
        emu_hook_event(cta, NULL, NULL,
                       &(struct emu_event){.kind = EMU_EVENT_MBARRIER_PHASE,
                                           .rank = cta->rank,
                                           .address = offset_of(address) + EMU_SHARED_FIRST,
                                           .value = object->parity});
        const uint32_t key = (cta->rank << EMU_RANK_SHIFT) + EMU_SHARED_FIRST + offset_of(address);
        emu_wake_all(cta->cluster, cta, EMU_WAIT_MBARRIER, key);
    } else {
        *word_of(cta, address) = pack(object);
    }
}

static const char *tx_add(struct object *object, int64_t bytes)
{
    const int64_t tx = object->tx + bytes;
    if (tx > (int64_t)EMU_MBARRIER_MAX || tx < -(int64_t)EMU_MBARRIER_MAX) {
        return "the mbarrier's tx-count leaves its range of 2^20-1 bytes either way";
    }
    object->tx = (int32_t)tx;
    return NULL;
}

const char *emu_mbarrier_arrive(struct emu_cta *cta, uint32_t address,
                                const struct emu_mbarrier_arrival *arrival, uint64_t *out_state)
{
    if (!emu_mbarrier_is_live(cta, address)) {
        return not_live;
    }
    struct object object = unpack(*word_of(cta, address));
    if (arrival->count < 1 || arrival->count > EMU_MBARRIER_MAX) {
        return "the count of an arrival is not in 1 .. 2^20-1";
    }
    if (arrival->count > object.pending) {
        return "more threads arrive at the mbarrier than its phase still expects";
    }
    if (arrival->drop && arrival->count > object.expected) {
        return "arrive_drop takes more from the mbarrier's expected count than there is";
    }
    *out_state = (pack(&object) & ~LOW_WORD) | arrival->operand;
    const char *wrong = tx_add(&object, -(int64_t)arrival->expect);
    if (wrong) {
        return wrong;
    }
    bytes_of(cta, address)->expected += arrival->expect;
    object.pending -= arrival->count;
    object.expected -= arrival->drop ? arrival->count : 0;
    if (arrival->must_not_complete && object.pending == 0 && object.tx == 0) {
        return "an arrival with .noComplete completes the mbarrier's phase";
    }
    settle(cta, address, &object);
    return NULL;
}

const char *emu_mbarrier_expect_tx(struct emu_cta *cta, uint32_t address, uint32_t bytes)
{
    if (!emu_mbarrier_is_live(cta, address)) {
        return not_live;
    }
    struct object object = unpack(*word_of(cta, address));
    const char *wrong = tx_add(&object, -(int64_t)bytes);
    if (!wrong) {
        bytes_of(cta, address)->expected += bytes;
        *word_of(cta, address) = pack(&object);
    }
    return wrong;
}

const char *emu_mbarrier_complete_tx(struct emu_cta *cta, uint32_t address, uint32_t bytes)
{
    if (!emu_mbarrier_is_live(cta, address)) {
        return not_live;
    }
    struct object object = unpack(*word_of(cta, address));
    const char *wrong = tx_add(&object, bytes);
    if (!wrong) {
        bytes_of(cta, address)->arrived += bytes;
        settle(cta, address, &object);
    }
    return wrong;
}

const char *emu_mbarrier_add_pending(struct emu_cta *cta, uint32_t address)
{
    if (!emu_mbarrier_is_live(cta, address)) {
        return not_live;
    }
    struct object object = unpack(*word_of(cta, address));
    if (object.pending == EMU_MBARRIER_MAX) {
        return "the mbarrier's pending count leaves its range of 2^20-1";
    }
    object.pending++;
    *word_of(cta, address) = pack(&object);
    return NULL;
}

const char *emu_mbarrier_test(const struct emu_cta *cta, uint32_t address, unsigned parity, bool *out_done)
{
    if (!emu_mbarrier_is_live(cta, address)) {
        return not_live;
    }
    *out_done = *word_of(cta, address) >> 63 != (parity & 1);
    return NULL;
}

struct emu_mbarrier_view emu_mbarrier_view(const struct emu_cta *cta, uint32_t address)
{
    const struct object object = unpack(*word_of(cta, address));
    const struct emu_mbarrier_bytes bytes =
        emu_mbarrier_is_live(cta, address) ? *bytes_of(cta, address) : (struct emu_mbarrier_bytes){0, 0};
    return (struct emu_mbarrier_view){object.expected, object.pending, -object.tx,
                                      object.parity,   bytes.expected, bytes.arrived};
}
