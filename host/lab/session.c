/* Workers from the parent's side. A worker that hangs is killed, one that dies is described; either way the
   caller gets a clab_status and decides which row to drop (design: workers and watchdog). */
#include "lab/session.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/wire.h"

#define POLL_MS        50
#define STAGE_LIMIT_MS (600 * 1000) /* start, fill, check: a worker that is silent for so long is stuck */

static clab_status died(struct clab_session *session, struct clab_error *error)
{
    int status = 0;
    if (clab_process_wait(&session->process, 2000, &status) != 1) {
        clab_process_kill(&session->process);
        return clab_error_set(error, CLAB_WORKER, "the worker for %s closed its output and was ended",
                              session->device);
    }
    clab_process_kill(&session->process);
    if (WIFSIGNALED(status))
        return clab_error_set(error, CLAB_WORKER, "the worker for %s was killed by signal %d (%s)",
                              session->device, WTERMSIG(status), strsignal(WTERMSIG(status)));
    return clab_error_set(error, CLAB_WORKER, "the worker for %s ended with status %d", session->device,
                          WEXITSTATUS(status));
}

/* One line as JSON, with the watchdog. `in_launch` decides which limit counts. */
static clab_status read_line(struct clab_session *session, bool in_launch, int launch_timeout_ms,
                             json_t **out_line, struct clab_error *error)
{
    const uint64_t start = clab_now_ns();
    const int limit_ms = in_launch ? launch_timeout_ms : STAGE_LIMIT_MS;
    for (;;) {
        char *text;
        size_t bytes;
        if (session->interrupted != NULL && *session->interrupted) {
            session->alive = false;
            clab_process_kill(&session->process);
            return clab_error_set(error, CLAB_INTERRUPTED, "interrupted");
        }
        if (session->on_wait != NULL)
            session->on_wait(session->wait_context);
        int result = clab_line_read(&session->reader, POLL_MS, &text, &bytes);
        if (result == 1) {
            *out_line = json_loadb(text, bytes, 0, NULL);
            if (*out_line != NULL)
                return CLAB_OK;
            session->alive = false;
            clab_process_kill(&session->process);
            return clab_error_set(error, CLAB_WORKER,
                                  "the worker for %s answered with something else than JSON",
                                  session->device);
        }
        if (result != -2) {
            session->alive = false;
            return died(session, error);
        }
        if (limit_ms >= 0 && (clab_now_ns() - start) / 1000000 > (uint64_t)limit_ms) {
            session->alive = false;
            clab_process_kill(&session->process);
            clab_error_set(
                error, CLAB_TIMEOUT, "no answer within %d.%03d s: %s", limit_ms / 1000, limit_ms % 1000,
                in_launch ? "the kernel hangs, or needs a larger --timeout" : "the worker is stuck");
            return CLAB_TIMEOUT;
        }
    }
}

clab_status clab_session_ask(struct clab_session *session, json_t *request, int launch_timeout_ms,
                             void (*on_sample)(void *context, const json_t *sample), void *context,
                             json_t **out_answer, struct clab_error *error)
{
    *out_answer = NULL;
    if (!session->alive) {
        json_decref(request);
        return clab_error_set(error, CLAB_WORKER, "the worker for %s is gone", session->device);
    }
    clab_status status = clab_wire_send(session->process.to_fd, request, error);
    json_decref(request);
    if (status == CLAB_OUTPUT) {
        session->alive = false;
        return died(session, error);
    }
    bool in_launch = false;
    session->at_row = -1;
    while (status == CLAB_OK) {
        json_t *line = NULL;
        status = read_line(session, in_launch, launch_timeout_ms, &line, error);
        if (status != CLAB_OK)
            break;
        const char *stage = clab_json_text(line, "stage", NULL);
        const json_t *sample = json_object_get(line, "sample");
        if (stage != NULL)
            in_launch = strcmp(stage, "launch") == 0;
        session->at_row = clab_json_int(line, "row", session->at_row);
        if (sample != NULL && on_sample != NULL)
            on_sample(context, sample);
        if (stage == NULL && sample == NULL) {
            *out_answer = line;
            break;
        }
        json_decref(line);
    }
    if (status != CLAB_OK)
        return status;
    const json_t *fault = json_object_get(*out_answer, "error");
    if (json_object_get(*out_answer, "sticky") != NULL) {
        session->alive = false;
        clab_process_kill(&session->process);
    }
    return fault != NULL ? clab_error_from_json(fault, error) : CLAB_OK;
}

static clab_status start(struct clab_session *session, struct clab_error *error)
{
    const char *argv[64];
    char program[PATH_MAX];
    size_t words = 0;
    for (const char *const *word = session->wrapper; word != NULL && *word != NULL && words < 60; word++)
        argv[words++] = *word;
    /* Under a wrapper /proc/self/exe would be the wrapper. */
    const ssize_t length = words != 0 ? readlink("/proc/self/exe", program, sizeof program - 1) : -1;
    if (length > 0)
        program[length] = '\0';
    argv[words++] = length > 0 ? program : "/proc/self/exe";
    argv[words++] = "--device-worker";
    argv[words] = NULL;
    session->reader.start = session->reader.end = 0;
    if (clab_process_start(&session->process, argv, NULL, false) != 0)
        return clab_error_set(error, CLAB_WORKER, "cannot start a worker: %s", strerror(errno));
    session->reader.fd = session->process.from_fd;
    session->alive = true;
    json_t *request =
        json_pack("{s:s,s:s,s:O?}", "op", "open", "device", session->device, "options", session->options);
    json_t *answer;
    clab_status status = clab_session_ask(session, request, -1, NULL, NULL, &answer, error);
    if (status == CLAB_OK) {
        json_decref(session->facts);
        session->facts = json_incref(json_object_get(answer, "facts"));
    } else {
        clab_process_kill(&session->process);
        session->alive = false;
    }
    json_decref(answer);
    return status;
}

clab_status clab_session_open(struct clab_session *session, const char *device, json_t *options,
                              const volatile sig_atomic_t *interrupted, struct clab_error *error)
{
    return clab_session_open_under(session, device, options, interrupted, NULL, error);
}

clab_status clab_session_open_under(struct clab_session *session, const char *device, json_t *options,
                                    const volatile sig_atomic_t *interrupted, const char *const *wrapper,
                                    struct clab_error *error)
{
    memset(session, 0, sizeof *session);
    session->wrapper = wrapper;
    session->process.to_fd = session->process.from_fd = session->process.error_fd = -1;
    session->interrupted = interrupted;
    session->options = json_incref(options);
    session->stages = json_object();
    session->mark_ns = clab_now_ns();
    snprintf(session->device, sizeof session->device, "%s", device);
    clab_status status = start(session, error);
    clab_session_mark(session, "open");
    if (status != CLAB_OK)
        clab_session_close(session);
    return status;
}

void clab_session_mark(struct clab_session *session, const char *stage)
{
    const uint64_t now_ns = clab_now_ns();
    const double before = json_number_value(json_object_get(session->stages, stage));
    json_object_set_new(session->stages, stage,
                        json_real(before + (double)(now_ns - session->mark_ns) * 1e-6));
    session->mark_ns = now_ns;
}

clab_status clab_session_reopen(struct clab_session *session, struct clab_error *error)
{
    clab_process_kill(&session->process);
    return start(session, error);
}

clab_status clab_session_option(struct clab_session *session, const char *name, const char *value,
                                struct clab_error *error)
{
    json_t *options = json_is_object(session->options) ? json_deep_copy(session->options) : json_object(),
           *answer;
    json_object_set_new(options, name, json_string(value));
    json_decref(session->options);
    session->options = options;
    if (!session->alive)
        return CLAB_OK; /* the next worker is started with it */
    clab_status status =
        clab_session_ask(session, json_pack("{s:s,s:s,s:s}", "op", "option", "name", name, "value", value),
                         -1, NULL, NULL, &answer, error);
    json_decref(answer);
    return status;
}

void clab_session_finish(struct clab_session *session, int limit_ms)
{
    if (!session->alive || session->process.to_fd < 0)
        return;
    close(session->process.to_fd);
    session->process.to_fd = -1;
    int status;
    (void)clab_process_wait(&session->process, limit_ms, &status);
}

void clab_session_close(struct clab_session *session)
{
    clab_session_finish(
        session, 2000); /* the end of its input lets the worker go; the kill covers one that does not */
    clab_process_kill(&session->process);
    clab_line_reader_free(&session->reader);
    json_decref(session->facts);
    json_decref(session->options);
    json_decref(session->stages);
    session->facts = session->options = session->stages = NULL;
    session->alive = false;
}

clab_status clab_session_takes(const struct clab_session *session, const char *file, struct clab_error *error)
{
    const char *dot = strrchr(file, '.');
    if (dot == NULL || strcmp(dot, ".cubin") != 0 || clab_json_bool(session->facts, "accepts_cubin", false))
        return CLAB_OK;
    clab_error_set(error, CLAB_UNSUPPORTED, "%s runs PTX, and %s is a cubin", session->device, file);
    return clab_error_remedy(error, "give the PTX or the CUDA source that it was made of");
}
