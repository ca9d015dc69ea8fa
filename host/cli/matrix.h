/* What the files of `clusterlab matrix` share. */
#ifndef CLAB_CLI_MATRIX_H
#define CLAB_CLI_MATRIX_H

#include <jansson.h>

#include "cli/cli.h"
#include "compile/target.h"

#define CLAB_MATRIX_ARCHS 17

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
    bool declared;    /* the kernel says itself that it needs another target: not tried */
    bool driver_call; /* complete by driver calls in place of native instructions */
    bool waived;      /* the experiment cannot run on that device */
    int failed;       /* exit status of a run that was wrong, failed or timed out; 0 none */
    char *reason;     /* why it came no further, or a remark; heap, NULL none */
};

/* One kernel: a variant of an experiment, or a file. */
struct clab_subject_row {
    char *label, *source;            /* "reduce/cg"; absolute path */
    char *entry;                     /* NULL: none is asked for */
    char *experiment, *variant;      /* file and name; NULL for a bare file */
    const struct clab_target *needs; /* what it declares; NULL nothing */
    bool needs_chip;                 /* a cubin: `needs` is the chip it was made for */
    json_t *options;                 /* compiler options, array */
    struct clab_cell cells[CLAB_MATRIX_ARCHS];
};

struct clab_matrix {
    struct clab_cli *cli;
    const struct clab_target *archs[CLAB_MATRIX_ARCHS];
    size_t n_archs, n_rows;
    struct clab_subject_row *rows;
    bool progress_shown;
};

/* Rows for the words of the command line: experiments (names, .lua files), kernel files (FILE[:ENTRY]),
   folders (what is in them and below); none: every experiment in reach. A file that an experiment names is
   that variant's row only. USAGE, EXPERIMENT, NOT_FOUND. */
clab_status clab_matrix_collect(struct clab_matrix *matrix, const char *const *words, size_t count,
                                const json_t *facts, struct clab_error *error);
void clab_matrix_free(struct clab_matrix *matrix);
/* Grid, legend and grouped reasons, for people. */
void clab_matrix_print(const struct clab_matrix *matrix);
/* The letter of a cell. */
char clab_matrix_letter(const struct clab_cell *cell);

#endif
