/* A compiled image: PTX, cubin or fatbin, with where it came from. */
#ifndef CLAB_COMPILE_IMAGE_H
#define CLAB_COMPILE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum clab_image_kind { CLAB_IMAGE_NONE, CLAB_IMAGE_PTX, CLAB_IMAGE_CUBIN, CLAB_IMAGE_FATBIN };

/* What ptxas said about the entry; meaningful only when `known`. */
struct clab_image_resources {
    bool known;
    int registers, barriers;
    int static_smem_bytes, stack_bytes, spill_store_bytes, spill_load_bytes;
};

/* Zero-initialise; clab_image_free releases all of it. Pointers are heap memory owned by the image, NULL
 * unknown. */
struct clab_image {
    enum clab_image_kind kind;
    char *data; /* PTX text or binary; one NUL follows, not counted */
    size_t bytes;
    char arch[16];   /* "sm_90a": the PTX's .target or the cubin's chip; "" for a fatbin */
    int ptx_version; /* .version, 80 is 8.0; 0 unless PTX */
    char *ptx;       /* the PTX that a cubin was made from; NULL when it was loaded from a file */
    size_t ptx_bytes;
    char *source_path;   /* file that the user named */
    char *entry;         /* as the user wrote it, e.g. "ns::k<4>"; NULL when none was asked for */
    char *lowered;       /* name of the entry in the image, e.g. "_ZN2ns1kILi4EEEvv" */
    char sha256[65];     /* of data[0..bytes), hex */
    char compiler[64];   /* "nvrtc 13.0", "nvjitlink 13.0", "" when taken as it is */
    char *log;           /* compiler's log: warnings and notes; NULL when it said nothing */
    bool cached;         /* came from the cache: nothing was compiled */
    uint64_t compile_ns; /* time the compiler took; 0 when cached or taken as it is */
    struct clab_image_resources resources;
    bool per_chip; /* between worker and parent: made of PTX that all targets of its chip share, with the
                      assembler's whole log and no entry chosen by the user's name */
};

/* "ptx", "cubin", "fatbin", "none". */
const char *clab_image_kind_name(enum clab_image_kind kind);

/* Reads a .ptx, .cubin or .fatbin file as it is; the kind is told by content, not by name. Fills kind, data,
   arch, ptx_version, source_path and sha256. CLAB_NOT_FOUND (no such file, with the reason), CLAB_LOAD
   (neither of the three, truncated, not for an NVIDIA GPU). */
clab_status clab_image_read(const char *path, struct clab_image *out, struct clab_error *error);
/* The same for bytes in memory; `name` is for messages. Copies the bytes. */
clab_status clab_image_from_bytes(const char *name, const void *data, size_t bytes, struct clab_image *out,
                                  struct clab_error *error);

/* Names of the entries (kernels) in a PTX or cubin image, in its order: a heap array of heap strings, freed
   with clab_image_names_free. Empty for a fatbin. CLAB_NO_MEMORY. */
clab_status clab_image_entries(const struct clab_image *image, char ***out_names, size_t *out_count,
                               struct clab_error *error);
void clab_image_names_free(char **names, size_t count);
/* Sets entry and lowered. With entry NULL the image must hold exactly one. CLAB_NOT_FOUND lists those that
 * exist. */
clab_status clab_image_choose_entry(struct clab_image *image, const char *entry, struct clab_error *error);

/* Deep copy; CLAB_NO_MEMORY. */
clab_status clab_image_copy(struct clab_image *to, const struct clab_image *from, struct clab_error *error);
void clab_image_free(struct clab_image *image);

#endif
