/* The inspector: a kernel with everything that can be said of it without running it. */
#ifndef CLAB_INSPECT_INSPECT_H
#define CLAB_INSPECT_INSPECT_H

#include "base/error.h"
#include "compile/compile.h"
#include "inspect/listing.h"
#include "inspect/notes.h"
#include "inspect/resources.h"

/* Which kernel, and how it is compiled. Strings are borrowed for the call. */
struct clab_inspect_request {
    const char *file;  /* .cu, PTX, cubin, fatbin, object file or program; told by content, but for .cu */
    const char *entry; /* NULL: the only one */
    const char *arch;  /* NULL: what the file is for; sm_90 for a .cu */
    const char *const *include_dirs, *const *defines, *const *options;
    size_t include_dir_count, define_count, option_count;
};

struct clab_subject {
    char *file, *entry;      /* entry as the user wrote it, else its name in the image */
    char *lowered;           /* its name in the image */
    char arch[16];           /* that the SASS is for; of the PTX where there is no SASS */
    char compiler[64];       /* "nvrtc 13.0", "" for an image taken as it was */
    struct clab_image cubin; /* kind NONE: none */
    char *ptx;               /* its PTX as text, NULL: none */
    size_t ptx_bytes;
    struct ptx_module *module; /* of `ptx` */
    bool has[CLAB_LEVELS];     /* whether there is a listing */
    struct clab_listing listings[CLAB_LEVELS];
    struct clab_notes notes[CLAB_LEVELS];
    struct clab_resources resources;
    struct clab_error why[CLAB_LEVELS]; /* why there is no listing; status OK where there is one */
};

/* Splits FILE[:ENTRY] at the first colon behind an extension that is known (.cu .ptx .cubin .fatbin .o .obj
   .so), else behind the name of an existing file. Heap strings; *out_entry NULL when there is none. USAGE
   when an entry is empty. */
clab_status clab_inspect_split(const char *text, char **out_file, char **out_entry, struct clab_error *error);

/* Compiles, assembles and disassembles as far as this machine can, and looks at the result. Where only one of
   PTX and SASS is to be had, the other's `why` says so; an error is returned when neither is (NOT_FOUND,
   COMPILE, PTX_*, NO_TOOLKIT, LOAD, USAGE, …). A PTX file that does not assemble is a subject without SASS.
   `out` is owned by the caller and freed with clab_subject_free in either case. */
clab_status clab_inspect_open(struct clab_compiler *compiler, const struct clab_inspect_request *request,
                              struct clab_subject *out, struct clab_error *error);
void clab_subject_free(struct clab_subject *subject);
/* The level to show: as asked for by name ("ptx", "sass"), else SASS where there is some. USAGE for another
   name; the `why` of a level that is not there. */
clab_status clab_subject_level(const struct clab_subject *subject, const char *name, enum clab_level *out,
                               struct clab_error *error);

/* What became of the fences in PTX: each kind of fence, cluster barrier and ordered access with the SASS
   fences and barriers made from its lines. Needs both listings and line numbers of the PTX (line info). */
struct clab_became {
    const char *ptx;  /* opcode */
    const char *sass; /* "MEMBAR.ALL.GPU, ERRBAR", "" for nothing */
    uint32_t count, first_line;
};
/* Array in the arena, in the order of the PTX; *out_count 0 where it cannot be known. NO_MEMORY. */
clab_status clab_fences_became(const struct clab_subject *subject, struct clab_arena *arena,
                               struct clab_became **out, size_t *out_count, struct clab_error *error);

#endif
