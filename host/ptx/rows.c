/* The tables behind ptx.h: types, state spaces, qualifiers, special registers and instruction rows, each one
   an expansion of its .def file. No code: target rules are in target.c, matching in match.c. */
#include "ptx/ptx.h"

const struct ptx_type_info ptx_types[PTX_TYPE_COUNT] = {
#define PTX_TYPE(id, text, bits, class) {text, bits, PTX_CLASS_##class},
#include "ptx/types.def"
#undef PTX_TYPE
};

const char *const ptx_space_text[PTX_SPACE_COUNT] = {
#define PTX_SPACE(id, text) text,
#include "ptx/spaces.def"
#undef PTX_SPACE
};

const char *const ptx_mod_text[PTX_MOD_COUNT] = {
#define PTX_MOD(id, text) text,
#include "ptx/mods.def"
#undef PTX_MOD
};

const struct ptx_sreg_info ptx_sregs[PTX_SREG_COUNT] = {
#define PTX_SREG(id, text, type, components, isa, sm) {text, PTX_##type, components, isa, sm},
#include "ptx/sregs.def"
#undef PTX_SREG
};

const struct ptx_row_info ptx_rows[PTX_ROW_COUNT] = {
#define INSN(id, syntax, roles, class, isa, sm, on, section, handler) \
    {#id, syntax, roles, #class, isa, sm, PTX_ON_##on, section},
#include "ptx/insn.def"
#undef INSN
};
