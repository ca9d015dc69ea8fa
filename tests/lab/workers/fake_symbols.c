/* Every required symbol of a libcuda, weak and returning success: fake_gpu.c defines those that mean
 * something. */
#define EXPORT __attribute__((visibility("default"), weak))
#define FAKE_0(symbol)
#define FAKE_1(symbol)       \
    EXPORT int symbol(void); \
    int symbol(void)         \
    {                        \
        return 0;            \
    }
#define EXPAND(symbol, required)          FAKE_##required(symbol)
#define CU(symbol, base, since, required) EXPAND(symbol, required)
#include "driver/cuda.def"
