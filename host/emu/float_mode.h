/* The program's floating-point environment (rounding, traps, flush to zero, flags) is neither used nor
   changed by the emulator: whatever computes, from reading a literal to running a kernel, does so between
   emu_float_enter and emu_float_leave. Threads that are started in between inherit the default one. */
#ifndef CLAB_EMU_FLOAT_MODE_H
#define CLAB_EMU_FLOAT_MODE_H

#include <fenv.h>

static inline void emu_float_enter(fenv_t *out_program)
{
    fegetenv(out_program);
    fesetenv(FE_DFL_ENV);
}

static inline void emu_float_leave(const fenv_t *program)
{
    fesetenv(program);
}

#endif
