/* The parent's side of experiment files: find and read the file, fork a child that evaluates it (sandbox.c,
   plan_*.c), wait under a wall clock, and decode its answer. The child shares nothing but a pipe that carries
   one JSON text:
   {"ok": value} or {"error": {...}}. */
#include "lab/experiment.h"

#include "base/process.h"
#include "base/str.h"
#include "compile/sha256.h"
#include "lab/find.h"
#include "lab/plan.h"
#include "lab/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_MAX_BYTES     (1u << 20)
#define ANSWER_MAX_BYTES   ((size_t)256 << 20)
#define DEFAULT_TIMEOUT_MS 5000
#define DEFAULT_MAX_BYTES  ((size_t)256 << 20)
#define GRACE_MS           1000 /* beyond the child's own deadline, before it is killed */

enum task { TASK_LIST, TASK_PLAN, TASK_RESOLVE, TASK_COLUMNS, TASK_JUDGE };

/* One trip to a child. */
struct job {
    enum task task;
    const struct clab_lab_request *request;
    const char *path; /* of the file, absolute */
    char *text;
    size_t text_bytes;
    char sha256[65];
    char folder[PATH_MAX], name[NAME_MAX + 1], shown[PATH_MAX];
    const json_t *plan; /* RESOLVE, COLUMNS: the plan */
    size_t row;
    const uint32_t *grid;
    const json_t *rows; /* COLUMNS, JUDGE: row records */
};

/* -- the child ------------------------------------------------------------------------------------------ */

struct child {
    struct job *job;
    struct clab_plan plan;
    json_t *answer;
};

static json_t *list_answer(struct child *child)
{
    struct clab_plan *plan = &child->plan;
    clab_eval_set(plan->eval, plan->result, "params", json_incref(plan->params));
    clab_eval_set(plan->eval, plan->result, "sweep", json_incref(plan->sweep));
    return plan->result;
}

static json_t *resolve_answer(struct child *child)
{
    const json_t *row = json_array_get(json_object_get(child->job->plan, "rows"), child->job->row);
    return clab_plan_row(&child->plan, (size_t)clab_json_int(row, "variant", 0),
                         json_object_get(row, "params"), child->job->grid);
}

static json_t *plan_answer(struct child *child)
{
    struct clab_plan *plan = &child->plan;
    struct clab_eval *eval = plan->eval;
    plan->rows = clab_eval_json(eval, json_array());
    plan->buffer_sets = clab_eval_json(eval, json_array());
    clab_plan_rows(plan);
    clab_eval_set(eval, plan->result, "rows", plan->rows);
    clab_eval_set(eval, plan->result, "buffer_sets", plan->buffer_sets);
    struct clab_path root = {0};
    bool hot = clab_field_bool(eval, &root, plan->root, "hot", true);
    clab_eval_set(eval, plan->result, "hot", json_boolean(hot));
    return plan->result;
}

/* The whole evaluation; every mistake leaves by lua_error. */
static int child_body(lua_State *L)
{
    struct child *child = lua_touserdata(L, 1);
    struct clab_plan *plan = &child->plan;
    const struct clab_lab_request *request = child->job->request;
    lua_settop(L, 0);
    clab_plan_file(plan);
    for (size_t i = 0; i < request->n_withs; i++)
        clab_plan_with(plan, request->withs[i]);
    if (child->job->task == TASK_LIST) {
        child->answer = list_answer(child);
        return 0;
    }
    clab_plan_requested(plan);
    if (child->job->task == TASK_PLAN)
        child->answer = plan_answer(child);
    else if (child->job->task == TASK_RESOLVE)
        child->answer = resolve_answer(child);
    else if (child->job->task == TASK_COLUMNS)
        child->answer =
            clab_plan_timed_columns(plan, json_object_get(child->job->plan, "rows"), child->job->rows);
    else
        child->answer = clab_plan_judge(plan, child->job->rows, request->device);
    return 0;
}

/* Everything that happens between fork and exit. */
static void child_main(struct job *job, int out_fd)
{
    struct clab_error error = {0};
    const struct rlimit no_core = {0, 0};
    struct clab_eval eval = {
        .file = job->shown,
        .text = job->text,
        .text_bytes = job->text_bytes,
        .folder = job->folder,
        .timeout_ms = job->request->timeout_ms > 0 ? job->request->timeout_ms : DEFAULT_TIMEOUT_MS,
        .max_bytes = job->request->max_bytes > 0 ? job->request->max_bytes : DEFAULT_MAX_BYTES,
    };
    setrlimit(RLIMIT_CORE, &no_core);
    eval.deadline_ns = clab_now_ns() + (uint64_t)eval.timeout_ms * 1000000u;
    struct child child = {.job = job, .plan = {.eval = &eval, .request = job->request}};
    clab_status status = clab_sandbox_open(&eval, &error);
    if (status == CLAB_OK)
        status = clab_sandbox_run(&eval, child_body, &child, &error);
    json_t *answer = status == CLAB_OK ? json_pack("{s:o}", "ok", child.answer)
                                       : json_pack("{s:o}", "error", clab_error_to_json(&error));
    clab_wire_send(out_fd, answer, NULL);
}

/* -- the parent ----------------------------------------------------------------------------------------- */

/* Reads the child's whole answer. 1 end of file, 0 deadline passed, -1 too long or out of memory. */
static int read_answer(int fd, uint64_t deadline_ns, struct clab_str *text)
{
    char chunk[65536];
    for (;;) {
        uint64_t now = clab_now_ns();
        if (now >= deadline_ns)
            return 0;
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, (int)((deadline_ns - now) / 1000000u) + 1);
        if (ready <= 0)
            continue;
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got == 0)
            return 1;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        if (got > 0)
            clab_str_add_bytes(text, chunk, (size_t)got);
        if (text->failed || text->bytes > ANSWER_MAX_BYTES)
            return -1;
    }
}

static clab_status decode_answer(const char *text, size_t bytes, json_t **out, struct clab_error *error)
{
    json_error_t parse_error;
    json_t *answer = json_loadb(text != NULL ? text : "", bytes, 0, &parse_error);
    json_t *ok = json_object_get(answer, "ok");
    if (ok != NULL) {
        *out = json_incref(ok);
        json_decref(answer);
        return CLAB_OK;
    }
    clab_status status = CLAB_INTERNAL;
    if (answer == NULL) {
        clab_error_set(error, CLAB_INTERNAL, "the evaluator's answer cannot be read: %s", parse_error.text);
    } else {
        struct clab_error received = {0};
        clab_error_from_json(json_object_get(answer, "error"), &received);
        status = received.status != CLAB_OK ? received.status : CLAB_INTERNAL;
        clab_error_copy(error, &received);
        clab_error_clear(&received);
    }
    json_decref(answer);
    return status;
}

static clab_status run_job(struct job *job, json_t **out, struct clab_error *error)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return clab_error_set(error, CLAB_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        close(fds[0]);
        close(fds[1]);
        return clab_error_set(error, CLAB_INTERNAL, "cannot start the evaluator: %s", strerror(errno));
    }
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            child_main(job, fds[1]);
        _exit(0); /* the child of a fork: the parent's exit handlers and buffers are not its to run */
    }
    close(fds[1]);
    int timeout_ms = job->request->timeout_ms > 0 ? job->request->timeout_ms : DEFAULT_TIMEOUT_MS;
    struct clab_str text = {0};
    int read_status =
            read_answer(fds[0], clab_now_ns() + ((uint64_t)timeout_ms + GRACE_MS) * 1000000u, &text),
        wait_status = 0;
    close(fds[0]);
    if (read_status != 1)
        kill(pid, SIGKILL);
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    clab_status status;
    if (read_status == 0) {
        clab_error_set(error, CLAB_EXPERIMENT, "the file's code was stopped after %d ms",
                       timeout_ms + GRACE_MS);
        status = clab_error_at(error, job->shown, 0, 0);
    } else if (read_status < 0) {
        status =
            clab_error_set(error, CLAB_NO_MEMORY, "the plan is larger than %zu MiB", ANSWER_MAX_BYTES >> 20);
    } else if (WIFSIGNALED(wait_status)) {
        clab_error_set(error, CLAB_EXPERIMENT, "evaluating the file ended with signal %d (%s)",
                       WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
        status = clab_error_at(error, job->shown, 0, 0);
    } else {
        status = decode_answer(text.text, text.bytes, out, error);
    }
    clab_str_free(&text);
    return status;
}

/* -- jobs ------------------------------------------------------------------------------------------------ */

static void job_fini(struct job *job)
{
    free(job->text);
}

/* The file's path as a person would write it: relative when it lies below the working folder. */
static void show_path(const char *path, char *shown, size_t bytes)
{
    char cwd[PATH_MAX];
    size_t length = getcwd(cwd, sizeof cwd) != NULL ? strlen(cwd) : 0;
    bool below = length > 1 && strncmp(path, cwd, length) == 0 && path[length] == '/';
    snprintf(shown, bytes, "%s", below ? path + length + 1 : path);
}

static clab_status job_init(struct job *job, const char *path, struct clab_error *error)
{
    job->path = path;
    show_path(path, job->shown, sizeof job->shown);
    clab_experiment_name(path, job->name, sizeof job->name);
    snprintf(job->folder, sizeof job->folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    job->text = clab_file_read(path, FILE_MAX_BYTES, &job->text_bytes);
    if (job->text == NULL) {
        clab_error_set(error, CLAB_EXPERIMENT, "cannot read the experiment file: %s",
                       errno == EFBIG ? "it is larger than 1 MiB" : strerror(errno));
        return clab_error_at(error, job->shown, 0, 0);
    }
    clab_sha256_of(job->text, job->text_bytes, job->sha256);
    return CLAB_OK;
}

static json_t *strings_to_json(const char *const *strings, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(strings[i]));
    return list;
}

/* The request as the plan keeps it, so that judge and resolve evaluate the same thing. */
static json_t *request_to_json(const struct clab_lab_request *request)
{
    return json_pack(
        "{s:o,s:s?,s:o,s:o,s:O?,s:b,s:i,s:I}", "sets", strings_to_json(request->sets, request->n_sets),
        "clusters", request->clusters, "variants", strings_to_json(request->variants, request->n_variants),
        "withs", strings_to_json(request->withs, request->n_withs), "device", request->device, "check",
        (int)request->check, "timeout_ms", request->timeout_ms, "max_bytes", (json_int_t)request->max_bytes);
}

struct kept_request {
    struct clab_lab_request request;
    const char **strings;
};

static bool strings_from_json(const json_t *list, const char ***next, const char *const **out, size_t *out_n)
{
    *out = *next;
    *out_n = json_array_size(list);
    for (size_t i = 0; i < *out_n; i++)
        if ((*(*next)++ = json_string_value(json_array_get(list, i))) == NULL)
            return false;
    return true;
}

static clab_status request_from_plan(const json_t *plan, struct kept_request *kept, struct clab_error *error)
{
    const json_t *object = json_object_get(plan, "request");
    const json_t *sets = json_object_get(object, "sets"), *variants = json_object_get(object, "variants"),
                 *withs = json_object_get(object, "withs"), *device = json_object_get(object, "device");
    memset(kept, 0, sizeof *kept);
    struct clab_lab_request *request = &kept->request;
    kept->strings = calloc(json_array_size(sets) + json_array_size(variants) + json_array_size(withs) + 1,
                           sizeof *kept->strings);
    const char **next = kept->strings;
    if (kept->strings == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory");
    request->experiment = clab_json_text(plan, "file", "");
    request->clusters = clab_json_text(object, "clusters", NULL);
    request->device = json_is_object(device) ? device : NULL;
    request->check = clab_json_bool(object, "check", false);
    request->timeout_ms = (int)clab_json_int(object, "timeout_ms", 0);
    request->max_bytes = (size_t)clab_json_int(object, "max_bytes", 0);
    if (!strings_from_json(sets, &next, &request->sets, &request->n_sets) ||
        !strings_from_json(variants, &next, &request->variants, &request->n_variants) ||
        !strings_from_json(withs, &next, &request->withs, &request->n_withs)) {
        free(kept->strings);
        return clab_error_set(error, CLAB_INTERNAL, "the plan's request is malformed");
    }
    return CLAB_OK;
}

/* Members of a plan that the parent knows. */
static clab_status finish_plan(const struct job *job, json_t *plan, struct clab_error *error)
{
    if (json_object_set_new(plan, "experiment", json_string(job->name)) != 0 ||
        json_object_set_new(plan, "file", json_string(job->path)) != 0 ||
        json_object_set_new(plan, "sha256", json_string(job->sha256)) != 0 ||
        json_object_set_new(plan, "request", request_to_json(job->request)) != 0)
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for the plan");
    return CLAB_OK;
}

/* Plans and records are JSON, and JSON text is UTF-8. */
static clab_status check_utf8(const char *text, struct clab_error *error)
{
    json_t *string = text != NULL ? json_string(text) : json_null();
    if (string == NULL)
        return clab_error_set(error, CLAB_USAGE, "'%s' is not UTF-8, which records need", text);
    json_decref(string);
    return CLAB_OK;
}

static clab_status check_request(const struct clab_lab_request *request, const char *path,
                                 struct clab_error *error)
{
    clab_status status = check_utf8(path, error);
    if (status == CLAB_OK)
        status = check_utf8(request->clusters, error);
    for (size_t i = 0; i < request->n_sets && status == CLAB_OK; i++)
        status = check_utf8(request->sets[i], error);
    for (size_t i = 0; i < request->n_variants && status == CLAB_OK; i++)
        status = check_utf8(request->variants[i], error);
    for (size_t i = 0; i < request->n_withs && status == CLAB_OK; i++)
        status = check_utf8(request->withs[i], error);
    return status;
}

clab_status clab_lab_plan(const struct clab_lab_request *request, json_t **out_plan, struct clab_error *error)
{
    char *path = NULL;
    *out_plan = NULL;
    clab_status status = clab_experiment_find(request->experiment, &path, error);
    if (status == CLAB_OK)
        status = check_request(request, path, error);
    if (status != CLAB_OK) {
        free(path);
        return status;
    }
    struct job job = {.task = TASK_PLAN, .request = request};
    json_t *plan = NULL;
    status = job_init(&job, path, error);
    if (status == CLAB_OK)
        status = run_job(&job, &plan, error);
    if (status == CLAB_OK)
        status = finish_plan(&job, plan, error);
    if (status == CLAB_OK)
        *out_plan = plan;
    else
        json_decref(plan);
    job_fini(&job);
    free(path);
    return status;
}

/* Runs a job over a finished plan. *out_changed: the file is no longer the one that was planned, nothing was
 * run. */
static clab_status run_over_plan(struct job *job, const json_t *plan, bool *out_changed, json_t **out,
                                 struct clab_error *error)
{
    struct kept_request kept;
    *out = NULL;
    *out_changed = false;
    clab_status status = request_from_plan(plan, &kept, error);
    if (status != CLAB_OK)
        return status;
    job->request = &kept.request;
    job->plan = plan;
    struct clab_error read_error = {0};
    if (job_init(job, kept.request.experiment, &read_error) != CLAB_OK ||
        strcmp(job->sha256, clab_json_text(plan, "sha256", "")) != 0)
        *out_changed = true;
    else
        status = run_job(job, out, error);
    clab_error_clear(&read_error);
    job_fini(job);
    free(kept.strings);
    return status;
}

clab_status clab_lab_resolve(const json_t *plan, size_t row, const uint32_t grid[3], json_t **out_row,
                             struct clab_error *error)
{
    struct job job = {.task = TASK_RESOLVE, .row = row, .grid = grid};
    bool changed;
    *out_row = NULL;
    if (row >= json_array_size(json_object_get(plan, "rows")))
        return clab_error_set(error, CLAB_INTERNAL, "the plan has no row %zu", row);
    clab_status status = run_over_plan(&job, plan, &changed, out_row, error);
    if (status == CLAB_OK && changed)
        status = clab_error_set(error, CLAB_EXPERIMENT, "'%s' changed while it was running",
                                clab_json_text(plan, "file", ""));
    return status;
}

clab_status clab_lab_timed_columns(const json_t *plan, const json_t *records, json_t **out_columns,
                                   struct clab_error *error)
{
    struct job job = {.task = TASK_COLUMNS, .rows = records};
    const json_t *columns = json_object_get(plan, "columns");
    bool changed, any = false;
    *out_columns = NULL;
    for (size_t i = 0; i < json_array_size(columns); i++)
        any |= clab_json_bool(json_array_get(columns, i), "timed", false);
    if (!any)
        return CLAB_OK;
    clab_status status = run_over_plan(&job, plan, &changed, out_columns, error);
    if (status == CLAB_OK && changed)
        status = clab_error_set(error, CLAB_EXPERIMENT, "'%s' changed while it was running",
                                clab_json_text(plan, "file", ""));
    return status;
}

/* Every prediction with one verdict and detail. */
static json_t *uniform_verdicts(const json_t *plan, const char *detail)
{
    json_t *verdicts = json_array(), *prediction;
    size_t i;
    json_array_foreach(json_object_get(plan, "predictions"), i, prediction) json_array_append_new(
        verdicts, json_pack("{s:O,s:s,s:s,s:O}", "text", json_object_get(prediction, "text"), "verdict",
                            "not measured", "detail", detail, "line", json_object_get(prediction, "line")));
    return verdicts;
}

clab_status clab_lab_judge(const json_t *plan, const json_t *rows, json_t **out_predictions,
                           struct clab_error *error)
{
    struct job job = {.task = TASK_JUDGE, .rows = rows};
    bool changed = false;
    *out_predictions = NULL;
    if (json_array_size(json_object_get(plan, "predictions")) == 0) {
        *out_predictions = json_array();
        return CLAB_OK;
    }
    struct clab_error failed = {0};
    clab_status status = run_over_plan(&job, plan, &changed, out_predictions, &failed);
    if (changed) {
        *out_predictions = uniform_verdicts(plan, "the experiment file changed while it was running");
    } else if (status == CLAB_EXPERIMENT) { /* an endless prediction, say: no reason to lose the run */
        char *text = clab_error_format(&failed);
        *out_predictions = uniform_verdicts(plan, text != NULL ? text : failed.message);
        free(text);
        status = CLAB_OK;
    }
    if (status != CLAB_OK)
        clab_error_copy(error, &failed);
    clab_error_clear(&failed);
    return status;
}

clab_status clab_lab_list(json_t **out_experiments, struct clab_error *error)
{
    static const struct clab_lab_request nothing = {0};
    char **paths = clab_experiment_all();
    json_t *list = json_array();
    *out_experiments = NULL;
    if (paths == NULL || list == NULL) {
        free(paths);
        json_decref(list);
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory");
    }
    for (size_t i = 0; paths[i] != NULL; i++) {
        struct job job = {.task = TASK_LIST, .request = &nothing};
        struct clab_error failed = {0};
        json_t *found = NULL;
        clab_status status = job_init(&job, paths[i], &failed);
        if (status == CLAB_OK)
            status = run_job(&job, &found, &failed);
        if (status != CLAB_OK) {
            found = json_object();
            char *text = clab_error_format(&failed);
            json_object_set_new(found, "error", json_string(text != NULL ? text : failed.message));
            free(text);
        } else {
            json_object_set_new(found, "error", json_null());
        }
        json_object_set_new(found, "name", json_string(job.name));
        json_object_set_new(found, "file", json_string(paths[i]));
        json_array_append_new(list, found);
        clab_error_clear(&failed);
        job_fini(&job);
        free(paths[i]);
    }
    free(paths);
    *out_experiments = list;
    return CLAB_OK;
}
