/* Making and ending contexts: for api_context.c and api_primary.c. */
#ifndef CLAB_EMU_API_CONTEXT_H
#define CLAB_EMU_API_CONTEXT_H

#include "emu/api.h"

/* What an H200 answers (driver 580.159.04). */
#define API_PRIORITY_LEAST    0
#define API_PRIORITY_GREATEST (-5)

/* Why a process in which a kernel has failed gets no context any more (cuda.h of CUDA_ERROR_ILLEGAL_ADDRESS
   and its like: the process must be terminated and relaunched; an H200's driver sees to that). */
#define API_POISONED "a kernel of this process has failed: the process gets no new context"

/* NULL when memory is out. */
struct api_context *api_context_new(unsigned flags, bool primary);
/* Gives a new or released context its initial state. */
bool api_context_activate(struct api_context *context);
bool api_context_flags_valid(unsigned flags);

/* Retains the primary context. OUT_OF_MEMORY, or what a kernel of the process has left where that context
   would have to be made anew. Releasing may give up the lock. */
CUresult api_primary_retain(struct api_context **out_primary);
void api_primary_release(void);
/* Of contexts and green contexts. */
unsigned long long api_context_next_id(void);

#endif
