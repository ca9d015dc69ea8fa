/* PTX modules out of bytes, for fuzzing: every statement is an instruction form of insn.def, so that most of
   what is generated parses, decodes and runs. The same bytes give the same module. */
#ifndef CLAB_TESTS_FUZZ_GENERATE_H
#define CLAB_TESTS_FUZZ_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ptx/ptx.h"

/* Bytes that choices are made from; zeros when they are used up. */
struct fuzz_source {
    const uint8_t *data;
    size_t bytes, at;
};
/* A number below `limit` (1 or more). */
unsigned fuzz_below(struct fuzz_source *source, unsigned limit);
/* Eight bytes. */
uint64_t fuzz_word(struct fuzz_source *source);

/* The entry of the generated module. */
#define FUZZ_ENTRY "k"

/* Appends a module with the entry FUZZ_ENTRY(.param .u64 buffer, .param .align 64 .b8 map[128], .param .u32
   n) for `target`; its last line is the end of the text. Statements that the target or the operands forbid
   are among the lines: fuzz_filter takes them out. */
void fuzz_generate(struct fuzz_source *source, struct ptx_target target, struct clab_str *out);
/* Replaces by blanks the lines that the parser finds fault with. False when the module stays unreadable. */
int fuzz_filter(char *text, size_t bytes);

#endif
