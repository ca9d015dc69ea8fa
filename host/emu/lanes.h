/* Handler makers for the arithmetic chapters: each macro defines a static pair NAME_full and NAME_masked from
   one expression over lanes. x, y, z are the source lanes (types TA, TB, TC), the value has type TD. */
#ifndef CLAB_EMU_LANES_H
#define CLAB_EMU_LANES_H

#include "emu/op.h"

#define EMU_UNARY(NAME, TD, TA, EXPR)                                                         \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        TD *d = EMU_ROW(TD, warp, op->d);                                                     \
        const TA *a = EMU_ROW(TA, warp, op->a);                                               \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const TA x = a[i];                                                                \
            d[i] = (TD)(EXPR);                                                                \
        }                                                                                     \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        TD *d = EMU_ROW(TD, warp, op->d);                                                     \
        const TA *a = EMU_ROW(TA, warp, op->a);                                               \
        const uint32_t *on = warp->lane_mask;                                                 \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const TA x = a[i];                                                                \
            const TD r = (TD)(EXPR);                                                          \
            d[i] = on[i] ? r : d[i];                                                          \
        }                                                                                     \
        return op + 1;                                                                        \
    }

#define EMU_BINARY(NAME, TD, TA, TB, EXPR)                                                    \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        TD *d = EMU_ROW(TD, warp, op->d);                                                     \
        const TA *a = EMU_ROW(TA, warp, op->a);                                               \
        const TB *b = EMU_ROW(TB, warp, op->b);                                               \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const TA x = a[i];                                                                \
            const TB y = b[i];                                                                \
            d[i] = (TD)(EXPR);                                                                \
        }                                                                                     \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        TD *d = EMU_ROW(TD, warp, op->d);                                                     \
        const TA *a = EMU_ROW(TA, warp, op->a);                                               \
        const TB *b = EMU_ROW(TB, warp, op->b);                                               \
        const uint32_t *on = warp->lane_mask;                                                 \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const TA x = a[i];                                                                \
            const TB y = b[i];                                                                \
            const TD r = (TD)(EXPR);                                                          \
            d[i] = on[i] ? r : d[i];                                                          \
        }                                                                                     \
        return op + 1;                                                                        \
    }

#define EMU_TERNARY(NAME, TD, TA, TB, TC, EXPR)                                               \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        TD *d = EMU_ROW(TD, warp, op->d);                                                     \
        const TA *a = EMU_ROW(TA, warp, op->a);                                               \
        const TB *b = EMU_ROW(TB, warp, op->b);                                               \
        const TC *c = EMU_ROW(TC, warp, op->c);                                               \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const TA x = a[i];                                                                \
            const TB y = b[i];                                                                \
            const TC z = c[i];                                                                \
            d[i] = (TD)(EXPR);                                                                \
        }                                                                                     \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        TD *d = EMU_ROW(TD, warp, op->d);                                                     \
        const TA *a = EMU_ROW(TA, warp, op->a);                                               \
        const TB *b = EMU_ROW(TB, warp, op->b);                                               \
        const TC *c = EMU_ROW(TC, warp, op->c);                                               \
        const uint32_t *on = warp->lane_mask;                                                 \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const TA x = a[i];                                                                \
            const TB y = b[i];                                                                \
            const TC z = c[i];                                                                \
            const TD r = (TD)(EXPR);                                                          \
            d[i] = on[i] ? r : d[i];                                                          \
        }                                                                                     \
        return op + 1;                                                                        \
    }

#endif
