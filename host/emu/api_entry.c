/* "Driver Entry Point Access": cuGetProcAddress. May be called before cuInit. A name that no driver knows and
   a name that is newer than the version asked for get distinct answers in the second form. */
#include "emu/api.h"
#include "emu/exports.h"

#include <string.h>

static CUresult look_up(const char *call, const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    cuuint64_t known_flags =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    struct api_thread *thread = api_thread();
    api_lock();
    thread->call = call;
    API_REQUIRE(symbol != NULL && pfn != NULL && (flags & ~known_flags) == 0);
    if (version < 0) /* the newest form, on the H200 */
        version = API_DRIVER_VERSION;
    if (version > API_DRIVER_VERSION)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "CUDA version %d is newer than this driver", version);
    *pfn = NULL;
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int known;
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const struct emu_export *found = emu_export_find(symbol, version, per_thread, &known);
    if (found == NULL) {
        if (status != NULL) {
            *status =
                known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
            return api_leave(); /* the status says it */
        }
        return api_fail(CUDA_ERROR_NOT_FOUND, known ? "%s is newer than CUDA %d.%d" : "no driver knows %s",
                        symbol, version / 1000, version % 1000 / 10);
    }
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    _Static_assert(sizeof found->address == sizeof *pfn, "a function pointer fits void *, as POSIX says");
    memcpy(pfn, &found->address, sizeof *pfn);
    return api_leave();
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *symbolStatus)
{
    CUdriverProcAddressQueryResult ignored;
    return look_up(__func__, symbol, pfn, cudaVersion, flags, symbolStatus != NULL ? symbolStatus : &ignored);
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return look_up(__func__, symbol, pfn, cudaVersion, flags, NULL);
}
