/* The compile worker: reads jobs from a pipe, compiles, writes answers, until the pipe ends. It lives long,
   because loading NVRTC takes time, and because where addresses cannot be kept the same its precompiled
   headers only help inside one process (pch.c). Nothing else may reach the answers' pipe: NVRTC and the
   assembler inside it may print, so standard output is turned over to standard error. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "compile/compile.h"
#include "compile/pch.h"
#include "compile/share.h"
#include "compile/wire.h"

/* Reads exactly `bytes`; false at the end of the pipe. */
static bool read_all(int fd, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        ssize_t got = TEMP_FAILURE_RETRY(read(fd, at, bytes));
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* For a target of a chip, by way of PTX that all its targets share. False where there is none, or where it
   does not assemble: then the plain way tells why. */
static bool answer_for_chip(const struct clab_wire_job *job, struct clab_compile_result *out)
{
    const struct clab_target *target = clab_target_find(job->request.arch);
    struct clab_compile_request link = job->request;
    struct clab_image ptx;
    if (!clab_nvrtc_compile_for_chip(&job->toolkit, &job->request, &ptx))
        return false;
    char *text = clab_share_retarget(ptx.data, target);
    link.entry = NULL;
    link.option_count = 0;
    bool good = text != NULL &&
                clab_link_ptx(&job->toolkit, &link, text, strlen(text), &out->image, &out->error) == CLAB_OK;
    if (good) {
        out->image.per_chip = true;
        free(out->image.lowered);
        out->image.lowered = ptx.lowered;
        ptx.lowered = NULL;
    }
    clab_error_clear(&out->error);
    clab_image_free(&ptx);
    free(text);
    return good;
}

static void answer(const struct clab_wire_job *job, struct clab_pch_store *store,
                   struct clab_compile_result *out)
{
    const struct clab_compile_request *request = &job->request;
    size_t length = strlen(request->source_path);
    bool ptx = length > 4 && strcmp(request->source_path + length - 4, ".ptx") == 0;
    if (ptx || job->assemble)
        out->status = clab_link_ptx(&job->toolkit, request, request->source_text,
                                    strlen(request->source_text), &out->image, &out->error);
    else if (!answer_for_chip(job, out))
        out->status =
            clab_nvrtc_compile_pch(&job->toolkit, request, &job->pch, store, &out->image, &out->error);
}

int clab_compile_worker(int in_fd, int out_fd)
{
    int to = fcntl(out_fd, F_DUPFD_CLOEXEC, 3);
    if (to < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 6;
    struct clab_pch_store store;
    clab_pch_store_init(&store);
    for (;;) {
        struct clab_wire_head head;
        if (!read_all(in_fd, &head, sizeof head))
            return 0; /* the parent is done */
        if (!clab_wire_head_good(&head))
            return 6;
        char *payload = malloc((size_t)head.bytes + 1);
        struct clab_arena arena = {0};
        struct clab_str message = {0};
        struct clab_wire_job *job = malloc(sizeof *job);
        struct clab_compile_result *result = calloc(1, sizeof *result);
        bool good = payload != NULL && job != NULL && result != NULL &&
                    read_all(in_fd, payload, (size_t)head.bytes) &&
                    clab_wire_get_job(payload, (size_t)head.bytes, &arena, job);
        if (good) {
            answer(job, &store, result);
            clab_wire_put_result(&message, result);
            good = !message.failed && clab_write_all(to, message.text, message.bytes) == 0;
        }
        if (result != NULL)
            clab_compile_result_free(result);
        clab_str_free(&message);
        clab_arena_free(&arena);
        free(result);
        free(job);
        free(payload);
        if (!good)
            return 6;
    }
}
