/* Loading libcuda: the one table of cuda.def is filled by dlopen and dlsym, and the library is asked for the
   private channel (channel.h), which only the stand-in driver has. A process keeps the first libcuda it
   loads: two of them in one process would answer each other's symbols, so each device is driven from its own
   worker.

   The functions called before cuInit are the two that may be: cuDriverGetVersion and cuGetExportTable
   (CUDA Driver API 13.0, "Version Management"; the CUDA runtime itself calls both first). */
#include "driver/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/library.h"

static const struct clab_symbol symbols[] = {
#define CU(symbol, base, since, required) {#symbol, offsetof(struct clab_driver, symbol), since, required},
#include "driver/cuda.def"
};
static const size_t symbol_count = sizeof symbols / sizeof symbols[0];

/* The process's one libcuda. Guarded by `lock`; once `loaded`, never changed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct clab_driver process_driver;
static bool loaded;

int clab_driver_symbol_since(const char *symbol)
{
    for (size_t i = 0; i < symbol_count; i++)
        if (strcmp(symbols[i].name, symbol) == 0)
            return symbols[i].since;
    return 0;
}

/* The channel of a stand-in of our own build; NULL with *out_foreign when it is one of another build. */
static const struct clab_channel *ask_for_channel(const struct clab_driver *driver, bool *out_foreign)
{
    CUuuid id;
    memcpy(id.bytes, CLAB_CHANNEL_UUID, sizeof id.bytes);
    const void *table = NULL;
    *out_foreign = false;
    if (driver->cuGetExportTable == NULL || driver->cuGetExportTable(&table, &id) != CUDA_SUCCESS ||
        table == NULL)
        return NULL;
    const struct clab_channel *channel = table;
    if (channel->version != CLAB_CHANNEL_VERSION || channel->size_bytes != sizeof *channel ||
        channel->error_bytes != sizeof(struct clab_error) ||
        channel->counters_bytes != sizeof(struct clab_counters)) {
        *out_foreign = true;
        return NULL;
    }
    return channel;
}

static clab_status open_and_fill(const char *path, struct clab_driver *driver, struct clab_error *error)
{
    const char *names[] = {path != NULL ? path : "libcuda.so.1", NULL};
    char reason[512];
    void *handle = clab_library_open(names, driver->path, sizeof driver->path, reason, sizeof reason);
    if (handle == NULL) {
        clab_error_set(error, CLAB_NO_DEVICE, "no CUDA driver: %s", reason);
        return path != NULL ? CLAB_NO_DEVICE
                            : clab_error_remedy(error, "install NVIDIA's driver, or use --device emu:sm_90");
    }
    const struct clab_symbol *missing = clab_library_fill(handle, symbols, symbol_count, driver, NULL);
    if (driver->cuDriverGetVersion == NULL || driver->cuDriverGetVersion(&driver->version) != CUDA_SUCCESS)
        driver->version = 0; /* unknown: NVIDIA's link-time stub answers with an error here */
    int major = driver->version / 1000, minor = driver->version % 1000 / 10;
    if (missing != NULL) {
        clab_error_set(error, CLAB_NO_DEVICE,
                       "%s has no %s, which clusterlab needs (CUDA %d.%d brought it; this "
                       "driver is for %d.%d)",
                       driver->path, missing->name, missing->since / 1000, missing->since % 1000 / 10, major,
                       minor);
        return clab_error_remedy(error, "update NVIDIA's driver to one for CUDA 12.0 or later");
    }
    if (driver->version != 0 && driver->version < CLAB_DRIVER_LEAST_VERSION) {
        clab_error_set(error, CLAB_NO_DEVICE, "%s is a driver for CUDA %d.%d; clusterlab needs 12.0 or later",
                       driver->path, major, minor);
        return clab_error_remedy(error, "update NVIDIA's driver");
    }
    bool foreign;
    driver->channel = ask_for_channel(driver, &foreign);
    if (foreign) {
        clab_error_set(error, CLAB_NO_DEVICE, "%s is a stand-in driver of another clusterlab build",
                       driver->path);
        return clab_error_remedy(error, "use the libcuda.so.1 built together with this program");
    }
    return CLAB_OK;
}

clab_status clab_driver_load(const char *path, const struct clab_driver **out_driver,
                             struct clab_error *error)
{
    *out_driver = NULL;
    clab_status status = CLAB_OK;
    pthread_mutex_lock(&lock);
    static char first_request[4096]; /* "" for the system's */
    if (!loaded) {
        status = open_and_fill(path, &process_driver, error);
        if (status == CLAB_OK) {
            snprintf(first_request, sizeof first_request, "%s", path != NULL ? path : "");
            loaded = true;
        }
    } else if (strcmp(first_request, path != NULL ? path : "") != 0 &&
               (path == NULL || strcmp(process_driver.path, path) != 0)) {
        status =
            clab_error_set(error, CLAB_INTERNAL,
                           "this process already uses %s and cannot load %s too: one libcuda per process",
                           process_driver.path, path != NULL ? path : "libcuda.so.1");
    }
    if (status == CLAB_OK)
        *out_driver = &process_driver;
    pthread_mutex_unlock(&lock);
    return status;
}

clab_status clab_driver_emulator_path(char *path, size_t bytes, struct clab_error *error)
{
    const char *override = getenv("CLUSTERLAB_EMU_LIBRARY");
    if (override != NULL && override[0] != '\0') {
        if (access(override, R_OK) != 0)
            return clab_error_set(error, CLAB_NO_DEVICE, "CLUSTERLAB_EMU_LIBRARY names %s: %s", override,
                                  strerror(errno));
        char *full = realpath(override, NULL);
        snprintf(path, bytes, "%s", full != NULL ? full : override);
        free(full);
        return CLAB_OK;
    }
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return clab_error_set(error, CLAB_NO_DEVICE, "cannot read /proc/self/exe: %s", strerror(errno));
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL)
        *slash = '\0';
    static const char *const places[] = {"../emu/libcuda.so.1", "../lib/clusterlab/emu/libcuda.so.1",
                                         "../lib64/clusterlab/emu/libcuda.so.1"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char candidate[4200];
        snprintf(candidate, sizeof candidate, "%s/%s", program, places[i]);
        char *full = realpath(candidate, NULL);
        if (full != NULL) {
            snprintf(path, bytes, "%s", full);
            free(full);
            return CLAB_OK;
        }
    }
    clab_error_set(error, CLAB_NO_DEVICE, "the stand-in driver is missing: no %s, %s or %s seen from %s",
                   places[0], places[1], places[2], program);
    return clab_error_remedy(error,
                             "build the target clab_emu, or set CLUSTERLAB_EMU_LIBRARY to its libcuda.so.1");
}
