/* Decoded kernels: one struct emu_code per function, gathered in a struct emu_image per (kernel, instruction
   set, hook mode). Read-only once decoded, shared by all host threads. */
#ifndef CLAB_EMU_CODE_H
#define CLAB_EMU_CODE_H

#include <string.h>

#include "emu/emit.h"
#include "emu/index.h"
#include "emu/machine.h"
#include "emu/op.h"

/* A constant row: every lane the same, filled when a register file is made and never written by the kernel.
 */
struct emu_const {
    uint32_t offset; /* of the row in the register file */
    uint8_t bytes;   /* of a lane; 0: a predicate word (bits 0 or all ones) */
    bool rank; /* the low 32 bits get the CTA's rank << EMU_RANK_SHIFT added: address of a .shared variable */
    uint64_t low, high;
};

/* What the calls of a function need: where its parameters and return values live. */
struct emu_slot {
    uint32_t offset; /* from the frame's local_base */
    uint32_t bytes;
};

/* Parameters or return values of a .func that its body has in registers (.reg): calls leave them in local
   memory, from where they come at the start and to where they go at every return. */
struct emu_carried {
    uint32_t n;
    struct {
        uint32_t row, place, bytes; /* place: from the frame's local_base */
    } items[];
};

struct emu_code {
    const struct ptx_function *function;
    const struct emu_image *image;
    struct emu_op *ops;
    uint32_t n_ops;
    uint32_t *op_of;     /* first operation of each instruction; n_insns + 1 entries */
    uint32_t file_bytes; /* size of a register file */
    struct emu_const *consts;
    uint32_t n_consts, n_rank_consts;  /* rank-dependent ones first */
    uint32_t local_bytes;              /* of this function's .local and .param variables, per thread */
    struct emu_slot *params, *returns; /* of a .func, in the order declared */
    uint32_t index;                    /* in image->codes */
    uint32_t *costs;                   /* modelled cycles before each instruction (cost.h), n_insns + 1; NULL
                                          until emu_image_clock */
    uint32_t *reg_rows; /* row (or predicate word) of each PTX register, for traces; shared with others that
                           do not live at the same time */
    uint32_t registers; /* modelled demand of this function alone (ptx_live.demand) */
    bool calls;         /* has a call instruction */
};

/* Fills the constant's row at `row`; `rank` is the CTA's. */
static inline void emu_const_fill(const struct emu_const *c, unsigned char *row, uint32_t rank)
{
    const uint64_t low = c->low + (c->rank ? (uint64_t)rank << EMU_RANK_SHIFT : 0);
    if (c->bytes == 0) {
        memcpy(row, &low, 4);
        return;
    }
    if (c->bytes == 4) {
        uint32_t *words = (uint32_t *)(void *)row;
        EMU_EACH_LANE(i)
        {
            words[i] = (uint32_t)low;
        }
        return;
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        unsigned char *lane = row + (size_t)i * c->bytes;
        memcpy(lane, &low, c->bytes < 8 ? c->bytes : 8);
        if (c->bytes == 16) {
            memcpy(lane + 8, &c->high, 8);
        }
    }
}

struct emu_set; /* sets.c: the handlers of one instruction set and hook mode */

/* Where a kernel's shared variables lie. */
struct emu_layout {
    struct emu_index shared_offsets; /* by struct ptx_var *: those that the kernel reaches */
};

/* One kernel, decoded. */
struct emu_image {
    const struct emu_module *module;
    const struct emu_set *set;
    struct emu_code **codes; /* of the functions that it reaches, in the module's order */
    uint32_t n_codes;
    struct emu_code *entry;
    struct emu_layout layout;
    uint32_t static_shared_bytes; /* of the .shared variables that the kernel can reach */
    uint32_t local_bytes;         /* per thread, along the deepest chain of calls; with recursion see deep */
    bool reads_workspace;         /* asks for the grid barrier of cooperative launches (%envreg1, %envreg2) */
    bool reads_reserved;          /* asks where the reserved shared memory is (%reserved_smem_offset_*) */
    bool names_no_shared; /* reaches no .shared variable: its shared addresses are numbers of its own */
    size_t counted_bytes; /* of its arena, as its module counts them */
    bool deep;            /* calls itself or through pointers: local memory is the stack limit instead */
    bool reads_clock;     /* some code in it does */
    struct clab_arena arena;
};

/* Operations that decode.c adds by itself, per instruction set (ops_frame.c). */
struct emu_framework {
    emu_handler *guard_full, *guard_masked;
    emu_handler *join_full, *join_masked;
    emu_handler *bra_full, *bra_masked;           /* unconditional, forward */
    emu_handler *bra_back_full, *bra_back_masked; /* unconditional, backward */
    emu_handler *branch_full, *branch_masked;     /* conditional, forward */
    emu_handler *branch_back_full, *branch_back_masked;
    emu_handler *inplace_full, *inplace_masked; /* conditional over a region run in place */
    emu_handler *pred_not_full, *pred_not_masked;
    emu_handler *count;                         /* boundary of a polling loop */
    emu_handler *end;                           /* past the last instruction */
    emu_handler *local_full, *local_masked;     /* address of a variable in the frame */
    emu_handler *param;                         /* address of an entry parameter */
    emu_handler *element_full, *element_masked; /* address of an array's element */
    emu_handler *constant;                      /* extra: struct emu_const, written to row d */
    emu_handler *carry_in, *carry_out;          /* extra: struct emu_carried */
    /* Widening or narrowing copies, by log2 of the lane bytes of source and destination; signed ones second.
     */
    emu_handler *convert_full[5][5][2], *convert_masked[5][5][2];
    emu_handler *sreg[PTX_SREG_COUNT]; /* u8[0] component; writes the whole row */
};

struct emu_set {
    const char *name; /* "base", "v3", "v4" */
    bool hooks;
    const struct emu_framework *framework;
    emu_emitter *const *emitters; /* by row; NULL: not executed */
};
/* The best set that this processor runs, or the one named; NULL when the name is unknown or the processor
 * lacks it. */
const struct emu_set *emu_set_get(const char *name, bool hooks);

/* The greatest alignment of an .extern .shared array without a size at module scope; 0: there is none. */
uint32_t emu_module_dynamic_align(const struct emu_module *module);
/* Variables placed by the module: .global and .const. False when `var` has no storage. */
bool emu_module_place(const struct emu_module *module, const struct ptx_var *var, uint64_t *out_address);
/* The value of a function's address in PTX: opaque, never readable. */
uint64_t emu_function_address(const struct emu_module *module, const struct ptx_function *function);
/* The code for such a value, or NULL. */
const struct emu_code *emu_function_find(const struct emu_image *image, uint64_t address);

/* Decodes `entry` and every function it can reach. Errors: UNSUPPORTED, the function's own error, NO_MEMORY.
 */
clab_status emu_image_new(const struct emu_module *module, const struct ptx_module *ptx,
                          const struct ptx_function *entry, const struct emu_set *set,
                          struct emu_image **out_image, struct clab_error *error);
void emu_image_free(struct emu_image *image);
/* The bytes of the sized shared variables of a kernel and of what it can reach, without the gaps between
   them. False when memory is out. */
bool emu_image_shared_bytes(const struct ptx_function *entry, uint64_t *out_bytes);
/* Adds what a clocked schedule needs: the costs. Not while a launch uses the image for the first time so. */
clab_status emu_image_clock(struct emu_image *image, struct clab_error *error);
/* The code of a function that the image reaches, or NULL. */
struct emu_code *emu_image_code(const struct emu_image *image, const struct ptx_function *function);
/* The shared variable at `offset` from a CTA's first byte, and where in it that is; NULL: none. An unsized
   one reaches to the end. */
const struct ptx_var *emu_image_shared_at(const struct emu_image *image, uint32_t offset,
                                          uint32_t *out_offset);

/* --- used by image.c, implemented in decode.c: one function. */
clab_status emu_decode(struct emu_image *image, const struct ptx_module *ptx, const struct emu_layout *layout,
                       struct emu_code *code, struct clab_error *error);

#endif
