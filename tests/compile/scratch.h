/* What the tests of this folder share: a scratch folder, files in it, and the toolkit or a reason to skip. */
#ifndef CLAB_TESTS_COMPILE_SCRATCH_H
#define CLAB_TESTS_COMPILE_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "compile/compile.h"
#include "compile/image.h"
#include "compile/toolkit.h"

/* A fresh folder below TMPDIR or /tmp, as the current folder's stand-in; removed by scratch_remove. */
const char *scratch_make(void);
void scratch_remove(void);
/* For cmocka: frees the state and removes the folder. */
int scratch_tear_down(void **state);
/* A compile service whose cache is DIR/cache. timeout_ms 0: its default. Ends the process when there is no
 * memory. */
struct clab_compiler *scratch_compiler(unsigned int workers, unsigned int timeout_ms);
/* DIR/name; one of 32 rotating buffers. */
const char *scratch_path(const char *name);
/* Writes a file (folders on the way are made) and returns its path. */
const char *scratch_write(const char *name, const char *text);
/* A cubin of a few hundred bytes, made here: chip in e_flags as ABI version 8 has it, `suffix` (0 none) in
   the note, one function per name, those beginning with '-' no entries. Heap. */
char *fake_cubin(unsigned int chip, char suffix, const char *const *names, size_t count, size_t *out_bytes);
/* The toolkit of this machine; ends the process with 77 where a part is missing. */
const struct clab_toolkit *toolkit_or_skip(enum clab_part_id part);

#endif
