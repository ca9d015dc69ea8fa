/* The stand-in's one log. CLUSTERLAB_EMU_LOG says how much of it is written to stderr:
     unset    notes, each at most once in the process: what is refused or approximated
     none     nothing
     calls    notes, and every driver call that fails, with the reason */
#ifndef CLAB_EMU_LOG_H
#define CLAB_EMU_LOG_H

#include <stdbool.h>

#include "base/error.h"

/* A note, written the first time that its text (after formatting) occurs. Thread-safe. */
void emu_log_once(const char *format, ...) CLAB_PRINTF(1, 2);
/* A failed call. Written only with CLUSTERLAB_EMU_LOG=calls. */
void emu_log_call(const char *call, int code, const char *name, const char *reason);
/* Whether emu_log_call writes anything (to spare its caller the formatting). */
bool emu_log_calls(void);

#endif
