/* The compiled instruction sets, and the choice among them (design: "Instruction sets"). CMake defines
   EMU_WITH_v3 and EMU_WITH_v4 when the operations were compiled for them. */
#include <pthread.h>
#include <string.h>

#include "emu/code.h"

#define SET(set, hooks)                                                   \
    void emu_framework_fill__##set##_##hooks(void);                       \
    const struct emu_framework *emu_framework_get__##set##_##hooks(void); \
    emu_emitter *const *emu_emitters_get__##set##_##hooks(void);

SET(base, 0)
SET(base, 1)
#ifdef EMU_WITH_v3
SET(v3, 0)
SET(v3, 1)
#endif
#ifdef EMU_WITH_v4
SET(v4, 0)
SET(v4, 1)
#endif
#undef SET

/* Best last. */
static struct emu_set sets[6];
static unsigned n_sets;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add(const char *name, bool hooks, const struct emu_framework *framework,
                emu_emitter *const *emitters)
{
    sets[n_sets++] =
        (struct emu_set){.name = name, .hooks = hooks, .framework = framework, .emitters = emitters};
}

static void fill(void)
{
#define SET(set, hooks)                    \
    emu_framework_fill__##set##_##hooks(); \
    add(#set, hooks, emu_framework_get__##set##_##hooks(), emu_emitters_get__##set##_##hooks())
    SET(base, 0);
    SET(base, 1);
#if defined(EMU_WITH_v3) || defined(EMU_WITH_v4)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#endif
#ifdef EMU_WITH_v3
    if (v3) {
        SET(v3, 0);
        SET(v3, 1);
    }
#endif
#ifdef EMU_WITH_v4
    if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        SET(v4, 0);
        SET(v4, 1);
    }
#endif
#undef SET
}

const struct emu_set *emu_set_get(const char *name, bool hooks)
{
    pthread_once(&once, fill);
    for (unsigned i = n_sets; i-- > 0;) {
        if (sets[i].hooks == hooks && (!name || strcmp(sets[i].name, name) == 0)) {
            return &sets[i];
        }
    }
    return NULL;
}
