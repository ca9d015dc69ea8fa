/* What the files of `clusterlab matrix` share. */
#ifndef CLAB_CLI_MATRIX_H
#define CLAB_CLI_MATRIX_H

#include <jansson.h>

#include "cli/cli.h"
#include "compile/target.h"

#define CLAB_MATRIX_ARCHS   17
#define CLAB_MATRIX_OPTIONS 32

/* How far a kernel comes for one target. Ordered: each includes those before it. */
enum clab_stage {
    CLAB_STAGE_NONE,      /* does not compile */
    CLAB_STAGE_COMPILED,  /* NVRTC makes PTX of it */
    CLAB_STAGE_ASSEMBLED, /* a cubin, with symbols that nobody supplies */
    CLAB_STAGE_COMPLETE,  /* a cubin that can be loaded */
    CLAB_STAGE_VERIFIED,  /* ran on the emulated device, its results right */
    CLAB_STAGE_GPU        /* and on the GPU of this machine */
};

struct clab_cell {
    enum clab_stage stage;
    bool declared;         /* the kernel says itself that it needs another target: not tried */
    bool driver_call;      /* complete by driver calls in place of native instructions */
    bool unreached;        /* interrupted before it was compiled, or nothing here compiles it */
    bool waived;           /* the experiment cannot run on that device */
    int failed;            /* exit status of a run that was wrong, failed or timed out; 0 none */
    char *reason;          /* why it came no further, or a remark; heap, NULL none */
    char file[512];        /* where in a source that is, "" unknown */
    uint32_t line, column; /* 0 unknown */
};

/* One kernel: a variant of an experiment, or a file. */
struct clab_subject_row {
    char *label, *source;            /* "reduce/cg"; absolute path */
    char *entry;                     /* NULL: none is asked for */
    char *experiment, *variant;      /* file and name; NULL for a bare file */
    const struct clab_target *needs; /* what it declares; NULL nothing */
    bool needs_chip;                 /* a cubin: `needs` is the chip it was made for */
    json_t *options;                 /* compiler options of a variant, array */
    const struct clab_compile_request
        *words; /* of a bare file, borrowed from the matrix; NULL for a variant */
    struct clab_cell cells[CLAB_MATRIX_ARCHS];
};

/* PTX built for one target and assembled for another. */
struct clab_pair {
    size_t row;
    const struct clab_target *built_for, *target;
    struct clab_cell cell; /* stage: COMPILED where it does not assemble, ASSEMBLED, COMPLETE */
};

/* PTX that a GPU's driver compiled. */
struct clab_jit_try {
    size_t row;
    const struct clab_target *built_for;
    bool taken;
    double ms;             /* what the driver took for it, by the host's clock */
    char *log;             /* what it said, NULL nothing */
    struct clab_cell cell; /* reason: why it did not take it, NULL */
    json_t *error;         /* the whole error, NULL none */
};

struct clab_matrix {
    struct clab_cli *cli;
    const struct clab_target *archs[CLAB_MATRIX_ARCHS];
    size_t n_archs, n_rows;
    struct clab_subject_row *rows;
    struct clab_pair *pairs;    /* --forward */
    struct clab_jit_try *tries; /* --jit */
    size_t n_pairs, n_tries;
    struct clab_compile_request words; /* include_dirs, defines and options of bare files */
    json_t *gpu;                       /* facts of the GPU of the tries, NULL none */
    json_t *refused;                   /* array of {"file", "error"}: left out, the rest goes on; NULL none */
    bool all;                          /* long lists are not cut */
    bool apart;                        /* every target is compiled for itself */
};

/* --- rows (matrix_rows.c) */

/* Rows for the words of the command line: experiments (names, .lua files), kernel files (FILE[:ENTRY]),
   folders (what is in them and below); none: every experiment in reach. A file that an experiment names is
   that variant's row only. An experiment file with a mistake, and what cannot be read in a folder, goes to
   `refused`, and the rest is collected. USAGE for a word that names nothing, or when there is neither a row
   nor a refusal; EXPERIMENT for an experiment that is not there; NOT_FOUND, NO_MEMORY. */
clab_status clab_matrix_collect(struct clab_matrix *matrix, const char *const *words, size_t count,
                                const json_t *facts, struct clab_error *error);
void clab_matrix_free(struct clab_matrix *matrix);
/* Whether the name has that ending, and more. */
bool clab_matrix_is(const char *name, const char *ending);

/* --- cells (matrix_build.c) */

/* Whether the kernel says itself that it is not for this target. */
bool clab_matrix_declared_out(const struct clab_subject_row *row, const struct clab_target *arch);
/* Compiles, assembles and judges every cell that no kernel declares away. INTERRUPTED (what was done is
   judged, the rest `unreached`), NO_MEMORY; what a kernel is refused for is in its cell. Cells for which a
   part of the toolkit is missing are `unreached` too, and `out_lack` (zeroed by the caller) says which part.
 */
clab_status clab_matrix_compile(struct clab_matrix *matrix, struct clab_compiler *compiler,
                                struct clab_error *out_lack, struct clab_error *error);
/* A request for the row with its entry and options; `options` (room for CLAB_MATRIX_OPTIONS) must outlive it.
 */
struct clab_compile_request clab_matrix_request(const struct clab_subject_row *row,
                                                const struct clab_target *arch, enum clab_image_kind want,
                                                const char **options);
/* The message without what is each cell's own: what twelve cells with the same cause share. Names of the
   target give way to "the target". Heap. */
char *clab_matrix_cause(const struct clab_error *error, const char *arch);
/* Sets the cell's reason to that cause, and the place to the error's. */
void clab_matrix_refuse(struct clab_cell *cell, const struct clab_error *error, const char *arch);
/* Stage and remark of a cell whose image was made. */
void clab_matrix_judge(const struct clab_compile_result *result, struct clab_cell *cell);

/* --- forward compatibility (matrix_forward.c), the driver's JIT (matrix_jit.c) */

/* Fills `pairs`: the PTX of each kernel for each target, assembled for every target that may run it. */
clab_status clab_matrix_forward(struct clab_matrix *matrix, struct clab_compiler *compiler,
                                struct clab_error *error);
void clab_matrix_print_forward(const struct clab_matrix *matrix);
/* Fills `tries`: the PTX of each kernel for each target that the first GPU may run, compiled by its driver.
   NO_DEVICE where there is no GPU with clusters; UNSUPPORTED where the driver is the stand-in. */
clab_status clab_matrix_jit(struct clab_matrix *matrix, struct clab_compiler *compiler,
                            struct clab_error *error);
void clab_matrix_print_jit(const struct clab_matrix *matrix);

/* --- what it says (matrix_show.c, matrix_reasons.c) */

/* Grid, legend and grouped reasons, for people. */
void clab_matrix_print(const struct clab_matrix *matrix);
/* The letter of a cell, and how a terminal shows it. */
char clab_matrix_letter(const struct clab_cell *cell);
const char *clab_matrix_colour(char letter);
/* "none", "compiled", …, "declared". */
const char *clab_matrix_stage(const struct clab_cell *cell);

/* Reasons, each with where it holds and for what. Zero-initialise. */
struct clab_reasons {
    struct clab_reason {
        const struct clab_subject_row *row; /* borrowed, like the cell */
        const struct clab_cell *cell;
        char *where; /* "sm_100, sm_103" */
        bool shown;
    } * list;
    size_t count;
};
/* Adds `place`, after `joint`, to what the row's kernel has of the cell's reason: a kernel's places come one
   after the other. Row and cell are borrowed. */
void clab_reasons_add(struct clab_reasons *reasons, const struct clab_subject_row *row,
                      const struct clab_cell *cell, const char *joint, const char *place);
/* Each reason once; kernels with the same places share a line. Frees the list. */
void clab_reasons_print(struct clab_reasons *reasons, FILE *out, bool all);

#endif
