/* Making and ending contexts: for api_context.c and api_primary.c. */
#ifndef CLAB_EMU_API_CONTEXT_H
#define CLAB_EMU_API_CONTEXT_H

#include "emu/api.h"

/* What an H200 answers (driver 580.159.04). */
#define API_PRIORITY_LEAST    0
#define API_PRIORITY_GREATEST (-5)

/* NULL when memory is out. */
struct api_context *api_context_new(unsigned flags, bool primary);
/* Gives a new or released context its initial state. */
bool api_context_activate(struct api_context *context);
bool api_context_flags_valid(unsigned flags);

#endif
