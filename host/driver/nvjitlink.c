/* Loading nvJitLink (nvJitLink 13.0 manual). nvJitLink.h defines its functions inline over versioned symbols,
   so the header's own names cannot be linked to; the library exports plain names too, the 12 series not all
   of them. */
#include "driver/nvjitlink.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "driver/library.h"

static const struct clab_symbol symbols[] = {
#define FN(member, symbol, since, required) \
    {#symbol, offsetof(struct clab_nvjitlink, member), since, required},
#include "driver/nvjitlink.def"
};

/* The versioned twin of a plain name. A library has those of its own version and older ones of its major
 * version. */
static void *versioned(void *handle, const char *name)
{
    for (int major = 13; major >= 12; major--)
        for (int minor = 9; minor >= 0; minor--) {
            char symbol[96];
            snprintf(symbol, sizeof symbol, "__%s_%d_%d", name, major, minor);
            void *address = dlsym(handle, symbol);
            if (address != NULL)
                return address;
        }
    return NULL;
}

clab_status clab_nvjitlink_load(const char *path, struct clab_nvjitlink *out, struct clab_error *error)
{
    const char *system_names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so", NULL};
    memset(out, 0, sizeof *out);
    void *handle = clab_library_tool(path, system_names, "nvJitLink", "nvidia-nvjitlink", out->path,
                                     sizeof out->path, error);
    if (handle == NULL)
        return CLAB_NO_TOOLKIT;
    const struct clab_symbol *missing =
        clab_library_fill(handle, symbols, sizeof symbols / sizeof symbols[0], out, versioned);
    unsigned int major = 0, minor = 0;
    if (out->nvJitLinkVersion != NULL && out->nvJitLinkVersion(&major, &minor) == NVJITLINK_SUCCESS)
        out->version = (int)(major * 1000 + minor * 10);
    if (missing != NULL)
        return clab_error_set(error, CLAB_NO_TOOLKIT, "%s has no %s, which clusterlab needs", out->path,
                              missing->name);
    return CLAB_OK;
}
