/* In fuzzing builds the operations are compiled once, without hooks: these stand in for the others, so that
   asking for hooks gives operations that call none. */
#include "emu/code.h"

void emu_framework_fill__base_1(void);
const struct emu_framework *emu_framework_get__base_1(void);
emu_emitter *const *emu_emitters_get__base_1(void);
const struct emu_framework *emu_framework_get__base_0(void);
emu_emitter *const *emu_emitters_get__base_0(void);

void emu_framework_fill__base_1(void)
{
}

const struct emu_framework *emu_framework_get__base_1(void)
{
    return emu_framework_get__base_0();
}

emu_emitter *const *emu_emitters_get__base_1(void)
{
    return emu_emitters_get__base_0();
}
