/* Names by instruction set and hook mode. Each ops_<chapter>.c is compiled once per set in CLAB_EMU_SETS
   (base, v3 = x86-64-v3, v4 = x86-64-v4) and per hook mode; CMake defines EMU_SET (base, v3, v4) and
   EMU_HOOKS (0 or 1). EMU_SETNAME(emu_add) is then emu_add__base0, emu_add__v3_1, …: only emitters need it,
   all else is static. */
#ifndef CLAB_EMU_SET_H
#define CLAB_EMU_SET_H

#define EMU_PASTE3_(a, b, c) a##__##b##_##c
#define EMU_PASTE3(a, b, c)  EMU_PASTE3_(a, b, c)
#ifdef EMU_SET
#define EMU_SETNAME(name) EMU_PASTE3(name, EMU_SET, EMU_HOOKS)
#endif

#endif
