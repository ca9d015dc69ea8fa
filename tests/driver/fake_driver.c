/* A libcuda of a few lines for the loader's tests: the required symbols, each returning success. FAKE_VERSION
   is what cuDriverGetVersion says; FAKE_WITHOUT_CLUSTERS leaves the cluster calls out; FAKE_CHANNEL answers
   the private channel with that version. */
#include <string.h>

#include "driver/channel.h"

#define EXPORT __attribute__((visibility("default")))

#define FAKE_0(symbol)
#define FAKE_1(symbol)       \
    EXPORT int symbol(void); \
    int symbol(void)         \
    {                        \
        return 0;            \
    }
#define cuDriverGetVersion unused_cuDriverGetVersion
#ifdef FAKE_WITHOUT_CLUSTERS
#define cuOccupancyMaxPotentialClusterSize unused_cuOccupancyMaxPotentialClusterSize
#endif
#define EXPAND(symbol, required)          FAKE_##required(symbol)
#define CU(symbol, base, since, required) EXPAND(symbol, required)
#include "driver/cuda.def"
#undef cuDriverGetVersion

EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = FAKE_VERSION;
    return 0;
}

EXPORT int cuGetExportTable(const void **table, const void *id);
int cuGetExportTable(const void **table, const void *id)
{
#ifdef FAKE_CHANNEL
    static const struct clab_channel channel = {.size_bytes = sizeof channel,
                                                .version = FAKE_CHANNEL,
                                                .error_bytes = sizeof(struct clab_error),
                                                .counters_bytes = sizeof(struct clab_counters),
                                                .emulated = 1,
                                                .name = "fake"};
    if (memcmp(id, CLAB_CHANNEL_UUID, 16) == 0) {
        *table = &channel;
        return 0;
    }
#endif
    (void)table, (void)id;
    return 1; /* CUDA_ERROR_INVALID_VALUE */
}
