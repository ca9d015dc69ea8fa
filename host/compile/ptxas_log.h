/* What the assembler says, whichever library it speaks through. Private to this room. */
#ifndef CLAB_COMPILE_PTXAS_LOG_H
#define CLAB_COMPILE_PTXAS_LOG_H

#include "compile/image.h"

/* Fills `out` from the "Used N registers ..." lines about `entry` in a verbose log; out->known false if none.
 */
void clab_ptxas_log_resources(const char *log, const char *entry, struct clab_image_resources *out);
/* The same for the image's chosen entry, or, with none chosen, for the only one that it has. */
void clab_ptxas_log_image_resources(const char *log, struct clab_image *image);
/* A copy of the log (heap) without the verbose lines and the notes on precompiled headers; NULL when nothing
   is left or memory is out. */
char *clab_compile_log_strip(const char *log);
/* Fills file (source_path), line, source line and message from the first "line N; error : text" of a log
   about the PTX text, and says whether there was one. Sets the status to PTX_TARGET, PTX_SYNTAX or COMPILE.
 */
bool clab_ptxas_log_error(const char *log, const char *source_path, const char *ptx,
                          struct clab_error *error);
/* Likewise from NVRTC's "FILE(LINE): error: text", its source line and caret. Status COMPILE. */
bool clab_nvrtc_log_error(const char *log, struct clab_error *error);

/* What a log says besides the error that was read out of it (`said`, whose line is in it): heap, NULL when
   that is nothing or memory is out. The assembler's closing words are no news either. */
char *clab_log_rest(const char *log, const struct clab_error *said);

/* The n-th line (1-based) of a text, "" where there is none. */
void clab_text_line(const char *text, uint32_t n, char *line, size_t bytes);
/* Where the source has what PTX line `line` (1-based) was made of, by the .loc before it in the same function
   and its .file (PTX ISA 9.0, "Debugging Directives"); false where the PTX has no line information there. */
bool clab_ptx_source_place(const char *ptx, uint32_t line, char *file, size_t bytes, uint32_t *out_line,
                           uint32_t *out_column);

#endif
