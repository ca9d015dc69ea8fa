/* The compile service's parent side: takes images as they are where nothing needs compiling, answers from the
   cache, and gives the rest to worker processes, which it starts as they are needed, watches by the clock and
   replaces when they die. A worker that dies with precompiled headers in use gets one more try without them,
   because a full temporary disk can kill NVRTC there. SIGPIPE must be ignored by the program (host/main.c
   does). */
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/temporary.h"
#include "compile/cache.h"
#include "compile/compile.h"
#include "compile/pch.h"
#include "compile/ptxas_log.h"
#include "compile/share.h"
#include "compile/target.h"
#include "compile/wire.h"

enum { MOST_WORKERS = 64, DEFAULT_TIMEOUT_MS = 120000 };

struct worker {
    struct clab_process process; /* pid 0: not running */
    bool busy;
    size_t task;              /* index while busy */
    uint64_t deadline_ns;     /* while busy */
    char arch[16];            /* of its last task */
    char scratch[4096];       /* folder for its precompiled headers, where they cannot be kept; "" none */
    char scratch_pch[65];     /* key of the one that it made there last */
    bool pch_used;            /* by the task at hand */
    struct clab_str received; /* of the answer so far */
};

struct clab_compiler {
    struct clab_toolkit toolkit;
    struct clab_cache cache;
    char *program; /* NULL: the running one */
    unsigned int worker_limit, timeout_ms;
    const volatile sig_atomic_t *interrupted;
    struct worker workers[MOST_WORKERS];
    size_t compiled;
    char pch_dir[4120]; /* "" : none are kept */
    time_t started;
};

/* One request on its way. */
enum task_state { TASK_WAITING, TASK_RUNNING, TASK_ALIAS, TASK_DONE };
struct task {
    enum task_state state;
    struct clab_compile_request request; /* with source_text filled in */
    char *text;                          /* owned source text, or NULL when the caller's is used */
    char arch[16];
    char key[65];
    char pch[65]; /* key of its precompiled header, "" none; known once it may matter */
    bool pch_known;
    size_t alias; /* index of the earlier task with the same key, or of the same unit and target */
    bool retried;
    size_t unit;     /* 1 + index of what it shares with the chip's other targets; 0: nothing */
    bool assembling; /* while it runs: from the unit's PTX */
};

/* One source for one chip: what the requests with per_chip for its targets, and for its kernels, share. */
enum unit_state {
    UNIT_NEW,
    UNIT_RUNNING, /* a worker tries: the others wait */
    UNIT_SHARED,
    UNIT_OWN /* each target is compiled for itself */
};
struct unit {
    enum unit_state state;
    char source[65]; /* key of the source with its options, without the chip */
    int chip;        /* 90 */
    char *ptx;       /* once SHARED */
    char *lowered;   /* of an entry that is an expression; NULL otherwise */
};

struct batch {
    struct clab_compiler *compiler;
    struct task *tasks;
    struct clab_compile_result *results;
    struct unit *units; /* as many as there are tasks */
    size_t unit_count;
    size_t count, done;
    void (*progress)(void *context, size_t done, size_t count);
    void *context;
};

struct clab_compiler *clab_compiler_new(const struct clab_compiler_options *options)
{
    static const struct clab_compiler_options defaults;
    if (options == NULL)
        options = &defaults;
    struct clab_compiler *compiler = calloc(1, sizeof *compiler);
    if (compiler == NULL)
        return NULL;
    compiler->started = time(NULL);
    clab_toolkit_find(&compiler->toolkit);
    clab_cache_init(&compiler->cache, options->cache_dir);
    if (compiler->cache.dir[0] != '\0' && clab_pch_limit_bytes() > 0)
        snprintf(compiler->pch_dir, sizeof compiler->pch_dir, "%s/pch", compiler->cache.dir);
    if (options->program != NULL)
        compiler->program = strdup(options->program);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    compiler->worker_limit = options->workers > 0 ? options->workers : cores > 0 ? (unsigned int)cores : 1;
    if (compiler->worker_limit > MOST_WORKERS)
        compiler->worker_limit = MOST_WORKERS;
    compiler->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    compiler->interrupted = options->interrupted;
    return compiler;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    remove(path);
    return 0;
}

static void stop_worker(struct worker *worker)
{
    clab_process_kill(&worker->process);
    worker->process.pid = 0;
    worker->busy = worker->pch_used = false;
    worker->arch[0] = worker->scratch_pch[0] = '\0';
    clab_str_free(&worker->received);
    if (worker->scratch[0] != '\0')
        nftw(worker->scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    worker->scratch[0] = '\0';
}

void clab_compiler_free(struct clab_compiler *compiler)
{
    if (compiler == NULL)
        return;
    for (size_t i = 0; i < MOST_WORKERS; i++)
        if (compiler->workers[i].process.pid != 0)
            stop_worker(&compiler->workers[i]);
    free(compiler->program);
    free(compiler);
}

const struct clab_toolkit *clab_compiler_toolkit(const struct clab_compiler *compiler)
{
    return &compiler->toolkit;
}

const char *clab_compiler_cache_dir(const struct clab_compiler *compiler)
{
    return compiler->cache.dir;
}

const char *clab_compiler_cache_note(const struct clab_compiler *compiler)
{
    return compiler->cache.note;
}

size_t clab_compiler_compiled(const struct clab_compiler *compiler)
{
    return compiler->compiled;
}

void clab_compile_result_free(struct clab_compile_result *result)
{
    clab_image_free(&result->image);
    clab_error_clear(&result->error);
    result->status = CLAB_OK;
}

/* --- before a worker is needed
 * ------------------------------------------------------------------------------ */

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path), wanted = strlen(ending);
    return length > wanted && strcmp(path + length - wanted, ending) == 0;
}

/* An image that comes as a file: taken as it is, or, PTX for a cubin, left to a worker (*out_link). */
static clab_status take_image(const struct clab_compile_request *request, struct task *task,
                              struct clab_image *out, bool *out_link, struct clab_error *error)
{
    const struct clab_target *chip = NULL, *made_for;
    *out_link = false;
    clab_status status = CLAB_OK;
    if (request->source_text != NULL)
        status = clab_image_from_bytes(request->source_path, request->source_text,
                                       strlen(request->source_text), out, error);
    else
        status = clab_image_read(request->source_path, out, error);
    if (status == CLAB_OK && request->arch != NULL)
        status = clab_target_parse(request->arch, &chip, error);
    if (status == CLAB_OK && out->kind == CLAB_IMAGE_CUBIN && request->want == CLAB_IMAGE_PTX) {
        clab_error_set(error, CLAB_UNSUPPORTED, "%s is a cubin, and PTX is needed here",
                       request->source_path);
        status = clab_error_remedy(error, "give its PTX or its source instead");
    }
    if (status == CLAB_OK && out->kind == CLAB_IMAGE_PTX && request->want == CLAB_IMAGE_CUBIN) {
        task->text = strdup(out->data);
        if (task->text == NULL)
            status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for %s", request->source_path);
        *out_link = status == CLAB_OK;
    }
    /* The emulator takes fatbins too, the driver whatever fits: their content is not looked at here. */
    made_for = status == CLAB_OK && out->arch[0] != '\0' ? clab_target_find(out->arch) : NULL;
    if (status == CLAB_OK && chip != NULL && made_for != NULL) {
        bool is_ptx = out->kind == CLAB_IMAGE_PTX;
        if (is_ptx && (request->adopt_suffix || !*out_link) && made_for->number == chip->number)
            chip = made_for->reach == CLAB_REACH_EXACT ? made_for : chip;
        status = clab_target_check(made_for, is_ptx, chip, error);
        if (status != CLAB_OK)
            clab_error_at(error, request->source_path, 0, 0);
        snprintf(task->arch, sizeof task->arch, "%s", chip->name);
    }
    if (status == CLAB_OK && !*out_link && (request->entry != NULL))
        status = clab_image_choose_entry(out, request->entry, error);
    if (status != CLAB_OK || *out_link)
        clab_image_free(out);
    return status;
}

static void finish(struct batch *batch, size_t index, clab_status status)
{
    batch->results[index].status = status;
    batch->tasks[index].state = TASK_DONE;
    batch->done++;
    if (batch->progress != NULL)
        batch->progress(batch->context, batch->done, batch->count);
}

/* Whether an entry is a name, which can be looked up in any image of its source, rather than an expression
   that has to be instantiated. */
static bool is_name(const char *entry)
{
    return entry == NULL || strpbrk(entry, "<:( &") == NULL;
}

/* Gives the task its unit, a new one if need be. */
static void join_unit(struct batch *batch, struct task *task, int chip)
{
    struct clab_compile_request request = task->request;
    struct unit *unit = &batch->units[batch->unit_count];
    request.arch = "";
    request.entry = is_name(request.entry) ? NULL : request.entry;
    memset(unit, 0, sizeof *unit);
    clab_cache_key(&batch->compiler->toolkit, &request, unit->source);
    unit->chip = chip;
    for (size_t i = 0; i < batch->unit_count; i++)
        if (batch->units[i].chip == chip && strcmp(batch->units[i].source, unit->source) == 0) {
            task->unit = i + 1;
            return;
        }
    task->unit = ++batch->unit_count;
}

/* An earlier task whose image will be this one's too. */
static void find_alias(struct batch *batch, size_t index)
{
    struct task *task = &batch->tasks[index];
    for (size_t i = 0; i < index && task->key[0] != '\0'; i++) {
        const struct task *other = &batch->tasks[i];
        const bool shared = task->unit != 0 && other->unit == task->unit &&
                            batch->units[task->unit - 1].state != UNIT_OWN &&
                            strcmp(other->arch, task->arch) == 0;
        if (other->state == TASK_WAITING && (shared || strcmp(other->key, task->key) == 0)) {
            task->state = TASK_ALIAS;
            task->alias = i;
            return;
        }
    }
}

/* Does what can be done in this process; what remains is TASK_WAITING or TASK_ALIAS. */
static void prepare(struct batch *batch, size_t index)
{
    struct clab_compiler *compiler = batch->compiler;
    struct task *task = &batch->tasks[index];
    struct clab_compile_request *request = &task->request;
    struct clab_compile_result *result = &batch->results[index];
    const struct clab_target *target;
    clab_status status = CLAB_OK;
    bool is_ptx = has_ending(request->source_path, ".ptx");
    bool is_cuda = !is_ptx && !has_ending(request->source_path, ".cubin") &&
                   !has_ending(request->source_path, ".fatbin");
    bool link = false;
    task->state = TASK_WAITING;
    if (request->want != CLAB_IMAGE_PTX && request->want != CLAB_IMAGE_CUBIN) {
        finish(batch, index,
               clab_error_set(&result->error, CLAB_USAGE, "%s: PTX or cubin, nothing else can be made",
                              request->source_path));
        return;
    }
    if (!is_cuda) {
        status = take_image(request, task, &result->image, &link, &result->error);
        if (status != CLAB_OK || !link) {
            finish(batch, index, status);
            return;
        }
    } else if (request->source_text == NULL) {
        size_t bytes;
        task->text = clab_file_read(request->source_path, (size_t)64 << 20, &bytes);
        if (task->text == NULL)
            status = clab_error_set(&result->error, CLAB_NOT_FOUND, "cannot read %s: %s",
                                    request->source_path, strerror(errno));
        else if (strlen(task->text) != bytes)
            status = clab_error_set(&result->error, CLAB_COMPILE, "%s is not text: it has a zero byte",
                                    request->source_path);
    }
    if (task->text != NULL)
        request->source_text = task->text;
    if (status == CLAB_OK && request->arch == NULL)
        status = clab_error_set(&result->error, CLAB_USAGE, "%s needs an architecture to be compiled for",
                                request->source_path);
    if (status == CLAB_OK)
        status = clab_target_parse(request->arch, &target, &result->error);
    if (status != CLAB_OK) {
        finish(batch, index, status);
        return;
    }
    if (task->arch[0] == '\0')
        snprintf(task->arch, sizeof task->arch, "%s", target->name);
    request->arch = task->arch; /* one spelling, so that the key is the same */
    const struct clab_part *part = &compiler->toolkit.parts[is_ptx ? CLAB_PART_NVJITLINK : CLAB_PART_NVRTC];
    if (!part->found) {
        clab_error_set(&result->error, CLAB_NO_TOOLKIT, "%s %s needs %s, which is not installed",
                       is_ptx ? "assembling" : "compiling", request->source_path, part->name);
        clab_error_remedy(&result->error, "%s", part->remedy);
        finish(batch, index, CLAB_NO_TOOLKIT);
        return;
    }
    request->per_chip = is_cuda && clab_share_possible(request);
    clab_cache_key(&compiler->toolkit, request, task->key);
    if (clab_cache_get(&compiler->cache, task->key, &result->image)) {
        finish(batch, index, CLAB_OK);
        return;
    }
    if (request->per_chip && task->key[0] != '\0')
        join_unit(batch, task, target->number);
    find_alias(batch, index);
}

/* --- workers
 * ------------------------------------------------------------------------------------------------ */

static clab_status start_worker(struct clab_compiler *compiler, struct worker *worker,
                                struct clab_error *error)
{
    /* This very program, also where its file has been replaced since it started. */
    const char *program = compiler->program != NULL ? compiler->program : "/proc/self/exe";
    const char *const argv[] = {program, "--compile-worker", NULL};
    memset(worker, 0, sizeof *worker);
    if (clab_process_start_fixed(&worker->process, argv, NULL, false) != 0)
        return clab_error_set(error, CLAB_WORKER, "cannot start the compile worker %s: %s", program,
                              strerror(errno));
    (void)clab_temporary_folder("pch", worker->scratch,
                                sizeof worker->scratch); /* without: slower, nothing else */
    return CLAB_OK;
}

/* The waiting task, of those whose unit nobody works on, that this worker should take: one of its
   architecture, else, for a fresh worker, one of an architecture that no other worker has, else any.
   batch->count when none waits. */
static size_t choose_task(const struct batch *batch, const struct worker *worker)
{
    size_t any = batch->count, fresh = batch->count;
    for (size_t i = 0; i < batch->count; i++) {
        const struct task *task = &batch->tasks[i];
        if (task->state != TASK_WAITING ||
            (task->unit != 0 && batch->units[task->unit - 1].state == UNIT_RUNNING))
            continue;
        if (strcmp(task->arch, worker->arch) == 0)
            return i;
        bool taken = false;
        for (size_t k = 0; k < MOST_WORKERS; k++)
            taken |= strcmp(batch->compiler->workers[k].arch, task->arch) == 0;
        if (!taken && fresh == batch->count)
            fresh = i;
        if (any == batch->count)
            any = i;
    }
    return fresh < batch->count ? fresh : any;
}

/* Copies the result to the tasks that asked for the same. */
static void finish_with_aliases(struct batch *batch, size_t index, clab_status status)
{
    finish(batch, index, status);
    for (size_t i = index + 1; i < batch->count; i++) {
        struct clab_compile_result *to = &batch->results[i];
        if (batch->tasks[i].state != TASK_ALIAS || batch->tasks[i].alias != index)
            continue;
        clab_status copied = status;
        if (status == CLAB_OK)
            copied = clab_image_copy(&to->image, &batch->results[index].image, &to->error);
        else
            clab_error_copy(&to->error, &batch->results[index].error);
        finish(batch, i, copied);
    }
}

/* --- what the targets of a chip share
 * --------------------------------------------------------------------------------------- */

/* Lets the tasks that wait for this one's image wait on their own, or for another one. */
static void release_aliases(struct batch *batch, size_t index)
{
    for (size_t i = index + 1; i < batch->count; i++)
        if (batch->tasks[i].state == TASK_ALIAS && batch->tasks[i].alias == index) {
            batch->tasks[i].state = TASK_WAITING;
            find_alias(batch, i);
        }
}

/* Nothing is shared: each task of the unit goes the plain way, and so do those of the same source for other
   chips, which would find the same. */
static void disown(struct batch *batch, const struct unit *which)
{
    for (size_t k = 0; k < batch->unit_count; k++) {
        struct unit *unit = &batch->units[k];
        if (unit != which && (unit->state != UNIT_NEW || strcmp(unit->source, which->source) != 0))
            continue;
        unit->state = UNIT_OWN;
        for (size_t i = 0; i < batch->count; i++)
            if (batch->tasks[i].unit == k + 1)
                release_aliases(batch, i);
    }
}

/* Gives an image of the unit the entry that the task asked for, and what the assembler said of that. The task
   goes the plain way where the name could mean several kernels, or none. */
static bool take_entry(struct batch *batch, struct task *task, struct clab_image *image)
{
    const struct unit *unit = &batch->units[task->unit - 1];
    const char *entry = task->request.entry;
    char *log = image->log;
    bool good;
    if (is_name(entry)) {
        good = clab_share_choose_entry(image, entry);
    } else {
        good = unit->lowered != NULL && clab_image_choose_entry(image, unit->lowered, NULL) == CLAB_OK;
        free(image->entry);
        image->entry = strdup(entry);
    }
    image->per_chip = false;
    image->log = NULL;
    if (good && log != NULL) {
        clab_ptxas_log_image_resources(log, image);
        image->log = clab_compile_log_strip(log);
    }
    free(log);
    if (!good) {
        clab_image_free(image);
        task->unit = 0;
        task->state = TASK_WAITING;
    }
    return good;
}

/* An answer that concerns a unit. Returns whether nothing is left to be done with it. */
static bool settle_unit(struct batch *batch, size_t index)
{
    struct task *task = &batch->tasks[index];
    struct clab_compile_result *result = &batch->results[index];
    struct unit *unit = &batch->units[task->unit - 1];
    struct clab_cache *cache = &batch->compiler->cache;
    const bool shared = result->status == CLAB_OK && (task->assembling || result->image.per_chip);
    if (!task->assembling && unit->state == UNIT_RUNNING) {
        unit->state = UNIT_SHARED;
        unit->ptx = shared && result->image.ptx != NULL ? strdup(result->image.ptx) : NULL;
        if (shared && !is_name(task->request.entry) && result->image.lowered != NULL)
            unit->lowered = strdup(result->image.lowered);
        if (unit->ptx == NULL)
            disown(batch, unit);
    }
    if (!shared && task->assembling) {
        clab_compile_result_free(result);
        task->unit = 0;
        task->state = TASK_WAITING;
        release_aliases(batch, index);
        return true;
    }
    if (!shared)
        return false;
    for (size_t i = index + 1; i < batch->count; i++) {
        struct clab_compile_result *to = &batch->results[i];
        if (batch->tasks[i].state != TASK_ALIAS || batch->tasks[i].alias != index)
            continue;
        const clab_status status = clab_image_copy(&to->image, &result->image, &to->error);
        if (status != CLAB_OK) {
            finish(batch, i, status);
        } else if (take_entry(batch, &batch->tasks[i], &to->image)) {
            clab_cache_put(cache, batch->tasks[i].key, &to->image);
            finish(batch, i, CLAB_OK);
        }
    }
    if (!take_entry(batch, task, &result->image))
        return true;
    clab_cache_put(cache, task->key, &result->image);
    finish(batch, index, CLAB_OK);
    return true;
}

static const char *pch_key(struct batch *batch, struct task *task)
{
    if (!task->pch_known && !has_ending(task->request.source_path, ".ptx") && !task->request.no_pch)
        clab_pch_key(&batch->compiler->toolkit, &task->request, task->pch);
    task->pch_known = true;
    return task->request.no_pch ? "" : task->pch;
}

/* Whether a precompiled header pays (pch.c has the figures): two more sources wait for it, or an earlier run
   asked for it. */
static bool want_pch_made(struct batch *batch, size_t index)
{
    struct task *task = &batch->tasks[index];
    const char *key = pch_key(batch, task);
    size_t others = 0;
    for (size_t i = 0; i < batch->count && key[0] != '\0' && others < 2; i++)
        others += i != index && batch->tasks[i].state == TASK_WAITING &&
                  strcmp(batch->tasks[i].arch, task->arch) == 0 &&
                  strcmp(pch_key(batch, &batch->tasks[i]), key) == 0;
    const bool seen =
        key[0] != '\0' && clab_pch_seen(batch->compiler->pch_dir, key, batch->compiler->started);
    return others == 2 || seen;
}

static void send_task(struct batch *batch, struct worker *worker, size_t index)
{
    struct clab_compiler *compiler = batch->compiler;
    struct task *task = &batch->tasks[index];
    struct clab_str message = {0};
    struct clab_wire_job *job = malloc(sizeof *job);
    task->state = TASK_RUNNING;
    worker->busy = true;
    worker->task = index;
    worker->deadline_ns = clab_now_ns() + (uint64_t)compiler->timeout_ms * 1000000u;
    snprintf(worker->arch, sizeof worker->arch, "%s", task->arch);
    struct unit *unit = task->unit != 0 ? &batch->units[task->unit - 1] : NULL;
    const bool alone = unit == NULL || unit->state == UNIT_OWN;
    const struct clab_pch_plan plan = {.make = alone && want_pch_made(batch, index),
                                       .key = pch_key(batch, task),
                                       .kept_dir = compiler->pch_dir,
                                       .scratch_dir = worker->scratch};
    worker->pch_used = plan.key[0] != '\0';
    /* Its last one there is of no more use to it, and takes 70 MB. */
    if (plan.key[0] != '\0' && strcmp(plan.key, worker->scratch_pch) != 0) {
        clab_pch_forget(worker->scratch, worker->scratch_pch);
        snprintf(worker->scratch_pch, sizeof worker->scratch_pch, "%s", plan.key);
    }
    char *text = NULL;
    task->assembling = unit != NULL && unit->state == UNIT_SHARED;
    if (job != NULL) {
        memset(job, 0, sizeof *job);
        job->request = task->request;
        job->toolkit = compiler->toolkit;
        job->pch = plan;
        job->request.per_chip = unit != NULL && unit->state != UNIT_OWN;
        if (unit != NULL && unit->state == UNIT_NEW)
            unit->state = UNIT_RUNNING;
        if (task->assembling) {
            job->assemble = true;
            job->request.source_text = text = clab_share_retarget(unit->ptx, clab_target_find(task->arch));
            job->request.entry = NULL;
            job->request.option_count = 0;
        }
        clab_wire_put_job(&message, job);
    }
    /* A worker that is already dead shows up as the end of its pipe, like one that dies later. */
    if (job == NULL || message.failed ||
        clab_write_all(worker->process.to_fd, message.text, message.bytes) != 0)
        worker->deadline_ns = clab_now_ns() + 1000000000u;
    clab_str_free(&message);
    free(text);
    free(job);
}

/* The worker died (or was killed, `timed_out`) while at a task. */
static void lose_worker(struct batch *batch, struct worker *worker, bool timed_out)
{
    struct task *task = &batch->tasks[worker->task];
    struct clab_error *error = &batch->results[worker->task].error;
    size_t index = worker->task;
    int status = 0;
    bool ended = !timed_out && clab_process_wait(&worker->process, 1000, &status) == 1;
    bool had_pch = worker->pch_used;
    struct unit *unit = task->unit != 0 ? &batch->units[task->unit - 1] : NULL;
    const bool tried_to_share = unit != NULL && (task->assembling || unit->state == UNIT_RUNNING);
    stop_worker(worker);
    if (unit != NULL && !task->assembling && unit->state == UNIT_RUNNING)
        disown(batch, unit);
    if (!timed_out && tried_to_share) {
        task->unit = 0;
        task->state = TASK_WAITING;
        release_aliases(batch, index);
        return;
    }
    if (!timed_out && had_pch && !task->retried) {
        clab_pch_forget(batch->compiler->pch_dir, task->pch);
        task->retried = true;
        task->request.no_pch = true;
        task->state = TASK_WAITING;
        return;
    }
    const char *path = task->request.source_path;
    if (timed_out)
        clab_error_set(error, CLAB_TIMEOUT, "compiling %s for %s took more than %u ms", path, task->arch,
                       batch->compiler->timeout_ms);
    else if (ended && WIFSIGNALED(status))
        clab_error_set(error, CLAB_WORKER,
                       "the compile worker died of signal %d (%s) while compiling %s for %s",
                       WTERMSIG(status), strsignal(WTERMSIG(status)), path, task->arch);
    else
        clab_error_set(error, CLAB_WORKER,
                       "the compile worker ended with status %d while compiling %s for %s",
                       ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1, path, task->arch);
    finish_with_aliases(batch, index, timed_out ? CLAB_TIMEOUT : CLAB_WORKER);
}

/* Reads what the worker has written. */
static void receive(struct batch *batch, struct worker *worker)
{
    char chunk[65536];
    ssize_t got = TEMP_FAILURE_RETRY(read(worker->process.from_fd, chunk, sizeof chunk));
    if (got <= 0) {
        lose_worker(batch, worker, false);
        return;
    }
    struct clab_str *received = &worker->received;
    clab_str_add_bytes(received, chunk, (size_t)got);
    struct clab_wire_head head;
    if (received->bytes < sizeof head)
        return;
    memcpy(&head, received->text, sizeof head);
    if (received->failed || !clab_wire_head_good(&head)) {
        clab_process_kill(&worker->process);
        lose_worker(batch, worker, false);
        return;
    }
    if (received->bytes - sizeof head < head.bytes)
        return;
    size_t index = worker->task;
    struct task *task = &batch->tasks[index];
    struct clab_compile_result *result = &batch->results[index];
    clab_error_clear(&result->error);
    if (!clab_wire_get_result(received->text + sizeof head, (size_t)head.bytes, result)) {
        clab_process_kill(&worker->process);
        lose_worker(batch, worker, false);
        return;
    }
    clab_str_free(received);
    worker->busy = false;
    batch->compiler->compiled++;
    if (task->unit != 0 && settle_unit(batch, index))
        return;
    if (result->status == CLAB_OK)
        clab_cache_put(&batch->compiler->cache, task->key, &result->image);
    finish_with_aliases(batch, index, result->status);
}

/* Gives waiting tasks to idle workers, starting new ones up to the limit. */
static void dispatch(struct batch *batch)
{
    struct clab_compiler *compiler = batch->compiler;
    for (unsigned int i = 0; i < compiler->worker_limit; i++) {
        struct worker *worker = &compiler->workers[i];
        if (worker->busy)
            continue;
        size_t index = choose_task(batch, worker);
        if (index == batch->count)
            return;
        if (worker->process.pid == 0) {
            clab_status status = start_worker(compiler, worker, &batch->results[index].error);
            if (status != CLAB_OK) {
                finish_with_aliases(batch, index, status);
                continue;
            }
        }
        send_task(batch, worker, index);
    }
}

static void wait_for_workers(struct batch *batch)
{
    struct pollfd polled[MOST_WORKERS];
    struct worker *who[MOST_WORKERS];
    nfds_t count = 0;
    uint64_t now = clab_now_ns(), first = UINT64_MAX;
    for (size_t i = 0; i < MOST_WORKERS; i++) {
        struct worker *worker = &batch->compiler->workers[i];
        if (!worker->busy)
            continue;
        polled[count] = (struct pollfd){.fd = worker->process.from_fd, .events = POLLIN};
        who[count++] = worker;
        first = worker->deadline_ns < first ? worker->deadline_ns : first;
    }
    uint64_t left_ms = first > now ? (first - now) / 1000000u + 1 : 0;
    if (count == 0 || (poll(polled, count, left_ms > 60000 ? 60000 : (int)left_ms) < 0 && errno != EINTR))
        return;
    now = clab_now_ns();
    for (nfds_t i = 0; i < count; i++) {
        if (polled[i].revents != 0)
            receive(batch, who[i]);
        else if (now >= who[i]->deadline_ns)
            lose_worker(batch, who[i], true);
    }
}

/* Ends everything that is not done. */
static void give_up(struct batch *batch)
{
    for (size_t i = 0; i < MOST_WORKERS; i++)
        if (batch->compiler->workers[i].busy)
            stop_worker(&batch->compiler->workers[i]);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->tasks[i].state != TASK_DONE)
            finish(batch, i,
                   clab_error_set(&batch->results[i].error, CLAB_INTERRUPTED,
                                  "%s was not compiled: interrupted", batch->tasks[i].request.source_path));
}

void clab_compile_all(struct clab_compiler *compiler, const struct clab_compile_request *requests,
                      size_t count, struct clab_compile_result *results,
                      void (*progress)(void *context, size_t done, size_t count), void *context)
{
    struct batch batch = {.compiler = compiler,
                          .tasks = calloc(count + 1, sizeof(struct task)),
                          .results = results,
                          .units = calloc(count + 1, sizeof(struct unit)),
                          .count = count,
                          .progress = progress,
                          .context = context};
    if (batch.units == NULL) {
        free(batch.tasks);
        batch.tasks = NULL;
    }
    memset(results, 0, count * sizeof *results);
    for (size_t i = 0; i < count; i++) {
        if (batch.tasks == NULL) {
            results[i].status =
                clab_error_set(&results[i].error, CLAB_NO_MEMORY, "no memory for %zu requests", count);
            continue;
        }
        batch.tasks[i].request = requests[i];
        if (compiler->interrupted == NULL || !*compiler->interrupted)
            prepare(&batch, i);
    }
    while (batch.tasks != NULL && batch.done < count) {
        if (compiler->interrupted != NULL && *compiler->interrupted)
            give_up(&batch);
        else
            dispatch(&batch);
        if (batch.done < count)
            wait_for_workers(&batch);
    }
    for (size_t i = 0; i < count && batch.tasks != NULL; i++)
        free(batch.tasks[i].text);
    for (size_t i = 0; i < batch.unit_count; i++) {
        free(batch.units[i].ptx);
        free(batch.units[i].lowered);
    }
    free(batch.units);
    free(batch.tasks);
}

clab_status clab_compile(struct clab_compiler *compiler, const struct clab_compile_request *request,
                         struct clab_image *out, struct clab_error *error)
{
    struct clab_compile_result result;
    clab_compile_all(compiler, request, 1, &result, NULL, NULL);
    *out = result.image; /* moved */
    if (result.status != CLAB_OK && error != NULL)
        clab_error_copy(error, &result.error);
    clab_error_clear(&result.error);
    return result.status;
}
