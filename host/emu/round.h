/* Directed rounding: the processor's rounding mode around a loop. The rest of the emulator runs in round to
   nearest. Memory barriers keep the loop's loads and stores, and so its arithmetic, between enter and leave.
 */
#ifndef CLAB_EMU_ROUND_H
#define CLAB_EMU_ROUND_H

#include "ptx/ptx.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <fenv.h>
#endif

enum emu_round { EMU_RN, EMU_RZ, EMU_RM, EMU_RP };

/* The mode that the instruction names (.rn .rz .rm .rp), RN when it names none. */
static inline enum emu_round emu_round_of(const struct ptx_insn *insn)
{
    if (ptx_has(insn, PTX_MOD_RZ))
        return EMU_RZ;
    if (ptx_has(insn, PTX_MOD_RM))
        return EMU_RM;
    return ptx_has(insn, PTX_MOD_RP) ? EMU_RP : EMU_RN;
}

/* Sets the mode; returns what emu_round_leave restores. */
static inline uint64_t emu_round_enter(unsigned mode)
{
#if defined(__x86_64__)
    static const unsigned bits[] = {0, 0x6000, 0x2000, 0x4000};
    const unsigned old = _mm_getcsr();
    _mm_setcsr((old & ~0x6000u) | bits[mode]);
#elif defined(__aarch64__)
    static const uint64_t bits[] = {0, UINT64_C(3) << 22, UINT64_C(2) << 22, UINT64_C(1) << 22};
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"((old & ~(UINT64_C(3) << 22)) | bits[mode]));
#else
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    const int old = fegetround();
    fesetround(modes[mode]);
#endif
    __asm__ volatile("" : : : "memory");
    return (uint64_t)old;
}

static inline void emu_round_leave(uint64_t old)
{
    __asm__ volatile("" : : : "memory");
#if defined(__x86_64__)
    _mm_setcsr((unsigned)old);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(old));
#else
    fesetround((int)old);
#endif
}

/* NAME_rounded_full and NAME_rounded_masked: the pair NAME in the mode op->u8[0]. */
#define EMU_ROUNDED(NAME)                                                                             \
    static const struct emu_op *NAME##_rounded_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                                 \
        const uint64_t old = emu_round_enter(op->u8[0]);                                              \
        const struct emu_op *next = NAME##_full(warp, op);                                            \
        emu_round_leave(old);                                                                         \
        return next;                                                                                  \
    }                                                                                                 \
    static const struct emu_op *NAME##_rounded_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                                 \
        const uint64_t old = emu_round_enter(op->u8[0]);                                              \
        const struct emu_op *next = NAME##_masked(warp, op);                                          \
        emu_round_leave(old);                                                                         \
        return next;                                                                                  \
    }

#endif
