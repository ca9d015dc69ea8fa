/* The stand-in's one log. CLUSTERLAB_EMU_LOG says how much of it is written to stderr:
     unset    notes, each at most once in the process: what is refused or approximated, and what ended a
              context (a fault, a failed assertion, a deadlock: the driver's own calls return its code only)
     none     nothing
     calls    notes, and every driver call that fails, with the reason */
#ifndef CLAB_EMU_LOG_H
#define CLAB_EMU_LOG_H

#include <stdbool.h>

#include "base/error.h"

/* A note, written the first time that its text (after formatting) occurs. Thread-safe. */
void emu_log_once(const char *format, ...) CLAB_PRINTF(1, 2);
/* The same for something refused, whose words the caller also gets as an error: not written once the
   clusterlab host is there, which shows them, unless CLUSTERLAB_EMU_LOG is set. */
void emu_log_refused(const char *format, ...) CLAB_PRINTF(1, 2);
/* The same for what ended a context, all that is known of it (clab_error_format). */
void emu_log_fault(const struct clab_error *error);
/* The clusterlab host has taken the private channel. */
void emu_log_host(void);
/* A failed call. Written only with CLUSTERLAB_EMU_LOG=calls. */
void emu_log_call(const char *call, int code, const char *name, const char *reason);
/* Whether emu_log_call writes anything (to spare its caller the formatting). */
bool emu_log_calls(void);

#endif
