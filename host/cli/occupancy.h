/* How many CTAs and clusters of an inspected kernel a device holds, by that device's own occupancy query. */
#ifndef CLAB_CLI_OCCUPANCY_H
#define CLAB_CLI_OCCUPANCY_H

#include "base/str.h"
#include "cli/cli.h"
#include "inspect/inspect.h"

struct clab_occupancy_request {
    const char *const
        *devices; /* "cuda:0", "emu:sm_90"; none: the emulated one of the kernel's architecture */
    size_t device_count;
    unsigned block_threads; /* 0: what the kernel requires, else its launch bound, else 256 */
    unsigned dynamic_smem_bytes;
};
/* Appends an object per device to `all`: {"device", "name", "emulated", "block", "dynamic_smem_bytes",
   "registers", "registers_modelled" (bool), "ctas_per_sm", "active_clusters": [by size, 1 to 16; null where
   refused], "largest"}. A device that cannot answer gets {"device", "error"}; `out_missing`, which must be
   clear, gets the error of the first of the request's devices that is not here. INTERRUPTED, OUTPUT,
   NO_MEMORY. */
clab_status clab_occupancy_ask(struct clab_cli *cli, const struct clab_subject *subject,
                               const struct clab_occupancy_request *request, json_t *all,
                               struct clab_error *out_missing, struct clab_error *error);
/* The same as text, with its heading. */
void clab_occupancy_text(const json_t *all, struct clab_str *out);
/* PTX of a kernel that needs just `registers` 32-bit registers by ptx_live_estimate and has `smem_bytes` of
   static shared memory: what the stand-in driver, which takes no cubin, is asked about one. */
void clab_occupancy_probe(int registers, int smem_bytes, struct clab_str *out);

#endif
