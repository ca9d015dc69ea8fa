/* The decoder's service to the emitters (emit.h): rows for registers, constants, scratch and symbol
   addresses, and pushing operations with the instruction's guard. Rules of operand sizes: PTX ISA 9.0, 9.4.1
   "Operand Size Exceeding Instruction-Type Size". Control flow is decode.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/emitting.h"
#include "emu/space.h"

#define ROW_ALIGN  64u
#define CONST_ROWS 512
/* The register file of one warp must stay far below the 32-bit offsets of an operation. */
#define FILE_LIMIT (UINT32_C(1) << 30)

unsigned emu_lane_bytes(enum ptx_type type)
{
    const unsigned bits = ptx_types[type].bits;
    unsigned bytes = 1;
    while (bytes * 8 < bits && bytes < 16) {
        bytes *= 2;
    }
    return type == PTX_PRED ? 4 : bytes;
}

enum ptx_type emu_bits_type(unsigned bytes)
{
    switch (bytes) {
    case 1:
        return PTX_B8;
    case 2:
        return PTX_B16;
    case 4:
        return PTX_B32;
    case 8:
        return PTX_B64;
    default:
        return PTX_B128;
    }
}

static unsigned log2_bytes(enum ptx_type type)
{
    const unsigned bytes = emu_lane_bytes(type);
    return (unsigned)__builtin_ctz(bytes);
}

clab_status emu_emit_error(struct emu_emit *emit, clab_status status, const char *format, ...)
{
    if (emit->status != CLAB_OK) {
        return emit->status;
    }
    emit->status = status;
    va_list args;
    va_start(args, format);
    clab_error_vset(emit->error, status, format, args);
    va_end(args);
    if (emit->error) {
        snprintf(emit->error->kernel, sizeof emit->error->kernel, "%s", emit->function->name);
        if (emit->insn) {
            clab_error_at(emit->error, emit->ptx->name, emit->insn->line, emit->insn->column);
            ptx_insn_text(emit->ptx, emit->insn, emit->error->instruction, sizeof emit->error->instruction);
        }
    }
    return status;
}

clab_status emu_unsupported(struct emu_emit *emit, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return emu_emit_error(emit, CLAB_UNSUPPORTED, "not supported by the emulator: %s", what);
}

/* --- the register file's layout */

static uint32_t file_take(struct emu_emit *emit, unsigned bytes, unsigned align)
{
    const uint32_t offset = (emit->file_bytes + align - 1) & ~(uint32_t)(align - 1);
    if (offset > FILE_LIMIT) {
        emu_emit_error(emit, CLAB_UNSUPPORTED,
                       "not supported by the emulator: function '%s' needs more than %u MiB of "
                       "registers per warp",
                       emit->function->name, FILE_LIMIT >> 20);
        return 0;
    }
    emit->file_bytes = offset + bytes;
    return offset;
}

static uint32_t row_take(struct emu_emit *emit, unsigned lane_bytes)
{
    return file_take(emit, lane_bytes * EMU_LANES, ROW_ALIGN);
}

/* Words come in lines of their own, so that rows do not leave gaps between them. */
static uint32_t word_take(struct emu_emit *emit)
{
    if (emit->next_word == emit->end_word) {
        emit->next_word = file_take(emit, ROW_ALIGN, ROW_ALIGN);
        emit->end_word = emit->next_word + ROW_ALIGN;
    }
    emit->next_word += 4;
    return emit->next_word - 4;
}

uint64_t emu_slot_take(uint64_t offset, const struct ptx_var *var, struct emu_slot *out_slot)
{
    /* A parameter declared as .reg has no size of its own in memory terms; it gets its type's. */
    const uint64_t size = var->bytes ? var->bytes : emu_lane_bytes(var->type);
    uint64_t align = var->align_bytes ? var->align_bytes : emu_lane_bytes(var->type);
    align = align > 16 ? 16 : align;
    offset = (offset + align - 1) / align * align;
    out_slot->offset = (uint32_t)offset;
    out_slot->bytes = (uint32_t)size;
    return offset + size;
}

static bool place_locals(struct emu_emit *emit)
{
    const struct ptx_function *function = emit->function;
    const uint32_t n = function->n_vars + function->n_params + function->n_returns;
    emit->var_offsets = clab_arena_array(&emit->scratch, function->n_vars + 1, sizeof *emit->var_offsets);
    emit->code->params =
        clab_arena_array(&emit->image->arena, function->n_params + 1, sizeof *emit->code->params);
    emit->code->returns =
        clab_arena_array(&emit->image->arena, function->n_returns + 1, sizeof *emit->code->returns);
    if (!emit->var_offsets || !emit->code->params || !emit->code->returns) {
        return false;
    }
    uint64_t bytes = 0, block = 0; /* the latter: an entry's parameter block */
    /* Return values first, then parameters: their places follow from the signature alone, so that a caller
       knows them without knowing which function it calls (emu_signature_place). */
    for (uint32_t i = 0; i < n; i++) {
        const struct ptx_var *var;
        struct emu_slot *slot = NULL;
        if (i < function->n_returns) {
            var = function->returns[i];
            slot = &emit->code->returns[i];
        } else if (i < function->n_returns + function->n_params) {
            var = function->params[i - function->n_returns];
            slot = &emit->code->params[i - function->n_returns];
            if (function->entry) {
                const uint64_t align = var->align_bytes ? var->align_bytes : emu_lane_bytes(var->type);
                block = (block + align - 1) / align * align;
                *slot = (struct emu_slot){.offset = (uint32_t)block, .bytes = (uint32_t)var->bytes};
                block += var->bytes;
                continue;
            }
        } else {
            var = function->vars[i - function->n_returns - function->n_params];
            if (var->space != PTX_SPACE_LOCAL && var->space != PTX_SPACE_PARAM) {
                continue;
            }
        }
        struct emu_slot place;
        bytes = emu_slot_take(bytes, var, &place);
        if (slot) {
            *slot = place;
        } else {
            emit->var_offsets[i - function->n_returns - function->n_params] = place.offset;
        }
        if (bytes > UINT32_C(1) << 24) {
            emu_emit_error(
                emit, CLAB_UNSUPPORTED,
                "not supported by the emulator: function '%s' has more than 16 MiB of local variables",
                function->name);
            return true;
        }
    }
    emit->local_bytes = (uint32_t)((bytes + 15) & ~UINT64_C(15));
    return true;
}

static uint32_t register_take(struct emu_emit *emit, uint32_t reg)
{
    const enum ptx_type type = emit->function->regs[reg].type;
    return type == PTX_PRED ? word_take(emit) : row_take(emit, emu_lane_bytes(type));
}

/* Registers that do not live at the same time share a row, so that a register file follows what is live, not
   what is declared: code in single-assignment form has a register per instruction. Lanes may be anywhere in
   the function, but what a lane leaves in its part of a row is its own business. Parameters and return values
   in registers have rows of their own: calls read and write them, not instructions. */
static bool place_registers(struct emu_emit *emit)
{
    const struct ptx_function *function = emit->function;
    const struct ptx_span *spans = emit->live.spans;
    const uint32_t n = function->n_regs, points = 2 * function->n_insns;
    enum { CLASSES = 6, WORDS = 5 }; /* by log2 of the lane bytes; WORDS: predicates */
    struct clab_arena *scratch = &emit->scratch;
    uint32_t *born = clab_arena_array(scratch, points + 1, sizeof *born); /* lists: register + 1 */
    uint32_t *dead = clab_arena_array(scratch, points + 1, sizeof *dead);
    uint32_t *next_born = clab_arena_array(scratch, n + 1, sizeof *next_born);
    uint32_t *next_dead = clab_arena_array(scratch, n + 1, sizeof *next_dead);
    uint32_t idle[CLASSES] = {0}; /* registers whose rows are free, as lists through next_dead */
    if (!born || !dead || !next_born || !next_dead) {
        return false;
    }
    for (uint32_t i = 0; i < function->n_params + function->n_returns; i++) {
        const struct ptx_var *var =
            i < function->n_params ? function->params[i] : function->returns[i - function->n_params];
        if (var->space == PTX_SPACE_REG) {
            for (uint32_t k = 0; k < var->vector; k++) {
                emit->reg_rows[var->reg + k] = register_take(emit, var->reg + k) + 1;
            }
        }
    }
    for (uint32_t r = n; r-- > 0;) {
        if (spans[r].first <= spans[r].last && !emit->reg_rows[r]) {
            next_born[r] = born[spans[r].first];
            born[spans[r].first] = r + 1;
        } else if (emit->reg_rows[r]) {
            emit->reg_rows[r]--;
        }
    }
    for (uint32_t point = 0; point < points; point++) {
        for (uint32_t at = born[point]; at; at = next_born[at - 1]) {
            const uint32_t r = at - 1;
            const unsigned class =
                function->regs[r].type == PTX_PRED ? WORDS : log2_bytes(function->regs[r].type);
            if (idle[class]) {
                emit->reg_rows[r] = emit->reg_rows[idle[class] - 1];
                idle[class] = next_dead[idle[class] - 1];
            } else {
                emit->reg_rows[r] = register_take(emit, r);
            }
            next_dead[r] = dead[spans[r].last];
            dead[spans[r].last] = at;
        }
        for (uint32_t at = dead[point], next; at; at = next) {
            const unsigned class =
                function->regs[at - 1].type == PTX_PRED ? WORDS : log2_bytes(function->regs[at - 1].type);
            next = next_dead[at - 1];
            next_dead[at - 1] = idle[class];
            idle[class] = at;
        }
    }
    return true;
}

bool emu_emit_init(struct emu_emit *emit)
{
    const struct ptx_function *function = emit->function;
    emit->reg_rows = clab_arena_array(&emit->image->arena, function->n_regs + 1, sizeof *emit->reg_rows);
    emit->n_buckets = 256;
    emit->const_buckets = clab_arena_array(&emit->scratch, emit->n_buckets, sizeof *emit->const_buckets);
    if (!emit->reg_rows || !emit->const_buckets || !place_locals(emit)) {
        return false;
    }
    return place_registers(emit);
}

void emu_emit_fini(struct emu_emit *emit)
{
    clab_arena_free(&emit->scratch);
}

static uint32_t pool_take(struct emu_emit *emit, unsigned log2)
{
    struct emu_scratch_pool *pool = &emit->pools[log2];
    if (pool->used == pool->count) {
        uint32_t *rows =
            clab_arena_grow(&emit->scratch, pool->rows, pool->count, &pool->capacity, sizeof *rows);
        if (!rows) {
            emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", emit->function->name);
            return 0;
        }
        pool->rows = rows;
        pool->rows[pool->count++] = log2 == 5 ? word_take(emit) : row_take(emit, 1u << log2);
    }
    return pool->rows[pool->used++];
}

uint32_t emu_scratch(struct emu_emit *emit, enum ptx_type type)
{
    return pool_take(emit, type == PTX_PRED ? 5 : log2_bytes(type));
}

uint32_t emu_scratch_pred(struct emu_emit *emit)
{
    return pool_take(emit, 5);
}

uint32_t emu_carry(struct emu_emit *emit)
{
    if (!emit->has_carry) {
        emit->has_carry = true;
        emit->carry = word_take(emit);
    }
    return emit->carry;
}

/* --- constants */

static uint32_t hash_const(const struct emu_const *c)
{
    uint64_t h = c->low * UINT64_C(0x9e3779b97f4a7c15) ^ c->high * UINT64_C(0xc2b2ae3d27d4eb4f) ^
                 (uint64_t)c->bytes << 1 ^ (uint64_t)c->rank;
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(h >> 32);
}

static bool const_rehash(struct emu_emit *emit, uint32_t n_buckets)
{
    uint32_t *buckets = clab_arena_array(&emit->scratch, n_buckets, sizeof *buckets);
    if (!buckets) {
        return false;
    }
    for (uint32_t i = 0; i < emit->n_consts; i++) {
        uint32_t at = hash_const(&emit->consts[i]) & (n_buckets - 1);
        while (buckets[at]) {
            at = (at + 1) & (n_buckets - 1);
        }
        buckets[at] = i + 1;
    }
    emit->const_buckets = buckets;
    emit->n_buckets = n_buckets;
    return true;
}

/* Where `want` is, or could be, in the buckets. */
static uint32_t const_bucket(const struct emu_emit *emit, const struct emu_const *want)
{
    uint32_t at = hash_const(want) & (emit->n_buckets - 1);
    for (; emit->const_buckets[at]; at = (at + 1) & (emit->n_buckets - 1)) {
        const struct emu_const *c = &emit->consts[emit->const_buckets[at] - 1];
        if (c->low == want->low && c->high == want->high && c->bytes == want->bytes &&
            c->rank == want->rank) {
            break;
        }
    }
    return at;
}

static uint32_t const_take(struct emu_emit *emit, struct emu_const want)
{
    const uint32_t at = const_bucket(emit, &want);
    if (emit->const_buckets[at]) {
        return emit->consts[emit->const_buckets[at] - 1].offset;
    }
    struct emu_const *consts =
        clab_arena_grow(&emit->scratch, emit->consts, emit->n_consts, &emit->consts_capacity, sizeof *consts);
    if (!consts) {
        emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", emit->function->name);
        return 0;
    }
    emit->consts = consts;
    want.offset = want.bytes ? row_take(emit, want.bytes) : word_take(emit);
    consts[emit->n_consts++] = want;
    emit->const_buckets[at] = (uint32_t)emit->n_consts;
    if (emit->n_consts * 2 > emit->n_buckets && !const_rehash(emit, emit->n_buckets * 2)) {
        emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", emit->function->name);
    }
    return want.offset;
}

static uint64_t low_bytes(uint64_t bits, unsigned bytes)
{
    return bytes >= 8 ? bits : bits & ((UINT64_C(1) << (8 * bytes)) - 1);
}

static uint32_t constant_bytes(struct emu_emit *emit, unsigned bytes, uint64_t low, uint64_t high)
{
    return const_take(emit, (struct emu_const){.bytes = (uint8_t)bytes,
                                               .low = low_bytes(low, bytes),
                                               .high = bytes == 16 ? high : 0});
}

/* A constant that an operand names. The first CONST_ROWS of a function have rows; what comes after them is
   written into a scratch row before each use, so that a register file stays small. */
static uint32_t operand_row(struct emu_emit *emit, struct emu_const want)
{
    if (emit->n_consts < CONST_ROWS || emit->const_buckets[const_bucket(emit, &want)]) {
        return const_take(emit, want);
    }
    struct emu_const *kept = emu_emit_alloc(emit, sizeof *kept);
    want.offset = pool_take(emit, (unsigned)__builtin_ctz(want.bytes));
    struct emu_op *op = emu_push_unguarded(emit, emit->framework->constant, NULL);
    op->d = want.offset;
    op->extra = kept;
    if (kept) {
        *kept = want;
    }
    return want.offset;
}

static uint32_t operand_constant(struct emu_emit *emit, unsigned bytes, uint64_t low, uint64_t high)
{
    return operand_row(emit, (struct emu_const){.bytes = (uint8_t)bytes,
                                                .low = low_bytes(low, bytes),
                                                .high = bytes == 16 ? high : 0});
}

uint32_t emu_constant(struct emu_emit *emit, enum ptx_type type, uint64_t bits)
{
    return constant_bytes(emit, emu_lane_bytes(type), bits, 0);
}

/* --- symbols */

bool emu_place_of(struct emu_emit *emit, const struct ptx_var *var, enum emu_place *out_place,
                  uint64_t *out_offset)
{
    const struct ptx_function *function = var->function;
    if (function == emit->function) {
        if (var->index < function->n_params && function->params[var->index] == var) {
            if (function->entry) {
                *out_place = EMU_PLACE_PARAM;
                *out_offset = emit->code->params[var->index].offset;
                return true;
            }
            *out_place = EMU_PLACE_LOCAL;
            *out_offset = emit->code->params[var->index].offset;
            return true;
        }
        if (var->index < function->n_returns && function->returns[var->index] == var) {
            *out_place = EMU_PLACE_LOCAL;
            *out_offset = emit->code->returns[var->index].offset;
            return true;
        }
        if (var->space == PTX_SPACE_LOCAL || var->space == PTX_SPACE_PARAM) {
            *out_place = EMU_PLACE_LOCAL;
            *out_offset = emit->var_offsets[var->index];
            return true;
        }
    }
    if (var->space == PTX_SPACE_SHARED) {
        const uint32_t *offset = emu_index_get(&emit->layout->shared_offsets, var);
        if (offset) {
            *out_place = EMU_PLACE_SHARED;
            *out_offset = *offset;
            return true;
        }
    } else if (emu_module_place(emit->image->module, var, out_offset)) {
        *out_place = EMU_PLACE_ABSOLUTE;
        return true;
    }
    emu_emit_error(emit, CLAB_LOAD, "variable '%s' is declared but has no storage in this module", var->name);
    return false;
}

static uint32_t symbol_row(struct emu_emit *emit, const struct ptx_var *var, uint64_t addend, unsigned bytes)
{
    enum emu_place place;
    uint64_t offset;
    if (!emu_place_of(emit, var, &place, &offset)) {
        return 0;
    }
    offset += addend;
    if (place == EMU_PLACE_ABSOLUTE) {
        return operand_constant(emit, bytes, offset, 0);
    }
    if (place == EMU_PLACE_SHARED) {
        return operand_row(emit, (struct emu_const){.bytes = (uint8_t)bytes,
                                                    .rank = bytes >= 4,
                                                    .low = low_bytes(EMU_SHARED_FIRST + offset, bytes)});
    }
    if (place == EMU_PLACE_LOCAL && emit->function->entry) {
        return operand_constant(emit, bytes, offset, 0);
    }
    const uint32_t wide = pool_take(emit, 3);
    struct emu_op *op =
        place == EMU_PLACE_LOCAL
            ? emu_push_unguarded(emit, emit->framework->local_full, emit->framework->local_masked)
            : emu_push_unguarded(emit, emit->framework->param, emit->framework->param);
    op->d = wide;
    op->imm = offset;
    if (bytes == 8) {
        return wide;
    }
    const unsigned to = (unsigned)__builtin_ctz(bytes);
    const uint32_t row = pool_take(emit, to);
    op = emu_push_unguarded(emit, emit->framework->convert_full[3][to][0],
                            emit->framework->convert_masked[3][to][0]);
    op->d = row;
    op->a = wide;
    return row;
}

/* --- operands */

static uint64_t float_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t single_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Only a double for an .f32 is converted. Everything else is the literal's bits, as far as they go:
   0f3f800000 for an .f64 is 5.26e-315 (SASS of ptxas 13.0.88). */
static uint32_t float_row(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type)
{
    const unsigned bytes = emu_lane_bytes(type);
    double value;
    memcpy(&value, &operand->imm, sizeof value);
    if (type == PTX_F32 && !operand->is_f32_bits) {
        return operand_constant(emit, 4, single_bits((float)value), 0);
    }
    return operand_constant(emit, bytes, operand->imm, 0);
}

/* Copies a row into a scratch row of another lane size. */
static uint32_t convert_row(struct emu_emit *emit, uint32_t row, unsigned from_log2, unsigned to_log2,
                            bool is_signed)
{
    if (from_log2 == to_log2) {
        return row;
    }
    const uint32_t to = pool_take(emit, to_log2);
    struct emu_op *op = emu_push_unguarded(emit, emit->framework->convert_full[from_log2][to_log2][is_signed],
                                           emit->framework->convert_masked[from_log2][to_log2][is_signed]);
    op->d = to;
    op->a = row;
    return to;
}

/* var[index + imm] */
static uint32_t element_row(struct emu_emit *emit, const struct ptx_operand *operand, unsigned log2)
{
    const uint32_t array = symbol_row(emit, operand->var, 0, 8);
    const uint32_t index = emu_source(emit, &operand->elements[0], PTX_U32);
    const uint32_t row = pool_take(emit, 3);
    struct emu_op *op =
        emu_push_unguarded(emit, emit->framework->element_full, emit->framework->element_masked);
    op->d = row;
    op->a = array;
    op->b = index;
    op->imm = (uint32_t)operand->imm | (uint64_t)(ptx_types[operand->var->type].bits / 8) << 32;
    return convert_row(emit, row, 3, log2, false);
}

uint32_t emu_source(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type)
{
    if (operand->kind == PTX_OPERAND_VECTOR &&
        operand->n_elements == 1) { /* {r}, as Triton writes it, is r */
        operand = &operand->elements[0];
    }
    const unsigned bytes = emu_lane_bytes(type), log2 = log2_bytes(type);
    const bool is_signed = ptx_types[type].class == PTX_CLASS_SIGNED;
    switch (operand->kind) {
    case PTX_OPERAND_REG: {
        const enum ptx_type reg_type = emit->function->regs[operand->reg].type;
        if (reg_type == PTX_PRED || type == PTX_PRED) {
            break;
        }
        return convert_row(emit, emit->reg_rows[operand->reg], log2_bytes(reg_type), log2, is_signed);
    }
    case PTX_OPERAND_SREG: {
        const struct ptx_sreg_info *info = &ptx_sregs[operand->sreg];
        emu_handler *handler = emit->framework->sreg[operand->sreg];
        if (!handler) {
            emu_unsupported(emit, "special register %s", info->text);
            return 0;
        }
        if (info->type == PTX_PRED) {
            break;
        }
        const uint32_t row = pool_take(emit, log2_bytes(info->type));
        struct emu_op *op = emu_push_unguarded(emit, handler, handler);
        op->d = row;
        op->u8[0] = operand->component;
        return convert_row(emit, row, log2_bytes(info->type), log2, false);
    }
    case PTX_OPERAND_INT:
        if (ptx_types[type].class == PTX_CLASS_FLOAT && bytes >= 4) {
            const double value = operand->is_unsigned ? (double)operand->imm : (double)(int64_t)operand->imm;
            return bytes == 8 ? operand_constant(emit, 8, float_bits(value), 0)
                              : operand_constant(emit, 4, single_bits((float)value), 0);
        }
        return operand_constant(emit, bytes, operand->imm,
                                !operand->is_unsigned && (int64_t)operand->imm < 0 ? UINT64_MAX : 0);
    case PTX_OPERAND_FLOAT:
        return float_row(emit, operand, type);
    case PTX_OPERAND_SYMBOL:
        if (operand->func) {
            return operand_constant(emit, bytes, emu_function_address(emit->image->module, operand->func), 0);
        }
        return symbol_row(emit, operand->var, operand->imm, bytes);
    case PTX_OPERAND_INDEXED:
        return element_row(emit, operand, log2);
    case PTX_OPERAND_FUNCTION:
        return operand_constant(emit, bytes, emu_function_address(emit->image->module, operand->func), 0);
    default:
        break;
    }
    emu_emit_error(emit, CLAB_UNSUPPORTED,
                   "not supported by the emulator: this kind of operand where a value of type "
                   ".%s is read",
                   ptx_types[type].text);
    return 0;
}

uint32_t emu_dest(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type)
{
    if (operand->kind == PTX_OPERAND_VECTOR && operand->n_elements == 1) {
        operand = &operand->elements[0];
    }
    if (operand->kind == PTX_OPERAND_SINK) {
        return emu_scratch(emit, type);
    }
    if (operand->kind != PTX_OPERAND_REG || emit->function->regs[operand->reg].type == PTX_PRED) {
        emu_emit_error(
            emit, CLAB_UNSUPPORTED,
            "not supported by the emulator: this kind of operand where a value of type .%s is written",
            ptx_types[type].text);
        return 0;
    }
    const unsigned to = log2_bytes(emit->function->regs[operand->reg].type), from = log2_bytes(type);
    if (to == from) {
        return emit->reg_rows[operand->reg];
    }
    if (to < from || emit->n_after == sizeof emit->after / sizeof *emit->after) {
        emu_emit_error(emit, CLAB_UNSUPPORTED,
                       "not supported by the emulator: register %s is too small for type .%s",
                       emit->function->regs[operand->reg].name, ptx_types[type].text);
        return 0;
    }
    const uint32_t row = pool_take(emit, from);
    emit->after[emit->n_after++] = (struct emu_after){.to = emit->reg_rows[operand->reg],
                                                      .from = row,
                                                      .to_log2 = (uint8_t)to,
                                                      .from_log2 = (uint8_t)from,
                                                      .is_signed = ptx_types[type].class == PTX_CLASS_SIGNED};
    return row;
}

uint32_t emu_pred_source(struct emu_emit *emit, const struct ptx_operand *operand)
{
    uint32_t word = 0;
    if (operand->kind == PTX_OPERAND_INT) {
        const bool value = (operand->imm != 0) != operand->negated;
        return const_take(emit, (struct emu_const){.low = value ? EMU_ALL : 0});
    }
    if (operand->kind == PTX_OPERAND_REG && emit->function->regs[operand->reg].type == PTX_PRED) {
        word = emit->reg_rows[operand->reg];
    } else if (operand->kind == PTX_OPERAND_SREG && ptx_sregs[operand->sreg].type == PTX_PRED &&
               emit->framework->sreg[operand->sreg]) {
        word = pool_take(emit, 5);
        emu_handler *handler = emit->framework->sreg[operand->sreg];
        emu_push_unguarded(emit, handler, handler)->d = word;
    } else {
        emu_emit_error(emit, CLAB_UNSUPPORTED,
                       "not supported by the emulator: this operand where a predicate is read");
        return 0;
    }
    if (!operand->negated) {
        return word;
    }
    const uint32_t negated = pool_take(emit, 5);
    struct emu_op *op =
        emu_push_unguarded(emit, emit->framework->pred_not_full, emit->framework->pred_not_masked);
    op->d = negated;
    op->a = word;
    return negated;
}

uint32_t emu_pred_dest(struct emu_emit *emit, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_SINK) {
        return pool_take(emit, 5);
    }
    if (operand->kind != PTX_OPERAND_REG || emit->function->regs[operand->reg].type != PTX_PRED) {
        emu_emit_error(emit, CLAB_UNSUPPORTED,
                       "not supported by the emulator: this operand where a predicate is written");
        return 0;
    }
    return emit->reg_rows[operand->reg];
}

uint32_t emu_address(struct emu_emit *emit, const struct ptx_operand *operand, int64_t *out_offset_bytes)
{
    *out_offset_bytes = 0;
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->n_elements == 0) {
        emu_emit_error(emit, CLAB_UNSUPPORTED,
                       "not supported by the emulator: this operand where an address is wanted");
        return 0;
    }
    *out_offset_bytes = (int64_t)operand->imm;
    return emu_source(emit, &operand->elements[0], PTX_U64);
}

/* --- pushing */

struct emu_op *emu_push_unguarded(struct emu_emit *emit, emu_handler *full, emu_handler *masked)
{
    if (emit->status == CLAB_OK) {
        struct emu_op *ops =
            clab_arena_grow(&emit->scratch, emit->ops, emit->n_ops, &emit->ops_capacity, sizeof *ops);
        if (ops && full) {
            emit->ops = ops;
            struct emu_op *op = &ops[emit->n_ops++];
            memset(op, 0, sizeof *op);
            op->full = full;
            op->masked = masked ? masked : full;
            op->d = op->a = op->b = op->c = EMU_NO_ROW;
            op->guard = EMU_NO_GUARD;
            op->insn = emit->insn_index;
            op->spin = emit->spin;
            return op;
        }
        if (ops) {
            emu_emit_error(emit, CLAB_UNSUPPORTED,
                           "not supported by the emulator: this form of the instruction");
        } else {
            emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", emit->function->name);
        }
    }
    memset(&emit->dummy, 0, sizeof emit->dummy);
    return &emit->dummy;
}

uint32_t emu_guard(struct emu_emit *emit, bool *out_negated)
{
    *out_negated = emit->insn->guard_negated;
    return emit->insn->has_guard && !emit->guard_as_branch ? emit->reg_rows[emit->insn->guard] : EMU_NO_GUARD;
}

struct emu_op *emu_push(struct emu_emit *emit, emu_handler *full, emu_handler *masked)
{
    struct emu_op *op = emu_push_unguarded(emit, full, masked);
    bool negated;
    const uint32_t guard = emu_guard(emit, &negated);
    if (guard != EMU_NO_GUARD) {
        op->inner_full = op->full;
        op->inner_masked = op->masked;
        op->full = emit->framework->guard_full;
        op->masked = emit->framework->guard_masked;
        op->guard = guard;
        op->guard_negated = negated;
    }
    return op;
}

void emu_guard_branch(struct emu_emit *emit)
{
    bool negated;
    const uint32_t guard = emu_guard(emit, &negated);
    if (guard == EMU_NO_GUARD || emit->status != CLAB_OK) {
        return;
    }
    emit->guard_op = emit->n_ops;
    struct emu_op *op =
        emu_push_unguarded(emit, emit->framework->branch_full, emit->framework->branch_masked);
    op->a = guard;
    op->c = negated ? 0 : EMU_ALL; /* lanes whose guard is false go round */
    op->u8[0] = 1;                 /* not an instruction of its own */
    emit->guard_as_branch = true;
}

void *emu_emit_alloc(struct emu_emit *emit, size_t bytes)
{
    void *memory = clab_arena_alloc(&emit->image->arena, bytes);
    if (!memory) {
        emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", emit->function->name);
    }
    return memory;
}

void emu_emit_fix(struct emu_emit *emit, size_t op, uint32_t target, uint32_t join,
                  const struct emu_op **slot)
{
    struct emu_fix *fixes =
        clab_arena_grow(&emit->scratch, emit->fixes, emit->n_fixes, &emit->fixes_capacity, sizeof *fixes);
    if (!fixes) {
        emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", emit->function->name);
        return;
    }
    emit->fixes = fixes;
    fixes[emit->n_fixes++] = (struct emu_fix){.op = op, .target = target, .join = join, .slot = slot};
}

void emu_emit_begin(struct emu_emit *emit, uint32_t insn_index)
{
    emit->insn = insn_index < emit->function->n_insns ? &emit->function->insns[insn_index] : NULL;
    emit->insn_index = insn_index;
    emit->guard_as_branch = false;
    emit->n_after = 0;
    for (unsigned i = 0; i < sizeof emit->pools / sizeof *emit->pools; i++) {
        emit->pools[i].used = 0;
    }
}

void emu_emit_end(struct emu_emit *emit)
{
    for (uint32_t i = 0; i < emit->n_after; i++) {
        const struct emu_after *after = &emit->after[i];
        struct emu_op *op =
            emu_push(emit, emit->framework->convert_full[after->from_log2][after->to_log2][after->is_signed],
                     emit->framework->convert_masked[after->from_log2][after->to_log2][after->is_signed]);
        op->d = after->to;
        op->a = after->from;
    }
    if (emit->guard_as_branch) {
        const size_t join = emit->n_ops;
        struct emu_op *op =
            emu_push_unguarded(emit, emit->framework->join_full, emit->framework->join_masked);
        op->u8[1] = 1; /* a join: warp.c steps over it */
        op->insn = emit->insn_index + 1;
        /* decode.c turns the distance into pointers. */
        emit->ops[emit->guard_op].imm = join - emit->guard_op;
    }
}
