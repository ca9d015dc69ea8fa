/* Operations that the decoder adds by itself: guards, joins, operand conversions, special registers and
   addresses of variables that are known only at run time. PTX ISA 9.0, chapter 10 "Special Registers".
   Compiled per set. */
#include <string.h>

#include "emu/fragment.h"
#include "emu/lanes.h"
#include "emu/space.h"

/* --- guards: @p and @!p */

static const struct emu_op *guard_full(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t on = EMU_PRED(warp, op->guard) ^ (op->guard_negated ? EMU_ALL : 0);
    if (on == EMU_ALL) {
        return op->inner_full(warp, op);
    }
    if (on == 0) {
        return op + 1;
    }
    emu_exec_set(warp, on);
    const struct emu_op *next = op->inner_masked(warp, op);
    emu_exec_set(warp, EMU_ALL);
    return next;
}

static const struct emu_op *guard_masked(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t exec = warp->exec;
    const uint32_t on = (EMU_PRED(warp, op->guard) ^ (op->guard_negated ? EMU_ALL : 0)) & exec;
    if (on == 0) {
        return op + 1;
    }
    if (on == exec) {
        return op->inner_masked(warp, op);
    }
    emu_exec_set(warp, on);
    const struct emu_op *next = op->inner_masked(warp, op);
    emu_exec_set(warp, exec);
    return next;
}

static const struct emu_op *join_full(struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp;
    return op + 1;
}

static const struct emu_op *join_masked(struct emu_warp *warp, const struct emu_op *op)
{
    return (warp->used & (warp->used - 1)) == 0 ? op + 1 : emu_join(warp, op);
}

/* Where straight-line code enters or leaves a polling loop: what came before is counted. */
static const struct emu_op *count(struct emu_warp *warp, const struct emu_op *op)
{
    emu_count(warp, op, op->insn, warp->exec, op->insn);
    return op + 1;
}

static const struct emu_op *end(struct emu_warp *warp, const struct emu_op *op)
{
    return emu_return(warp, op);
}

static const struct emu_op *pred_not_full(struct emu_warp *warp, const struct emu_op *op)
{
    EMU_PRED(warp, op->d) = ~EMU_PRED(warp, op->a);
    return op + 1;
}

/* Scratch words of other fragments' lanes must survive: they may wait in the middle of an instruction. */
static const struct emu_op *pred_not_masked(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t exec = warp->exec, value = ~EMU_PRED(warp, op->a);
    EMU_PRED(warp, op->d) = (EMU_PRED(warp, op->d) & ~exec) | (value & exec);
    return op + 1;
}

/* --- copies between lane sizes */

typedef struct {
    uint64_t low, high;
} wide;

EMU_UNARY(u1_2, uint16_t, uint8_t, x)
EMU_UNARY(u1_4, uint32_t, uint8_t, x)
EMU_UNARY(u1_8, uint64_t, uint8_t, x)
EMU_UNARY(s1_2, int16_t, int8_t, x)
EMU_UNARY(s1_4, int32_t, int8_t, x)
EMU_UNARY(s1_8, int64_t, int8_t, x)
EMU_UNARY(u2_1, uint8_t, uint16_t, x)
EMU_UNARY(u2_4, uint32_t, uint16_t, x)
EMU_UNARY(u2_8, uint64_t, uint16_t, x)
EMU_UNARY(s2_4, int32_t, int16_t, x)
EMU_UNARY(s2_8, int64_t, int16_t, x)
EMU_UNARY(u4_1, uint8_t, uint32_t, x)
EMU_UNARY(u4_2, uint16_t, uint32_t, x)
EMU_UNARY(u4_8, uint64_t, uint32_t, x)
EMU_UNARY(s4_8, int64_t, int32_t, x)
EMU_UNARY(u8_1, uint8_t, uint64_t, x)
EMU_UNARY(u8_2, uint16_t, uint64_t, x)
EMU_UNARY(u8_4, uint32_t, uint64_t, x)

/* 128-bit registers hold untyped bits only: zero-extended, truncated. */
#define FROM_WIDE(NAME, T)                                                                    \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        T *d = EMU_ROW(T, warp, op->d);                                                       \
        const wide *a = EMU_ROW(wide, warp, op->a);                                           \
        for (unsigned i = 0; i < EMU_LANES; i++) {                                            \
            d[i] = warp->exec >> i & 1 ? (T)a[i].low : d[i];                                  \
        }                                                                                     \
        return op + 1;                                                                        \
    }
#define TO_WIDE(NAME, T)                                                                      \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        wide *d = EMU_ROW(wide, warp, op->d);                                                 \
        const T *a = EMU_ROW(T, warp, op->a);                                                 \
        for (unsigned i = 0; i < EMU_LANES; i++) {                                            \
            if (warp->exec >> i & 1) {                                                        \
                d[i] = (wide){a[i], 0};                                                       \
            }                                                                                 \
        }                                                                                     \
        return op + 1;                                                                        \
    }
FROM_WIDE(w_1, uint8_t)
FROM_WIDE(w_2, uint16_t)
FROM_WIDE(w_4, uint32_t)
FROM_WIDE(w_8, uint64_t)
TO_WIDE(u1_w, uint8_t)
TO_WIDE(u2_w, uint16_t)
TO_WIDE(u4_w, uint32_t)
TO_WIDE(u8_w, uint64_t)
#undef FROM_WIDE
#undef TO_WIDE

/* --- special registers: every handler writes the whole row, whatever exec is; the row is scratch, and its
   value does not depend on which lanes run. */

#define EACH_U32(NAME, EXPR)                                                                \
    static const struct emu_op *sreg_##NAME(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                       \
        uint32_t *d = EMU_ROW(uint32_t, warp, op->d);                                       \
        const unsigned c = op->u8[0] < 3 ? op->u8[0] : 0;                                   \
        const uint32_t zero = op->u8[0] == 3; /* .w */                                      \
        const struct emu_cta *cta = warp->cta;                                              \
        const struct emu_run *run = cta->run;                                               \
        (void)c;                                                                            \
        (void)zero;                                                                         \
        (void)run;                                                                          \
        EMU_EACH_LANE(i)                                                                    \
        {                                                                                   \
            d[i] = (EXPR);                                                                  \
        }                                                                                   \
        return op + 1;                                                                      \
    }

static uint32_t rank_component(const struct emu_cta *cta, unsigned c)
{
    const uint32_t *size = cta->run->cluster;
    const uint32_t rank = cta->rank;
    return c == 0 ? rank % size[0] : c == 1 ? rank / size[0] % size[1] : rank / size[0] / size[1];
}

static const struct emu_op *sreg_tid(struct emu_warp *warp, const struct emu_op *op)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const uint32_t *block = warp->cta->run->block;
    const uint32_t first = warp->index * EMU_LANES;
    const unsigned component = op->u8[0] < 4 ? op->u8[0] : 0;
    if (component == 0 && first + EMU_LANES <= block[0]) { /* a row of threads lies within x, most often */
        EMU_EACH_LANE(i)
        {
            d[i] = first + i;
        }
        return op + 1;
    }
    uint32_t at[4] = {first % block[0], first / block[0] % block[1], first / block[0] / block[1], 0};
    for (unsigned i = 0; i < EMU_LANES; i++) {
        d[i] = at[component];
        if (++at[0] == block[0]) {
            at[0] = 0;
            if (++at[1] == block[1]) {
                at[1] = 0;
                at[2]++;
            }
        }
    }
    return op + 1;
}

EACH_U32(ntid, zero ? 0 : run->block[c])
EACH_U32(laneid, i)
EACH_U32(warpid, warp->index)
EACH_U32(nwarpid, run->machine->model->threads_per_sm / EMU_LANES)
EACH_U32(ctaid, zero ? 0 : cta->ctaid[c])
EACH_U32(nctaid, zero ? 0 : run->grid[c])
/* %smid: UNVERIFIED which SM takes which CTA; the emulator deals clusters out in turn (PTX ISA, "%smid"). */
EACH_U32(smid, emu_model_smid(run->model, cta->sm))
EACH_U32(nsmid, run->machine->model->sms)
EACH_U32(clusterid, zero ? 0 : cta->cluster->clusterid[c])
EACH_U32(nclusterid, zero ? 0 : run->clusters[c])
EACH_U32(cluster_nctaid, zero ? 0 : run->cluster[c])
EACH_U32(cluster_ctarank, cta->rank)
EACH_U32(cluster_nctarank, run->cluster_size)
EACH_U32(lanemask_eq, UINT32_C(1) << i)
EACH_U32(lanemask_lt, (UINT32_C(1) << i) - 1)
EACH_U32(lanemask_le, (UINT32_C(2) << i) - 1)
EACH_U32(lanemask_ge, ~((UINT32_C(1) << i) - 1))
EACH_U32(lanemask_gt, ~((UINT32_C(2) << i) - 1))
EACH_U32(zero, 0)
/* The reserved shared memory and the sizes: as an H200 answers (driver 13.0, 2026-11-30). */
EACH_U32(reserved_end, 288)
EACH_U32(reserved_cap, EMU_SHARED_FIRST)
EACH_U32(total_smem, run->shared_bytes)
EACH_U32(aggr_smem, run->shared_bytes + EMU_SHARED_FIRST)
/* cooperative_groups.h (CUDA 13.0, details/driver_abi.h) finds the words of its grid barrier so. */
EACH_U32(workspace_high, (uint32_t)(run->workspace >> 32))
EACH_U32(workspace_low, (uint32_t)run->workspace)
EACH_U32(dynamic_smem, run->dynamic_shared_bytes)
#undef EACH_U32

static const struct emu_op *sreg_cluster_ctaid(struct emu_warp *warp, const struct emu_op *op)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const uint32_t value = op->u8[0] == 3 ? 0 : rank_component(warp->cta, op->u8[0] < 3 ? op->u8[0] : 0);
    EMU_EACH_LANE(i)
    {
        d[i] = value;
    }
    return op + 1;
}

static const struct emu_op *sreg_is_explicit_cluster(struct emu_warp *warp, const struct emu_op *op)
{
    EMU_PRED(warp, op->d) = warp->cta->run->launch->explicit_cluster ? EMU_ALL : 0;
    return op + 1;
}

/* Clocks are read by the lanes that run, once per execution. */
static void fill_u32(struct emu_warp *warp, const struct emu_op *op, uint32_t value)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const uint32_t *on = warp->lane_mask;
    const bool full = warp->exec == EMU_ALL;
    EMU_EACH_LANE(i)
    {
        d[i] = full || on[i] ? value : d[i];
    }
}

static void fill_u64(struct emu_warp *warp, const struct emu_op *op, uint64_t value)
{
    uint64_t *d = EMU_ROW(uint64_t, warp, op->d);
    for (unsigned i = 0; i < EMU_LANES; i++) {
        d[i] = warp->exec >> i & 1 ? value : d[i];
    }
}

static const struct emu_op *sreg_clock(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u32(warp, op, (uint32_t)emu_cycles(warp, op));
    return op + 1;
}

static const struct emu_op *sreg_clock_hi(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u32(warp, op, (uint32_t)(emu_cycles(warp, op) >> 32));
    return op + 1;
}

static const struct emu_op *sreg_clock64(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u64(warp, op, emu_cycles(warp, op));
    return op + 1;
}

static const struct emu_op *sreg_globaltimer(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u64(warp, op, emu_time_ns(warp, op));
    return op + 1;
}

static const struct emu_op *sreg_globaltimer_lo(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u32(warp, op, (uint32_t)emu_time_ns(warp, op));
    return op + 1;
}

static const struct emu_op *sreg_globaltimer_hi(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u32(warp, op, (uint32_t)(emu_time_ns(warp, op) >> 32));
    return op + 1;
}

static const struct emu_op *sreg_gridid(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u64(warp, op, warp->cta->run->grid_id);
    return op + 1;
}

static const struct emu_op *sreg_zero64(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u64(warp, op, 0);
    return op + 1;
}

/* --- addresses */

static const struct emu_op *local_masked(struct emu_warp *warp, const struct emu_op *op)
{
    fill_u64(warp, op, warp->fragment->frame->local_base + op->imm);
    return op + 1;
}

static const struct emu_op *param(struct emu_warp *warp, const struct emu_op *op)
{
    uint64_t *d = EMU_ROW(uint64_t, warp, op->d);
    const uint64_t address = warp->cta->run->params + op->imm;
    EMU_EACH_LANE(i)
    {
        d[i] = address;
    }
    return op + 1;
}

/* An element of an array: low word of imm elements more than b says, each of imm's high word bytes. Sum and
   product have 32 bits and no sign (SASS of ptxas 13.0.88: UIADD3, ULEA without a high half). */
static const struct emu_op *element_masked(struct emu_warp *warp, const struct emu_op *op)
{
    uint64_t *d = EMU_ROW(uint64_t, warp, op->d);
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    const uint32_t *b = EMU_ROW(uint32_t, warp, op->b);
    const uint32_t addend = (uint32_t)op->imm, bytes = (uint32_t)(op->imm >> 32);
    const uint32_t *on = warp->lane_mask;
    EMU_EACH_LANE(i)
    {
        const uint64_t address = a[i] + (b[i] + addend) * bytes;
        d[i] = on[i] ? address : d[i];
    }
    return op + 1;
}

static const struct emu_op *element_full(struct emu_warp *warp, const struct emu_op *op)
{
    uint64_t *d = EMU_ROW(uint64_t, warp, op->d);
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    const uint32_t *b = EMU_ROW(uint32_t, warp, op->b);
    const uint32_t addend = (uint32_t)op->imm, bytes = (uint32_t)(op->imm >> 32);
    EMU_EACH_LANE(i)
    {
        d[i] = a[i] + (b[i] + addend) * bytes;
    }
    return op + 1;
}

static const struct emu_op *constant(struct emu_warp *warp, const struct emu_op *op)
{
    emu_const_fill(op->extra, warp->regs + op->d, warp->cta->rank);
    return op + 1;
}

/* Handlers of ops_control.c, which has the branches. */
void EMU_SETNAME(emu_framework_branches)(struct emu_framework *framework);

static struct emu_framework framework;

const struct emu_framework *EMU_SETNAME(emu_framework_get)(void);
const struct emu_framework *EMU_SETNAME(emu_framework_get)(void)
{
    return &framework;
}

void EMU_SETNAME(emu_framework_fill)(void);
/* Called once per process, before the first decode (sets.c). */
void EMU_SETNAME(emu_framework_fill)(void)
{
    struct emu_framework *f = &framework;
    EMU_SETNAME(emu_framework_branches)(f);
    f->guard_full = guard_full;
    f->guard_masked = guard_masked;
    f->join_full = join_full;
    f->join_masked = join_masked;
    f->pred_not_full = pred_not_full;
    f->pred_not_masked = pred_not_masked;
    f->end = end;
    f->count = count;
    f->local_full = f->local_masked = local_masked;
    f->param = param;
    f->element_full = element_full;
    f->element_masked = element_masked;
    f->constant = constant;
#define CONVERT(from, to, unsigned_, signed_)            \
    f->convert_full[from][to][0] = unsigned_##_full;     \
    f->convert_masked[from][to][0] = unsigned_##_masked; \
    f->convert_full[from][to][1] = signed_##_full;       \
    f->convert_masked[from][to][1] = signed_##_masked;
    CONVERT(0, 1, u1_2, s1_2)
    CONVERT(0, 2, u1_4, s1_4)
    CONVERT(0, 3, u1_8, s1_8)
    CONVERT(1, 0, u2_1, u2_1)
    CONVERT(1, 2, u2_4, s2_4)
    CONVERT(1, 3, u2_8, s2_8)
    CONVERT(2, 0, u4_1, u4_1)
    CONVERT(2, 1, u4_2, u4_2)
    CONVERT(2, 3, u4_8, s4_8)
    CONVERT(3, 0, u8_1, u8_1)
    CONVERT(3, 1, u8_2, u8_2)
    CONVERT(3, 2, u8_4, u8_4)
#undef CONVERT
#define WIDE(log2, to, from)                                                     \
    f->convert_full[log2][4][0] = f->convert_full[log2][4][1] = to##_masked;     \
    f->convert_masked[log2][4][0] = f->convert_masked[log2][4][1] = to##_masked; \
    f->convert_full[4][log2][0] = f->convert_full[4][log2][1] = from##_masked;   \
    f->convert_masked[4][log2][0] = f->convert_masked[4][log2][1] = from##_masked;
    WIDE(0, u1_w, w_1)
    WIDE(1, u2_w, w_2)
    WIDE(2, u4_w, w_4)
    WIDE(3, u8_w, w_8)
#undef WIDE
#define SREG(id, name) f->sreg[PTX_SREG_##id] = sreg_##name;
    SREG(TID, tid)
    SREG(NTID, ntid)
    SREG(LANEID, laneid)
    SREG(WARPID, warpid)
    SREG(NWARPID, nwarpid)
    SREG(CTAID, ctaid)
    SREG(NCTAID, nctaid)
    SREG(SMID, smid)
    SREG(NSMID, nsmid)
    SREG(GRIDID, gridid)
    SREG(IS_EXPLICIT_CLUSTER, is_explicit_cluster)
    SREG(CLUSTERID, clusterid)
    SREG(NCLUSTERID, nclusterid)
    SREG(CLUSTER_CTAID, cluster_ctaid)
    SREG(CLUSTER_NCTAID, cluster_nctaid)
    SREG(CLUSTER_CTARANK, cluster_ctarank)
    SREG(CLUSTER_NCTARANK, cluster_nctarank)
    SREG(LANEMASK_EQ, lanemask_eq)
    SREG(LANEMASK_LE, lanemask_le)
    SREG(LANEMASK_LT, lanemask_lt)
    SREG(LANEMASK_GE, lanemask_ge)
    SREG(LANEMASK_GT, lanemask_gt)
    SREG(CLOCK, clock)
    SREG(CLOCK_HI, clock_hi)
    SREG(CLOCK64, clock64)
    SREG(GLOBALTIMER, globaltimer)
    SREG(GLOBALTIMER_LO, globaltimer_lo)
    SREG(GLOBALTIMER_HI, globaltimer_hi)
    SREG(RESERVED_SMEM_BEGIN, zero)
    SREG(RESERVED_SMEM_END, reserved_end)
    SREG(RESERVED_SMEM_CAP, reserved_cap)
    SREG(RESERVED_SMEM_0, zero)
    SREG(RESERVED_SMEM_1, zero)
    SREG(TOTAL_SMEM_SIZE, total_smem)
    SREG(AGGR_SMEM_SIZE, aggr_smem)
    SREG(DYNAMIC_SMEM_SIZE, dynamic_smem)
    SREG(CURRENT_GRAPH_EXEC, zero64)
#undef SREG
    /* %pm reads as zero: no performance monitor runs. So does %envreg, except in a cooperative launch. */
    for (unsigned i = 0; i < 8; i++) {
        f->sreg[PTX_SREG_PM0 + i] = sreg_zero;
        f->sreg[PTX_SREG_PM0_64 + i] = sreg_zero64;
    }
    for (unsigned i = 0; i < 32; i++) {
        f->sreg[PTX_SREG_ENVREG0 + i] = sreg_zero;
    }
    f->sreg[PTX_SREG_ENVREG0 + 1] = sreg_workspace_high;
    f->sreg[PTX_SREG_ENVREG0 + 2] = sreg_workspace_low;
}
