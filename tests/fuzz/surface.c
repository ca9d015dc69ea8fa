/* The accounts of the driver surface. cuMemGetInfo would not do: it answers with the lesser of the device's
   memory and the host's, so that on a small host what modules hold does not show, and on a large one it
   does. */
#include "surface.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/api.h"

struct fuzz_held fuzz_held(void)
{
    struct fuzz_held held = {0};
    uint64_t available, total;
    if (api_device() == NULL)
        return held;
    api_lock();
    emu_memory_info(api_device()->machine, &available, &total);
    held.device_bytes = total - available;
    held.host_bytes = UINT64_MAX - api_memory_spare();
    held.allocations = api_allocation_count();
    api_unlock();
    return held;
}

void fuzz_compare(const char *target, struct fuzz_held before, struct fuzz_held after)
{
    if (before.device_bytes == after.device_bytes && before.host_bytes == after.host_bytes &&
        before.allocations == after.allocations)
        return;
    fprintf(stderr,
            "%s: holds other memory than before: device %+" PRId64 " bytes, host %+" PRId64
            " bytes, allocations %+" PRId64 "\n",
            target, (int64_t)(after.device_bytes - before.device_bytes),
            (int64_t)(after.host_bytes - before.host_bytes),
            (int64_t)(after.allocations - before.allocations));
    abort();
}
