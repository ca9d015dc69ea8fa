/* "OpenGL Interoperability", "EGL Interoperability", "VDPAU Interoperability": there is no display and no
   graphics library to share anything with, so each call fails with the code of a GPU in such a machine
   (api_graphics.def), after one line in the log. The arguments are not looked at, hence the prototypes. */
#include "emu/api.h"

#include "emu/log.h"

static CUresult absent(const char *call, CUresult result)
{
    emu_log_once("%s fails: nothing can be shared with OpenGL, EGL or VDPAU here", call);
    return api_fail(result, "nothing can be shared with OpenGL, EGL or VDPAU here");
}

/* Each name is declared as it is defined: cuda.h has none of them. */
#define ABSENT(symbol, result)                                               \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol(void);    \
    CUresult CUDAAPI symbol(void)                                            \
    {                                                                        \
        CUresult entered = api_enter(__func__);                              \
        return entered != CUDA_SUCCESS ? entered : absent(__func__, result); \
    }
#define ABSENT_EARLY(symbol, result)                                         \
    __attribute__((visibility("default"))) CUresult CUDAAPI symbol(void);    \
    CUresult CUDAAPI symbol(void)                                            \
    {                                                                        \
        CUresult entered = api_enter_early(__func__);                        \
        return entered != CUDA_SUCCESS ? entered : absent(__func__, result); \
    }
#include "emu/api_graphics.def"
