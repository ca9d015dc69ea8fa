/* Host headers that kernels name out of habit, for NVRTC, which has none of them (NVRTC 13.0 manual, "Basic
   Usage": device code only; its own declarations of printf, assert, size_t, malloc, memcpy and the
   mathematical functions are always there). What a header adds to those is given as text: fixed-width
   integers, limits, and, in namespace std, what libcu++ has under cuda::std. */
#ifndef CLAB_COMPILE_HOST_HEADERS_H
#define CLAB_COMPILE_HOST_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

/* `names` and `texts` of all of them, as nvrtcCreateProgram wants them; their number. Static. */
size_t clab_host_headers(const char *const **out_names, const char *const **out_texts);
/* Whether a compiler's log complains of one of them: then another try with them is worth it. */
bool clab_host_header_missing(const char *log);

#endif
