/* The parent's side of a device worker: starting it, asking it, and surviving it. */
#ifndef CLAB_LAB_SESSION_H
#define CLAB_LAB_SESSION_H

#include <jansson.h>
#include <signal.h>

#include "base/error.h"
#include "base/process.h"

struct clab_session {
    char device[64];
    json_t *options; /* emulator options by name, or NULL; reference held */
    json_t *facts;   /* of the device, once open */
    struct clab_process process;
    struct clab_line_reader reader;
    const char *const *wrapper; /* what starts the worker, or NULL */
    bool alive;
    bool has_run;   /* an experiment's images are in the worker: the next one starts afresh */
    int64_t at_row; /* id of the row that the worker last said it launches, -1 none; kept when it dies */
    const volatile sig_atomic_t *interrupted; /* checked while waiting; may be NULL */
    json_t *stages;                           /* milliseconds by stage, in order; reference held */
    uint64_t mark_ns;                         /* when the last stage ended */
    void (*on_wait)(void *context); /* called now and then while waiting; set after opening, may be NULL */
    void *wait_context;
};

/* Starts `PROGRAM --device-worker` and opens the device in it. Errors: those of clab_device_open; WORKER. */
clab_status clab_session_open(struct clab_session *session, const char *device, json_t *options,
                              const volatile sig_atomic_t *interrupted, struct clab_error *error);
/* The same with the worker started by another program: `wrapper` is a NULL-terminated list of its words, to
   which the worker's own are added; borrowed until the session is closed. */
clab_status clab_session_open_under(struct clab_session *session, const char *device, json_t *options,
                                    const volatile sig_atomic_t *interrupted, const char *const *wrapper,
                                    struct clab_error *error);
/* Lets the worker come to its end, and waits for it, at most `limit_ms`; before clab_session_close, where
   what the wrapper does after the worker's end matters. */
void clab_session_finish(struct clab_session *session, int limit_ms);
/* A fresh worker for the same device; every image has to be loaded again. */
clab_status clab_session_reopen(struct clab_session *session, struct clab_error *error);
/* Sets an option of the stand-in driver (channel.h) in this worker and in those that replace it. */
clab_status clab_session_option(struct clab_session *session, const char *name, const char *value,
                                struct clab_error *error);
void clab_session_close(struct clab_session *session);
/* Ends a stage: what passed since the last mark (the first since clab_session_open) is added to
 * session->stages[name]. */
void clab_session_mark(struct clab_session *session, const char *stage);
/* UNSUPPORTED when the device does not take such a file at all: a cubin (told by its name) on the stand-in
 * driver. */
clab_status clab_session_takes(const struct clab_session *session, const char *file,
                               struct clab_error *error);

/* Sends `request` (reference stolen) and waits for its answer (new reference). Lines with "sample" go to
   on_sample as they come. launch_timeout_ms (-1: none) is the watchdog between two lines while the worker is
   in a launch; the other stages have their own, generous, limit. An {error} answer is returned as that error,
   with *out_answer still set. Errors besides: TIMEOUT (the worker was killed), WORKER (it died: signal or
   status named), INTERRUPTED. After each of these, or an answer with "sticky", session->alive is false. */
clab_status clab_session_ask(struct clab_session *session, json_t *request, int launch_timeout_ms,
                             void (*on_sample)(void *context, const json_t *sample), void *context,
                             json_t **out_answer, struct clab_error *error);

#endif
