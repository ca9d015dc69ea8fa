/* Opening a shared library and filling a struct of function pointers from a table of symbols: what the
   loaders of libcuda, NVRTC, nvJitLink and NVML share. It knows nothing of any of them. */
#include "driver/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

void *clab_library_open(const char *const *names, char *path, size_t path_bytes, char *reason,
                        size_t reason_bytes)
{
    reason[0] = '\0';
    for (size_t i = 0; names[i] != NULL; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle != NULL) {
            struct link_map *map = NULL;
            bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name[0] != '\0';
            snprintf(path, path_bytes, "%s", known ? map->l_name : names[i]);
            return handle;
        }
        /* The first failure says most: later names are fallbacks. dlerror starts with the file's name. */
        const char *words = dlerror();
        if (reason[0] == '\0' && words != NULL)
            snprintf(reason, reason_bytes, "%s", words);
    }
    return NULL;
}

void *clab_library_tool(const char *path, const char *const *names, const char *what, const char *wheel,
                        char *out_path, size_t path_bytes, struct clab_error *error)
{
    const char *const one[] = {path, NULL};
    char reason[512];
    void *handle = clab_library_open(path != NULL ? one : names, out_path, path_bytes, reason, sizeof reason);
    if (handle == NULL) {
        clab_error_set(error, CLAB_NO_TOOLKIT, "no %s: %s", what, reason);
        clab_error_remedy(error, "tools/setup fetches it; a CUDA toolkit or the pip wheel %s has it", wheel);
    }
    return handle;
}

const struct clab_symbol *clab_library_fill(void *handle, const struct clab_symbol *symbols, size_t count,
                                            void *base, void *(*resolve)(void *handle, const char *name))
{
    const struct clab_symbol *missing = NULL;
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (address == NULL && resolve != NULL)
            address = resolve(handle, symbols[i].name);
        if (address == NULL && symbols[i].required && missing == NULL)
            missing = &symbols[i];
        /* POSIX lets a void pointer hold a function's address; memcpy because C has no such conversion. */
        memcpy((char *)base + symbols[i].offset, &address, sizeof address);
    }
    return missing;
}
