/* Loading NVRTC (NVRTC 13.0 manual, "Accessing Lowered Names", "Precompiled Header Support" for the newest
 * calls). */
#include "driver/nvrtc.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "driver/library.h"

static const struct clab_symbol symbols[] = {
#define FN(member, symbol, since, required) {#symbol, offsetof(struct clab_nvrtc, member), since, required},
#include "driver/nvrtc.def"
};

/* NVRTC opens its second library, libnvrtc-builtins.so.MAJOR.MINOR, by its bare name when it compiles, and
   has no run path of its own (13.0): outside the loader's folders it would not find it. Once opened from
   NVRTC's own folder it is there under that name. Where it is not, NVRTC says so itself. */
static void open_builtins(const char *nvrtc_path, int major, int minor)
{
    char path[4096 + 64];
    const char *slash = strrchr(nvrtc_path, '/');
    if (slash == NULL)
        return;
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - nvrtc_path), nvrtc_path,
             major, minor);
    (void)dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays for the life of the process, as NVRTC does */
}

clab_status clab_nvrtc_load(const char *path, struct clab_nvrtc *out, struct clab_error *error)
{
    const char *system_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
    memset(out, 0, sizeof *out);
    void *handle = clab_library_tool(path, system_names, "NVRTC", "nvidia-cuda-nvrtc", out->path,
                                     sizeof out->path, error);
    if (handle == NULL)
        return CLAB_NO_TOOLKIT;
    const struct clab_symbol *missing =
        clab_library_fill(handle, symbols, sizeof symbols / sizeof symbols[0], out, NULL);
    int major = 0, minor = 0;
    if (out->nvrtcVersion != NULL && out->nvrtcVersion(&major, &minor) == NVRTC_SUCCESS)
        out->version = major * 1000 + minor * 10;
    open_builtins(out->path, major, minor);
    if (missing != NULL)
        return clab_error_set(error, CLAB_NO_TOOLKIT, "%s (NVRTC %d.%d) has no %s, which clusterlab needs",
                              out->path, major, minor, missing->name);
    return CLAB_OK;
}
