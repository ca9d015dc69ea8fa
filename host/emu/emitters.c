/* The table from row to emitter, made from insn.def once per instruction set and hook mode. Emitters are
   weak: a row whose emitter does not exist, or is emu_none, is refused by name when a kernel uses it. */
#include "emu/emit.h"

#define INSN(id, syntax, roles, class, isa, sm, on, section, handler) \
    extern emu_emitter EMU_SETNAME(handler) __attribute__((weak));
#include "ptx/insn.def"
#undef INSN

static emu_emitter *const emitters[PTX_ROW_COUNT] = {
#define INSN(id, syntax, roles, class, isa, sm, on, section, handler) EMU_SETNAME(handler),
#include "ptx/insn.def"
#undef INSN
};

emu_emitter *const *EMU_SETNAME(emu_emitters_get)(void);
emu_emitter *const *EMU_SETNAME(emu_emitters_get)(void)
{
    return emitters;
}
