/* A library whose variables have the names of the driver's functions; the driver is opened by its soname. */
#include <dlfcn.h>
#include <stddef.h>

int (*cuInit)(unsigned flags);

int driver_init(void);
int driver_init(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver != NULL ? dlsym(driver, "cuInit") : NULL;
    *(void **)&cuInit = found;
    return found != NULL ? cuInit(0) : -1;
}
