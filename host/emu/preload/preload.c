/* What `clusterlab with-emulator` preloads: it loads the stand-in driver and the stand-in nvJitLink of its
   own folder before the program starts, each under its soname, so that a later dlopen by that name finds
   them, also from a library whose DT_RPATH names another folder (dlopen(3), ld.so(8)). The libraries are not
   preloaded themselves, since the names of preloaded ones come before everybody's: programs that keep the
   addresses of the driver's functions in variables of the same names (slang-rhi, cuew) would then write into
   the driver.

   Exports nothing. A program that is linked to libcuda.so.1 and whose DT_RPATH leads to another one has that
   by now: it is started again with the stand-in itself preloaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"
#define LINKER "libnvJitLink.so.13"

extern char **environ;

/* Replaces this library by the driver in LD_PRELOAD; false when it is not there. */
static int preload_driver(const char *own, const char *driver)
{
    const char *old = getenv("LD_PRELOAD");
    const char *at = old != NULL ? strstr(old, strrchr(own, '/') + 1) : NULL;
    if (at == NULL)
        return 0;
    const char *end = at + strcspn(at, ": ");
    while (at > old && at[-1] != ':' && at[-1] != ' ')
        at--;
    char *text = malloc(strlen(old) + strlen(driver) + 1);
    if (text == NULL)
        return 0;
    sprintf(text, "%.*s%s%s", (int)(at - old), old, driver, end);
    const int done = setenv("LD_PRELOAD", text, 1) == 0;
    free(text);
    return done;
}

/* glibc hands a constructor what main gets. */
__attribute__((constructor)) static void load(int argc, char **argv)
{
    (void)argc;
    Dl_info self;
    char path[4200];
    if (dladdr((const void *)DRIVER, &self) == 0 || self.dli_fname == NULL)
        return;
    const char *slash = strrchr(self.dli_fname, '/');
    if (slash == NULL || slash - self.dli_fname > 4096)
        return;
    const int folder = (int)(slash - self.dli_fname);
    void *other = dlopen(DRIVER, RTLD_NOW | RTLD_NOLOAD);
    snprintf(path, sizeof path, "%.*s/" DRIVER, folder, self.dli_fname);
    void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    /* A path with a blank would be two words of LD_PRELOAD. */
    if (driver != NULL && other != NULL && other != driver && argv != NULL &&
        strpbrk(path, " \t\n:") == NULL && preload_driver(self.dli_fname, path))
        execve("/proc/self/exe", argv, environ);
    snprintf(path, sizeof path, "%.*s/" LINKER, folder, self.dli_fname);
    dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
