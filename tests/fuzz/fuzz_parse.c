/* One input is one PTX text: parsed, its graphs built, its statements shown, printed and parsed again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ptx/ptx.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ptx_parse_options options = {.limit_bytes = (size_t)256 << 20};
    struct ptx_module *module = NULL, *again = NULL;
    struct clab_error error = {0};
    struct clab_str text = {0};
    if (ptx_parse((const char *)data, bytes, "fuzz", &options, &module, &error) != CLAB_OK) {
        clab_error_clear(&error);
        return 0;
    }
    bool good = true;
    for (uint32_t i = 0; i < module->n_functions; i++) {
        const struct ptx_function *function = module->functions[i];
        struct clab_arena arena = {.limit_bytes = (size_t)256 << 20};
        struct ptx_cfg cfg;
        uint32_t registers;
        char line[256];
        good &= !function->error;
        if (function->defined && !function->error && ptx_cfg_build(function, &arena, &cfg, &error) == CLAB_OK)
            ptx_live_estimate(function, &cfg, &arena, &registers, &error);
        for (uint32_t n = 0; n < function->n_insns; n++)
            ptx_insn_text(module, &function->insns[n], line, sizeof line);
        clab_arena_free(&arena);
    }
    ptx_module_print(module, &text);
    if (good && !text.failed && text.text && text.bytes < 1 << 20) {
        clab_error_clear(&error);
        const clab_status status = ptx_parse(text.text, text.bytes, "printed", &options, &again, &error);
        if (status != CLAB_OK && status != CLAB_NO_MEMORY)
            abort(); /* what we print we must be able to read */
        ptx_module_free(again);
    }
    clab_str_free(&text);
    ptx_module_free(module);
    clab_error_clear(&error);
    return 0;
}
