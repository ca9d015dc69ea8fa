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
    char text[1024]; /* instruction, or several, as the file has it, one alternative of each `<<a|b>>` chosen
                      */
    char *key; /* as the file has it, and ` @MAP`: forms with the same key have the same inputs and must agree
                */
    char *body;   /* the same with its `$word`s replaced */
    char map[24]; /* the tensor map that it is launched with, "" none */
    struct operand results[MAX_RESULTS], sources[MAX_SOURCES];
    unsigned n_results, n_sources;
    unsigned sm;    /* least */
    bool only_arch; /* "100a": architecture-specific */
    unsigned line;
};

/* What a form may use beside its operands; each is declared only where the text names it.
   %global, %shared, %local, %generic   addresses of 32 bytes of the thread's own (%generic: the shared ones)
   %mbar, %gmbar                        address of 8 bytes of its own, shared and generic
   %peer, %peer_generic, %peer_mbar, %peer_gmbar, %peer_box, %peer_cbar
                                        the same addresses in the other CTA of a cluster of two
   %box, %cbar                          address of 8 KiB, of 8 bytes of the CTA's own (shared)
   %wbox, %gwbox                        2 KiB of the warp's own, shared and generic; the first is always named
   %wdata                               address of 2 KiB of %data of the warp's own
   %data                                DATA_BYTES of global memory that is part of the result
   %map                                 generic address of the form's tensor map
   args                                 an entry parameter of 64 bytes, 3, 10, 17, …
   %k, %cta, %rank                      number in the CTA; the CTA's in grid and cluster
   %w0… %q0… %p0…                       eight scratch registers each of 32 bits, 64 bits, predicates
   %h0…                                 of 16 bits */
#define DATA_BYTES 262144

/* A tensor map, as cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col take it. Its address is %data + 8192. */
struct tensor_map {
    char name[24];
    unsigned type; /* CUtensorMapDataType */
    unsigned rank;
    bool im2col;
    uint64_t dims[5], strides[5]; /* strides[0]: of dimension 1 */
    uint32_t box[5], steps[5];
    int lower[3], upper[3];
    uint32_t channels, pixels;
    unsigned interleave, swizzle, fill;
    unsigned wide; /* 1 im2col::w, 2 im2col::w::128: cuTensorMapEncodeIm2colWide */
};

/* A forms file: `<<a|b|c>>` in a form stands for one form each; `define WORD text`, `module text` (ahead of
 * the entries), `map NAME key=value…`, and forms. */
struct forms_file {
    struct form *forms;
    size_t n_forms;
    struct tensor_map *maps;
    size_t n_maps;
    char *module;
};

/* False with a message on stderr. */
bool forms_read(const char *path, struct forms_file *out);
void forms_free(struct forms_file *file);

/* PTX of `count` forms, entries f0, f1, …: (in: u64[n][MAX_SOURCES], out: u64[n][MAX_RESULTS], n, data; args
   and the tensor map where a form has them). The caller frees the text. */
char *forms_ptx(const char *module, const struct form *forms, size_t count, const char *target,
                const char *version);

bool form_has_args(const struct form *form);

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
