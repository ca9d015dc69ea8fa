/* Conformance of single instructions: a forms file names them, every form becomes a kernel that applies it to
   a list of inputs, one thread each. The same kernels run on a GPU and on the emulator, and their outputs are
   compared. */
#ifndef CLAB_TESTS_CONFORMANCE_FORMS_H
#define CLAB_TESTS_CONFORMANCE_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_SOURCES 24 /* elements of vectors counted one by one */
#define MAX_RESULTS 16
#define SCRATCH_AT  20 /* the last four words of a row are memory for the form: %global */

struct operand {
    char type[12]; /* "u32", "pred", …; "#" an immediate */
    uint8_t group; /* elements of one vector share a group number > 0 */
};

struct form {
    char text[512]; /* instruction, or several, as the file has it */
    struct operand results[MAX_RESULTS], sources[MAX_SOURCES];
    unsigned n_results, n_sources;
    unsigned sm;    /* least */
    bool only_arch; /* "100a": architecture-specific */
    unsigned line;
};

/* The forms of a file, in order; NULL with a message on stderr. The caller frees the array. */
struct form *forms_read(const char *path, size_t *out_count);

/* PTX of `count` forms, entries f0, f1, …: (in: u64[n][MAX_SOURCES], out: u64[n][MAX_RESULTS], n). The caller
 * frees the text. */
char *forms_ptx(const struct form *forms, size_t count, const char *target, const char *version);

/* Inputs of a form: n rows of MAX_SOURCES values, the low bits used. Depends on the form's text and the row
   only: special values in pairs in the even rows, random ones in the odd. */
void forms_inputs(const struct form *form, uint64_t (*out_rows)[MAX_SOURCES], size_t n);

/* Bytes of a value of a type (1, 2, 4, 8, 16 as two words). */
unsigned type_bytes(const char *type);

/* Approximate instructions: is it one, and how far is a result from the exact value. */
bool form_is_approximate(const struct form *form);
struct bound {
    double limit;  /* of the manual */
    bool absolute; /* else in units in the last place of the result's type, or relative when `relative` */
    bool relative;
    const char *text;
};
/* False when the row is outside the domain that the manual's bound covers. *out_error in the bound's unit. */
bool form_error(const struct form *form, const uint64_t in[MAX_SOURCES], uint64_t result,
                struct bound *out_bound, double *out_error);

#endif
