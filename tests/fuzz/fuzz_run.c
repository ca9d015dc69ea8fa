/* One input is a PTX text that says in comments how it is launched, like the files of tests/emu/kernels,
   tests/emu/memory and tests/check/corpus, from which the corpus grew: the first arch=sm_N (or DEVICE: sm_N),
   grid=N, block=N, cluster=N, smem=N and how=N (bits of on_machine.h) in the text count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "on_machine.h"
#include "target.h"

/* The number behind the first "key=" or "key " of the text. */
static uint32_t number_of(const char *text, const char *key, uint32_t otherwise, uint32_t limit)
{
    unsigned long value = otherwise;
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
        const char *digits = at + strlen(key) + 1;
        if ((digits[-1] == '=' || digits[-1] == ' ') && *digits >= '0' && *digits <= '9') {
            value = strtoul(digits, NULL, 10);
            break;
        }
    }
    return value > limit ? limit : (uint32_t)value;
}

/* "sm_100" wherever the launch, or else the module, names it. */
static uint32_t architecture(const char *text)
{
    static const char *const keys[] = {"arch=sm_", "DEVICE: sm_", ".target sm_"};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *at = strstr(text, keys[i]);
        if (at)
            return (uint32_t)strtoul(at + strlen(keys[i]), NULL, 10);
    }
    return 90;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    uint32_t sm = architecture(text);
    unsigned model = 0;
    for (unsigned i = 0; i < emu_model_count; i++)
        if (emu_models[i].sm == sm)
            model = i;
    uint32_t cluster = number_of(text, "cluster", 1, 16), grid = number_of(text, "grid", 1, 40);
    cluster = cluster ? cluster : 1;
    grid = (grid + cluster - 1) / cluster * cluster;
    struct emu_launch launch = {.grid = {grid ? grid : cluster, 1, 1},
                                .block = {number_of(text, "block", 32, 1024), 1, 1},
                                .cluster = {cluster, 1, 1},
                                .explicit_cluster = cluster > 1,
                                .dynamic_shared_bytes = number_of(text, "smem", 0, 200000)};
    fuzz_launch(fuzz_machine(model), number_of(text, "how", 0, UINT32_MAX), text, bytes, NULL, &launch, NULL,
                NULL);
    free(text);
    return 0;
}
