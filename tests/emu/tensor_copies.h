/* One tensor copy of tests/emu/tensor/FILE.cases: a line of words, `VERB key=value…`, each value perhaps with
   alternatives `<<a|b>>`, every combination of which is a case of its own.

   VERB    load, store, or the operation of a reduction: add min max inc dec and or xor
   map     type= dims= strides= box= steps= interleave= swizzle= fill= as cuTensorMapEncodeTiled takes them
           (numbers of the enumerations; strides in bytes, of dimension 1 and up; steps: element strides);
           lower= upper= channels= pixels= instead of box=: cuTensorMapEncodeIm2col; with wide=1 or wide=2
   (128 pixels) cuTensorMapEncodeIm2colWide, off= then being halo and offset poke=   W:V sets 32-bit word W of
   the encoded map to V afterwards; several with commas at=     coordinates; off= im2col offsets to= offset of
   the box in shared memory, bytes; default 0, which is 1024-aligned hint=1  with .L2::cache_hint; rank= and
   mode= (tile, im2col) of the instruction where not those of the map
 */
#ifndef CLAB_TESTS_TENSOR_COPIES_H
#define CLAB_TESTS_TENSOR_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TENSOR_MAX_RANK  5
#define TENSOR_MAX_POKES 4

enum tensor_verb { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE };

struct tensor_case {
    char *text; /* the line with its alternatives chosen */
    enum tensor_verb verb;
    char operation[8]; /* of a reduction */
    unsigned type, map_rank;
    bool map_im2col;
    unsigned wide;
    uint64_t dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    uint32_t box[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK];
    int lower[3], upper[3];
    uint32_t channels, pixels;
    unsigned interleave, swizzle, fill;
    unsigned n_pokes, poke_at[TENSOR_MAX_POKES];
    uint32_t poke_value[TENSOR_MAX_POKES];
    unsigned rank; /* of the instruction */
    bool im2col;
    int at[TENSOR_MAX_RANK], off[3];
    uint32_t to_bytes;
    bool hint;
};

/* The cases of a file; *out_cases is the caller's to give back. NULL, or what is wrong, with the line's
 * number. */
const char *tensor_cases_read(const char *path, struct tensor_case **out_cases, size_t *out_count);
void tensor_cases_free(struct tensor_case *cases, size_t count);

/* What a load counts on its mbarrier: the whole box; of an interleaved map, one slice of channels. */
uint32_t tensor_box_bytes(const struct tensor_case *c);

/* PTX of a kernel that fills 16 KiB of shared memory from `src`, executes the case's instruction in one
   thread, waits for it a while, and writes shared memory, and after it 1 when the copy had completed, to
   `out`: copy(src, out, coordinates[5], offsets[3], bytes, to, map). The caller frees the text. */
char *tensor_case_ptx(const struct tensor_case *c);
#define TENSOR_SHARED_BYTES 16384

#endif
