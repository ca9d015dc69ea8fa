/* Turning a CUresult into an error that says which call failed, on what, and why. */
#ifndef CLAB_DRIVER_CALL_H
#define CLAB_DRIVER_CALL_H

#include "driver/driver.h"

/* Calls driver->symbol with the parenthesised arguments and yields a clab_status; the rest is a printf format
   (or NULL) with the key arguments, used only when the call fails: status = CLAB_CALL(driver, error,
   cuMemAlloc_v2, (&address, bytes), "%zu bytes", bytes); A symbol that this driver lacks gives
   CLAB_UNSUPPORTED, with the CUDA version that brought it. */
#define CLAB_CALL(driver, error, symbol, arguments, ...) \
    ((driver)->symbol == NULL                            \
         ? clab_call_missing((driver), (error), #symbol) \
         : clab_call_result((driver), (error), #symbol, (driver)->symbol arguments, __VA_ARGS__))

/* CLAB_OK for CUDA_SUCCESS, leaving `error` alone. Otherwise fills `error` with the call's name (its version
   suffix dropped), the arguments, the CUresult's number and name, a remedy where one is known and, from the
   stand-in driver, its detail (instruction, CTA, lane, address, ...), whose status then wins. Returns
   error->status, or the status itself when error is NULL. */
clab_status clab_call_result(const struct clab_driver *driver, struct clab_error *error, const char *call,
                             CUresult result, const char *format, ...) CLAB_PRINTF(5, 6);
clab_status clab_call_missing(const struct clab_driver *driver, struct clab_error *error, const char *symbol);

/* What a CUresult means for the caller: FAULT, LAUNCH, LOAD, NOT_FOUND, NO_DEVICE, NO_MEMORY, UNSUPPORTED,
   TIMEOUT or DRIVER. `call` distinguishes codes that several calls share (CUDA_ERROR_INVALID_VALUE of a
   launch). */
clab_status clab_call_status(const char *call, CUresult result);

/* The name of a CUresult, from the driver (borrowed), or "" when the driver does not know it. */
const char *clab_call_name(const struct clab_driver *driver, CUresult result);

/* Whether the context is unusable after this result: every later call in it fails, and only a new process
   helps (CUDA Driver API 13.0, CUresult: "This leaves the process in an inconsistent state"). */
bool clab_call_is_sticky(CUresult result);

#endif
