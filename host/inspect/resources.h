/* What a kernel needs and asks for: from a cubin, from what the assembler said, from PTX directives. */
#ifndef CLAB_INSPECT_RESOURCES_H
#define CLAB_INSPECT_RESOURCES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "compile/image.h"
#include "ptx/ptx.h"

#define CLAB_UNKNOWN (-1)

struct clab_resources {
    int registers;       /* per thread, as assembled; CLAB_UNKNOWN without a cubin */
    int registers_model; /* PTX: most 32-bit registers live at once (an estimate); CLAB_UNKNOWN */
    int static_smem_bytes, stack_bytes, spill_store_bytes, spill_load_bytes, barriers, param_bytes;
    int max_threads, max_registers, min_ctas_per_sm; /* launch bounds; CLAB_UNKNOWN none */
    uint32_t block[3];                               /* .reqntid; 0 none */
    bool explicit_cluster, blocks_are_clusters;
    uint32_t cluster[3];    /* .reqnctapercluster; 0 none */
    int max_cluster_rank;   /* CLAB_UNKNOWN none */
    bool uses_dynamic_smem; /* PTX: an unsized .extern .shared array */
};

/* All unknown. */
void clab_resources_init(struct clab_resources *resources);
/* Adds what a cubin says of `entry` (sections .nv.info, .nv.info.NAME, .nv.shared.NAME). LOAD when the file
   is no cubin or is damaged; what it does not say stays unknown. */
clab_status clab_resources_of_cubin(const struct clab_image *cubin, const char *entry,
                                    struct clab_resources *out, struct clab_error *error);
/* Adds what the entry's directives say, and the modelled register demand; shared memory where no cubin said
 * it. */
clab_status clab_resources_of_ptx(const struct ptx_module *module, const struct ptx_function *entry,
                                  struct clab_resources *out, struct clab_error *error);
/* Names of the kernels in a cubin that has no symbols: from its section names. Heap array freed with
   clab_image_names_free. */
clab_status clab_cubin_sections(const struct clab_image *cubin, char ***out_names, size_t *out_count,
                                struct clab_error *error);
/* Rows of the form "registers", "16" in the order of print: visit(context, name, value, unit, text). A row's
   value is CLAB_UNKNOWN where it is not known, and `text` then says why or is NULL. */
struct clab_resource_row {
    const char *name, *key; /* "shared memory", "static_smem_bytes" */
    int value;              /* CLAB_UNKNOWN: not known, or `text` says it */
    const char *unit;       /* "bytes", "" */
    char text[96];          /* what is not one number: "2 x 2 x 1"; "" */
};
#define CLAB_RESOURCE_ROWS 16
size_t clab_resource_rows(const struct clab_resources *resources,
                          struct clab_resource_row rows[CLAB_RESOURCE_ROWS]);
/* Object of the same, by key; null where not known. Owned by the caller. */
json_t *clab_resources_json(const struct clab_resources *resources);

#endif
