/* The device worker's loop: requests in, answers out. All state of the device lives here; a worker that is in
   doubt (sticky error) says so and is replaced by its parent. */
#include "lab/worker.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "compile/jit.h"
#include "driver/call.h"
#include "lab/buffers.h"
#include "lab/companion.h"
#include "lab/device.h"
#include "lab/hazards.h"
#include "lab/launch.h"
#include "lab/measure.h"
#include "lab/timeline.h"
#include "lab/watch.h"
#include "lab/wire.h"

/* Warp instructions of a launch that is given no budget: some minutes to an hour of emulation. */
#define DEFAULT_BUDGET "200000000000"
#define MAX_IMAGES     256
#define MAX_SETS       64

struct image {
    bool used;
    int64_t key;
    struct clab_loaded loaded;
};

struct work;

struct worker {
    int out_fd;
    bool open;
    struct clab_device device;
    struct image images[MAX_IMAGES];
    struct clab_buffer_set sets[MAX_SETS];
    size_t n_sets;
    struct clab_watch *watch;  /* NVML beside a real GPU; NULL otherwise */
    const struct work *beside; /* the timed row whose companion may still run; NULL none */
    bool checking; /* the next launch of a row is checked for hazards, under the schedule of `seed` */
    uint64_t seed;
};

static struct clab_loaded *image_get(struct worker *worker, int64_t key)
{
    for (size_t i = 0; i < MAX_IMAGES; i++)
        if (worker->images[i].used && worker->images[i].key == key)
            return &worker->images[i].loaded;
    return NULL;
}

/* The image of the kernel that a request names by "key". */
static clab_status image_need(struct worker *worker, const json_t *json, const char *what,
                              struct clab_loaded **out_loaded, struct clab_error *error)
{
    *out_loaded = image_get(worker, clab_json_int(json, "key", -1));
    return *out_loaded != NULL
               ? CLAB_OK
               : clab_error_set(error, CLAB_INTERNAL, "%s of an image that was not loaded", what);
}

static void sets_free(struct worker *worker)
{
    while (worker->n_sets > 0)
        clab_buffers_free(&worker->device, &worker->sets[--worker->n_sets]);
}

/* The allocated set that equals `json`, made on first use. With `only`, every other set is freed first when
   the new one would be a second, so that one row never competes with another's buffers. */
static clab_status set_get(struct worker *worker, json_t *json, bool only, struct clab_buffer_set **out_set,
                           struct clab_error *error)
{
    for (size_t i = 0; i < worker->n_sets; i++)
        if (json_equal(worker->sets[i].json, json)) {
            *out_set = &worker->sets[i];
            return CLAB_OK;
        }
    if (only)
        sets_free(worker);
    if (worker->n_sets == MAX_SETS)
        return clab_error_set(error, CLAB_NO_MEMORY, "more than %d different buffer sets in one run",
                              MAX_SETS);
    clab_status status = clab_buffers_new(&worker->device, json, &worker->sets[worker->n_sets], error);
    if (status == CLAB_OK)
        *out_set = &worker->sets[worker->n_sets++];
    return status;
}

static clab_status do_open(struct worker *worker, const json_t *request, json_t *answer,
                           struct clab_error *error)
{
    const char *device = clab_json_text(request, "device", "");
    /* Loading NVML takes as long as cuInit does: beside it, it costs nothing. */
    if (strncmp(device, "cuda:", 5) == 0)
        worker->watch = clab_watch_start();
    clab_status status = clab_device_open(&worker->device, device, error);
    if (status != CLAB_OK)
        return status;
    const struct clab_channel *channel = worker->device.driver->channel;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(request, "options"), name, value)
    {
        if (channel == NULL)
            return clab_error_set(error, CLAB_USAGE, "--emu-%s needs an emulated device", name);
        status = channel->set_option(name, json_string_value(value), error);
        if (status != CLAB_OK)
            return status;
    }
    /* The user's own program chooses for itself; what we start ends. */
    if (channel != NULL && json_object_get(json_object_get(request, "options"), "budget") == NULL &&
        getenv("CLUSTERLAB_EMU_BUDGET") == NULL)
        status = channel->set_option("budget", DEFAULT_BUDGET, error);
    if (status != CLAB_OK)
        return status;
    worker->open = true;
    json_object_set_new(answer, "facts", clab_device_facts(&worker->device));
    return CLAB_OK;
}

static clab_status do_option(struct worker *worker, const json_t *request, struct clab_error *error)
{
    const struct clab_channel *channel = worker->device.driver->channel;
    const char *name = clab_json_text(request, "name", "");
    if (channel == NULL)
        return clab_error_set(error, CLAB_USAGE, "--emu-%s needs an emulated device", name);
    return channel->set_option(name, clab_json_text(request, "value", NULL), error);
}

static json_t *known_or_null(int value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static clab_status do_load(struct worker *worker, const json_t *request, json_t *answer,
                           struct clab_error *error)
{
    int64_t key = clab_json_int(request, "key", -1);
    struct image *slot = NULL;
    for (size_t i = 0; i < MAX_IMAGES && slot == NULL; i++)
        if (!worker->images[i].used)
            slot = &worker->images[i];
    if (slot == NULL)
        return clab_error_set(error, CLAB_INTERNAL, "more than %d images in one worker", MAX_IMAGES);
    clab_status status =
        clab_load(&worker->device, clab_json_text(request, "path", ""), clab_json_text(request, "source", ""),
                  clab_json_text(request, "entry", ""), &slot->loaded, error);
    if (status != CLAB_OK)
        return status;
    slot->used = true;
    slot->key = key;
    /* Registers of an emulated kernel are an estimate; the record keeps only what the driver really compiled.
     */
    json_object_set_new(
        answer, "resources",
        json_pack("{s:o,s:o,s:o}", "registers",
                  worker->device.emulated ? json_null() : known_or_null(slot->loaded.registers),
                  "static_smem_bytes", known_or_null(slot->loaded.static_shared_bytes), "local_bytes",
                  known_or_null(slot->loaded.local_bytes)));
    return CLAB_OK;
}

static clab_status do_forget(struct worker *worker, const json_t *request)
{
    int64_t key = clab_json_int(request, "key", -1);
    for (size_t i = 0; i < MAX_IMAGES; i++)
        if (worker->images[i].used && worker->images[i].key == key) {
            clab_unload(&worker->device, &worker->images[i].loaded);
            worker->images[i].used = false;
        }
    return CLAB_OK;
}

/* Tells the parent what comes next: its watchdog runs in the "launch" stage only, filling may take long. */
static clab_status stage(struct worker *worker, const char *name, struct clab_error *error)
{
    json_t *line = json_pack("{s:s}", "stage", name);
    clab_status status = clab_wire_send(worker->out_fd, line, error);
    json_decref(line);
    return status;
}

/* What a row launches: its kernel, and the companion where it has one. */
struct work {
    struct clab_launch launch;
    struct clab_companion companion;
    const json_t *companion_json; /* borrowed from the request */
};

/* An error of a kernel that is not the row's own says so, and names that kernel's file. */
static clab_status CLAB_PRINTF(3, 4)
    other_failed(struct clab_error *error, const json_t *kernel, const char *format, ...)
{
    char what[128];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    clab_error_name_source(error, clab_json_text(kernel, "source", ""));
    return clab_error_context(error, "%s", what);
}

static clab_status work_prepare(struct worker *worker, const json_t *request, struct clab_buffer_set *set,
                                struct work *work, struct clab_error *error)
{
    const json_t *row = json_object_get(request, "row");
    const json_t *companion = json_object_get(json_object_get(row, "launch"), "companion");
    struct clab_loaded *loaded;
    clab_status status = image_need(worker, request, "launch", &loaded, error);
    if (status == CLAB_OK)
        status = clab_launch_prepare(&worker->device, loaded, row, clab_buffers_address, set, &work->launch,
                                     error);
    if (status != CLAB_OK || !json_is_object(companion))
        return status;
    work->companion_json = companion;
    status = image_need(worker, companion, "companion", &loaded, error);
    if (status == CLAB_OK)
        status = clab_companion_prepare(&worker->device, loaded, companion, clab_buffers_address, set,
                                        &work->companion, error);
    return status == CLAB_OK ? CLAB_OK : other_failed(error, companion, "the companion kernel");
}

static clab_status companion_start(const struct clab_device *device, struct work *work,
                                   struct clab_error *error)
{
    clab_status status = clab_companion_start(device, &work->companion, error);
    return status == CLAB_OK ? CLAB_OK : other_failed(error, work->companion_json, "the companion kernel");
}

static clab_status companion_wait(const struct clab_device *device, const struct work *work,
                                  struct clab_error *error)
{
    clab_status status = clab_companion_wait(device, &work->companion, error);
    return status == CLAB_OK ? CLAB_OK : other_failed(error, work->companion_json, "the companion kernel");
}

/* A buffer set in which one buffer's name stands for its shadow. */
struct shadowed {
    struct clab_buffer_set *set;
    const struct clab_buffer *buffer;
    CUdeviceptr shadow;
};

static CUdeviceptr shadowed_address(const char *name, void *context)
{
    const struct shadowed *shadowed = context;
    return strcmp(name, shadowed->buffer->name) == 0 ? shadowed->shadow
                                                     : clab_buffers_address(name, shadowed->set);
}

/* Runs a buffer's reference kernel on fresh contents, its result going to the buffer's shadow. What it writes
   elsewhere is overwritten by the fill that comes before the row's own launch. */
static clab_status run_reference(struct worker *worker, struct clab_buffer_set *set,
                                 struct clab_buffer *buffer, unsigned pass, struct clab_error *error)
{
    const struct clab_device *device = &worker->device;
    const json_t *reference = json_object_get(buffer->expect, "reference");
    struct clab_loaded *loaded;
    struct clab_launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a launch");
    clab_status status = image_need(worker, reference, "reference", &loaded, error);
    if (status == CLAB_OK)
        status = stage(worker, "fill", error);
    if (status == CLAB_OK)
        status = clab_buffers_fill(device, set, pass, error);
    if (status == CLAB_OK)
        status = clab_buffer_shadow(device, buffer, pass, error);
    struct shadowed shadowed = {set, buffer, buffer->shadows[pass % CLAB_MAX_FILLS]};
    if (status == CLAB_OK)
        status = clab_launch_prepare(device, loaded, reference, shadowed_address, &shadowed, launch, error);
    if (status == CLAB_OK)
        status = stage(worker, "launch", error);
    if (status == CLAB_OK)
        status = clab_launch_submit(device, launch, error);
    if (status == CLAB_OK)
        status = clab_device_wait(device, error);
    if (status != CLAB_OK) {
        clab_buffer_drop_shadow(device, buffer, pass);
        status = other_failed(error, reference, "the reference kernel of '%s'", buffer->name);
    }
    free(launch);
    return status;
}

/* One verified launch: references, fill, launch, counters, check. *counters is replaced. */
static clab_status run_pass(struct worker *worker, struct work *work, struct clab_buffer_set *set,
                            unsigned pass, json_t **counters, struct clab_error *error)
{
    const struct clab_device *device = &worker->device;
    const struct clab_channel *channel = device->driver->channel;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < set->count && status == CLAB_OK; i++)
        if (clab_buffer_needs_reference(&set->buffers[i], pass))
            status = run_reference(worker, set, &set->buffers[i], pass, error);
    if (status == CLAB_OK)
        status = stage(worker, "fill", error);
    if (status == CLAB_OK)
        status = clab_buffers_fill(device, set, pass, error);
    if (status == CLAB_OK)
        status = stage(worker, "launch", error);
    if (status == CLAB_OK && worker->checking) /* references and fills are not what is checked */
        status = clab_hazards_start(channel, worker->seed, error);
    if (status == CLAB_OK)
        status = companion_start(device, work, error);
    if (status == CLAB_OK)
        status = clab_launch_submit(device, &work->launch, error);
    if (status == CLAB_OK)
        status = clab_device_wait(device, error);
    if (status == CLAB_OK)
        status = companion_wait(device, work, error);
    if (status == CLAB_OK && channel != NULL) {
        struct clab_counters last;
        json_decref(*counters);
        *counters = channel->last_counters(&last) ? clab_counters_to_json(&last) : NULL;
    }
    if (status == CLAB_OK)
        status = stage(worker, "check", error);
    return status == CLAB_OK ? clab_buffers_check(device, set, pass, error) : status;
}

/* The request with its row's arguments as they are for verification, where some differ ("verify"). Otherwise
   the request itself. A new reference either way; NULL when memory is out. */
static json_t *verifying(const json_t *request, bool *out_differs)
{
    json_t *copy = json_deep_copy(request);
    json_t *args = json_object_get(json_object_get(copy, "row"), "args");
    *out_differs = false;
    for (size_t i = 0; i < json_array_size(args); i++) {
        json_t *argument = json_array_get(args, i), *value = json_object_get(argument, "verify");
        if (value == NULL)
            continue;
        json_object_set(argument, "value", value);
        *out_differs = true;
    }
    return copy;
}

/* The launch as it will be timed, once, under the first fill, where its arguments are not the verified ones.
 */
static clab_status run_as_timed(struct worker *worker, const json_t *request, struct clab_buffer_set *set,
                                struct clab_error *error)
{
    json_t *ignored = NULL;
    struct work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a launch");
    clab_status status = work_prepare(worker, request, set, work, error);
    set->as_timed = true;
    if (status == CLAB_OK)
        status = run_pass(worker, work, set, 0, &ignored, error);
    set->as_timed = false;
    if (status == CLAB_WRONG)
        status = clab_error_context(error, "with the arguments that are timed");
    json_decref(ignored);
    clab_companion_fini(&worker->device, &work->companion);
    free(work);
    return status;
}

/* Launch and check under every fill. A wrong result is not an error of the request: it is the verdict.
   `timed`: the request as it will be timed, or NULL. */
static clab_status run_fills(struct worker *worker, struct work *work, struct clab_buffer_set *set,
                             const json_t *timed, json_t *answer, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    json_t *counters = NULL;
    for (unsigned pass = 0; pass < set->n_fills && status == CLAB_OK; pass++)
        status = run_pass(worker, work, set, pass, &counters, error);
    if (status == CLAB_OK && timed != NULL)
        status = run_as_timed(worker, timed, set, error);
    json_object_set_new(answer, "counters", counters != NULL ? counters : json_null());
    if (status != CLAB_OK && status != CLAB_WRONG)
        return status;
    json_object_set_new(answer, "verify",
                        json_pack("{s:s,s:s,s:i}", "status", status == CLAB_OK ? "pass" : "fail", "detail",
                                  status == CLAB_OK ? "" : error->message, "fills", (int)set->n_fills));
    return CLAB_OK;
}

/* A row of a request, ready to be launched. */
struct ready {
    struct work work;
    struct clab_buffer_set *set; /* borrowed from the worker */
    json_t *verified;            /* the request that the launch is of; owned */
    bool differs;                /* from the request as it is timed */
};

static void ready_free(struct worker *worker, struct ready *ready)
{
    if (ready == NULL)
        return;
    clab_companion_fini(&worker->device, &ready->work.companion);
    json_decref(ready->verified);
    free(ready);
}

/* Buffers and launch of a request's row, with the arguments for verification or (as_timed) those that are
   timed. On failure *out is NULL. */
static clab_status ready_new(struct worker *worker, json_t *request, bool as_timed, struct ready **out,
                             struct clab_error *error)
{
    struct ready *ready = calloc(1, sizeof *ready);
    *out = NULL;
    if (ready != NULL)
        ready->verified = as_timed ? json_incref(request) : verifying(request, &ready->differs);
    if (ready == NULL || ready->verified == NULL) {
        free(ready);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a launch");
    }
    clab_status status = set_get(worker, json_object_get(request, "buffers"), true, &ready->set, error);
    if (status == CLAB_OK)
        status = work_prepare(worker, ready->verified, ready->set, &ready->work, error);
    if (status == CLAB_OK)
        *out = ready;
    else
        ready_free(worker, ready);
    return status;
}

static clab_status do_verify(struct worker *worker, json_t *request, json_t *answer, struct clab_error *error)
{
    struct ready *ready;
    clab_status status = ready_new(worker, request, false, &ready, error);
    if (status == CLAB_OK) {
        const bool both = ready->differs && worker->device.timed;
        json_object_set_new(answer, "launch", clab_launch_to_json(&ready->work.launch));
        status = run_fills(worker, &ready->work, ready->set, both ? request : NULL, answer, error);
    }
    if (status == CLAB_OK) {
        json_t *dumps = NULL;
        status = clab_buffers_dump(&worker->device, ready->set, &dumps, error);
        json_object_set_new(answer, "dumps", dumps != NULL ? dumps : json_null());
    }
    const json_t *timeline = json_object_get(request, "timeline");
    if (status == CLAB_OK && json_is_object(timeline)) {
        json_t *summary = NULL;
        status = clab_timeline_read(&worker->device, ready->set, timeline, &summary, error);
        json_object_set_new(answer, "timeline", summary != NULL ? summary : json_null());
    }
    ready_free(worker, ready);
    return status;
}

/* One launch as it is timed, on fresh contents, unchecked: for whoever watches from outside. */
static clab_status do_launch(struct worker *worker, json_t *request, struct clab_error *error)
{
    struct ready *ready;
    clab_status status = ready_new(worker, request, true, &ready, error);
    if (status == CLAB_OK)
        status = stage(worker, "fill", error);
    if (status == CLAB_OK)
        status = clab_buffers_fill(&worker->device, ready->set, 0, error);
    if (status == CLAB_OK)
        status = stage(worker, "launch", error);
    if (status == CLAB_OK)
        status = clab_launch_submit(&worker->device, &ready->work.launch, error);
    if (status == CLAB_OK)
        status = clab_device_wait(&worker->device, error);
    ready_free(worker, ready);
    return status;
}

/* One launch with one of the fills under the checkers, and what they found; also when a fault ended it. */
static clab_status do_check(struct worker *worker, json_t *request, json_t *answer, struct clab_error *error)
{
    struct ready *ready;
    json_t *counters = NULL, *hazards = NULL;
    clab_status status = ready_new(worker, request, false, &ready, error);
    if (status == CLAB_OK) {
        struct clab_error found = {0};
        const unsigned fills = ready->set->n_fills != 0 ? ready->set->n_fills : 1;
        json_object_set_new(answer, "launch", clab_launch_to_json(&ready->work.launch));
        worker->checking = true;
        worker->seed = (uint64_t)clab_json_int(request, "seed", 1);
        status =
            run_pass(worker, &ready->work, ready->set, (unsigned)(worker->seed % fills), &counters, error);
        worker->checking = false;
        if (status != CLAB_UNSUPPORTED &&
            clab_hazards_stop(worker->device.driver->channel, &hazards, &found) != CLAB_OK) {
            status = found.status;
            clab_error_copy(error, &found);
        }
        json_object_set_new(answer, "hazards", hazards != NULL ? hazards : json_null());
        clab_error_clear(&found);
    }
    json_decref(counters);
    ready_free(worker, ready);
    return status;
}

/* The grid that a row's `fit` comes to. */
static clab_status do_grid(struct worker *worker, const json_t *request, json_t *answer,
                           struct clab_error *error)
{
    struct clab_loaded *loaded;
    unsigned grid[3];
    clab_status status = image_need(worker, request, "grid", &loaded, error);
    if (status == CLAB_OK)
        status = clab_launch_grid(&worker->device, loaded, json_object_get(request, "row"), grid, error);
    if (status == CLAB_OK)
        json_object_set_new(
            answer, "grid",
            json_pack("[I,I,I]", (json_int_t)grid[0], (json_int_t)grid[1], (json_int_t)grid[2]));
    return status;
}

/* One row under measurement: what its callbacks need. */
struct timed_row {
    struct worker *worker;
    struct clab_buffer_set *set;
    struct work work;
    double *earlier; /* owned */
    bool hot;        /* resets that are outside a cold launch's time are inside a batch's */
};

/* Also waits for the companion of the sample before, whoever's it was. */
static clab_status prepare_timed(void *context, struct clab_error *error)
{
    const struct timed_row *row = context;
    struct worker *worker = row->worker;
    clab_status status = CLAB_OK;
    if (worker->beside != NULL)
        status = companion_wait(&worker->device, worker->beside, error);
    worker->beside = NULL;
    if (status != CLAB_OK || row->hot)
        return status;
    return clab_buffers_reset(&worker->device, row->set, 0, false, error);
}

static clab_status accompany_timed(void *context, struct clab_error *error)
{
    struct timed_row *row = context;
    row->worker->beside = &row->work;
    return companion_start(&row->worker->device, &row->work, error);
}

static clab_status submit_timed(void *context, struct clab_error *error)
{
    struct timed_row *row = context;
    const struct clab_device *device = &row->worker->device;
    clab_status status = row->hot ? clab_buffers_reset(device, row->set, 0, false, error) : CLAB_OK;
    if (status == CLAB_OK)
        status = clab_buffers_reset(device, row->set, 0, true, error);
    return status == CLAB_OK ? clab_launch_submit(device, &row->work.launch, error) : status;
}

static bool send_launch(void *context, unsigned id)
{
    struct worker *worker = context;
    json_t *line = json_pack("{s:s,s:i}", "stage", "launch", "row", (int)id);
    clab_status status = clab_wire_send(worker->out_fd, line, NULL);
    json_decref(line);
    return status == CLAB_OK;
}

static bool send_sample(void *context, const struct clab_sample *sample)
{
    struct worker *worker = context;
    json_t *line = json_pack("{s:{s:i,s:i,s:f,s:i,s:o,s:s?,s:b}}", "sample", "id", (int)sample->id, "round",
                             (int)sample->round, "ns", sample->ns, "launches", (int)sample->launches,
                             "sm_mhz", isnan(sample->sm_mhz) ? json_null() : json_real(sample->sm_mhz),
                             "discarded", sample->discarded, "host_bound", sample->host_bound);
    clab_status status = clab_wire_send(worker->out_fd, line, NULL);
    json_decref(line);
    return status == CLAB_OK;
}

/* Buffers filled, launch prepared, earlier samples taken over. */
static clab_status stage_row(struct worker *worker, const json_t *request, bool hot, struct timed_row *row,
                             struct clab_measured_row *measured, struct clab_error *error)
{
    const json_t *earlier = json_object_get(request, "earlier");
    row->worker = worker;
    row->hot = hot;
    clab_status status = set_get(worker, json_object_get(request, "buffers"), false, &row->set, error);
    if (status == CLAB_OK)
        status = stage(worker, "fill", error);
    if (status == CLAB_OK)
        status = clab_buffers_fill(&worker->device, row->set, 0, error);
    if (status == CLAB_OK)
        status = work_prepare(worker, request, row->set, &row->work, error);
    if (status != CLAB_OK)
        return status;
    row->earlier = calloc(json_array_size(earlier) + 1, sizeof *row->earlier);
    if (row->earlier == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for earlier samples");
    for (size_t i = 0; i < json_array_size(earlier); i++)
        row->earlier[i] = json_number_value(json_array_get(earlier, i));
    *measured =
        (struct clab_measured_row){.id = (unsigned)clab_json_int(request, "id", 0),
                                   .prepare = prepare_timed,
                                   .accompany = row->work.companion.stream != NULL ? accompany_timed : NULL,
                                   .submit = submit_timed,
                                   .context = row,
                                   .earlier = row->earlier,
                                   .n_earlier = json_array_size(earlier)};
    return CLAB_OK;
}

static void outcome_to_json(const struct clab_outcome *outcome, int others, json_t *answer)
{
    json_object_set_new(answer, "end", json_string(clab_measure_end_text(outcome->end)));
    json_object_set_new(answer, "spent_s", json_real(outcome->spent_s));
    json_object_set_new(answer, "reference_mhz",
                        isnan(outcome->reference_mhz) ? json_null() : json_real(outcome->reference_mhz));
    json_object_set_new(answer, "throttle",
                        outcome->throttle_known ? json_string(outcome->throttle) : json_null());
    json_object_set_new(answer, "other_processes", others >= 0 ? json_integer(others) : json_null());
}

static clab_status do_time(struct worker *worker, const json_t *request, json_t *answer,
                           struct clab_error *error)
{
    const json_t *rows = json_object_get(request, "rows");
    const size_t count = json_array_size(rows);
    const bool hot = clab_json_bool(request, "hot", false);
    struct clab_measured_row *measured = calloc(count + 1, sizeof *measured);
    struct timed_row *timed = calloc(count + 1, sizeof *timed);
    clab_status status = CLAB_OK;
    struct clab_outcome outcome = {0};
    if (measured == NULL || timed == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for %zu rows", count);
    for (size_t i = 0; i < count && status == CLAB_OK; i++) {
        outcome.failed = (unsigned)clab_json_int(json_array_get(rows, i), "id", 0);
        status = stage_row(worker, json_array_get(rows, i), hot, &timed[i], &measured[i], error);
    }
    if (status == CLAB_OK)
        status = CLAB_CALL(worker->device.driver, error, cuCtxSynchronize, (), NULL);
    if (status == CLAB_OK)
        status = stage(worker, "launch", error);
    if (status == CLAB_OK) {
        const struct clab_measure_options options = {
            .samples = (unsigned)clab_json_int(request, "samples", 0),
            .first_round = (unsigned)clab_json_int(request, "first_round", 0),
            .seed = (uint64_t)clab_json_int(request, "seed", 1),
            .spent_s = json_number_value(json_object_get(request, "spent_s")),
            .watch = worker->watch,
        };
        const struct clab_measure_sink sink = {
            .on_launch = send_launch, .on_sample = send_sample, .context = worker};
        if (worker->device.has_uuid)
            (void)clab_watch_device(worker->watch, worker->device.uuid);
        clab_watch_clear(worker->watch);
        const int others = clab_watch_others(worker->watch);
        status = hot ? clab_measure_hot(&worker->device, measured, count, &options, &sink, &outcome, error)
                     : clab_measure_cold(&worker->device, measured, count, &options, &sink, &outcome, error);
        outcome_to_json(&outcome, others, answer);
    }
    if (status != CLAB_OK)
        json_object_set_new(answer, "failed", json_integer(outcome.failed));
    json_object_set_new(answer, "done", json_true());
    const bool lost = status != CLAB_OK && clab_call_is_sticky((CUresult)error->native_code);
    if (worker->beside != NULL && !lost)
        (void)companion_wait(&worker->device, worker->beside, NULL);
    worker->beside = NULL;
    for (size_t i = 0; i < count && timed != NULL; i++) {
        free(timed[i].earlier);
        if (!lost && timed[i].worker != NULL)
            clab_companion_fini(&worker->device, &timed[i].work.companion);
    }
    free(measured);
    free(timed);
    return status;
}

static clab_status do_clusters(struct worker *worker, const json_t *request, json_t *answer,
                               struct clab_error *error)
{
    const struct clab_driver *driver = worker->device.driver;
    struct clab_loaded *loaded = image_get(worker, clab_json_int(request, "key", -1));
    if (loaded == NULL)
        return clab_error_set(error, CLAB_INTERNAL, "cluster query on an image that was not loaded");
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimY = 1, .blockDimZ = 1};
    config.blockDimX = (unsigned)clab_json_int(request, "block", 1);
    config.sharedMemBytes = (unsigned)clab_json_int(request, "smem_bytes", 0);
    clab_status status = CLAB_OK;
    if (config.sharedMemBytes > 48 * 1024)
        status = CLAB_CALL(
            driver, error, cuFuncSetAttribute,
            (loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)config.sharedMemBytes),
            NULL);
    /* Opt in before asking: the answers stay portable otherwise (cuda.h, cuOccupancyMaxPotentialClusterSize).
     */
    int opt_in = clab_json_bool(request, "opt_in", true);
    if (status == CLAB_OK)
        status =
            CLAB_CALL(driver, error, cuFuncSetAttribute,
                      (loaded->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, opt_in), NULL);
    int potential = 0;
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuOccupancyMaxPotentialClusterSize,
                           (&potential, loaded->function, &config), NULL);
    if (status != CLAB_OK)
        return status;
    json_object_set_new(answer, "potential", json_integer(potential));
    int ctas = 0;
    if (driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, loaded->function, (int)config.blockDimX,
                                                            config.sharedMemBytes) == CUDA_SUCCESS)
        json_object_set_new(answer, "ctas_per_sm", json_integer(ctas));
    json_t *active = json_array();
    config.attrs = &attribute;
    config.numAttrs = 1;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    for (int64_t size = 1; size <= clab_json_int(request, "sizes", 16); size++) {
        int clusters = 0;
        attribute.value.clusterDim.x = (unsigned)size;
        config.gridDimX = (unsigned)size;
        CUresult result = driver->cuOccupancyMaxActiveClusters(&clusters, loaded->function, &config);
        json_array_append_new(active, result == CUDA_SUCCESS ? json_integer(clusters)
                                                             : json_string(clab_call_name(driver, result)));
    }
    json_object_set_new(answer, "active", active);
    return CLAB_OK;
}

/* The driver's own compiler, for its log and its time; nothing stays loaded. */
static clab_status do_jit(struct worker *worker, const json_t *request, json_t *answer,
                          struct clab_error *error)
{
    struct clab_image ptx = {0}, cubin = {0};
    const json_t *text = json_object_get(request, "ptx");
    const char *source = clab_json_text(request, "source", "");
    if (!worker->device.accepts_cubin)
        return clab_error_set(error, CLAB_UNSUPPORTED, "the driver of %s makes no cubins", worker->device.id);
    clab_status status =
        clab_image_from_bytes(source, json_string_value(text), json_string_length(text), &ptx, error);
    if (status == CLAB_OK && ptx.source_path == NULL)
        ptx.source_path = strdup(source);
    if (status == CLAB_OK)
        status = clab_jit_ptx(worker->device.driver, &ptx, &cubin, error);
    if (status == CLAB_OK)
        json_object_set_new(answer, "jit",
                            json_pack("{s:s,s:f,s:s?,s:I}", "compiler", cubin.compiler, "compile_ms",
                                      (double)cubin.compile_ns * 1e-6, "log", cubin.log, "bytes",
                                      (json_int_t)cubin.bytes));
    clab_image_free(&ptx);
    clab_image_free(&cubin);
    return status;
}

static clab_status dispatch(struct worker *worker, json_t *request, json_t *answer, struct clab_error *error)
{
    const char *op = clab_json_text(request, "op", "");
    if (strcmp(op, "open") == 0)
        return do_open(worker, request, answer, error);
    if (!worker->open)
        return clab_error_set(error, CLAB_INTERNAL, "worker request '%s' before open", op);
    if (strcmp(op, "option") == 0)
        return do_option(worker, request, error);
    if (strcmp(op, "load") == 0)
        return do_load(worker, request, answer, error);
    if (strcmp(op, "forget") == 0)
        return do_forget(worker, request);
    if (strcmp(op, "verify") == 0)
        return do_verify(worker, request, answer, error);
    if (strcmp(op, "launch") == 0)
        return do_launch(worker, request, error);
    if (strcmp(op, "check") == 0)
        return do_check(worker, request, answer, error);
    if (strcmp(op, "grid") == 0)
        return do_grid(worker, request, answer, error);
    if (strcmp(op, "time") == 0)
        return do_time(worker, request, answer, error);
    if (strcmp(op, "clusters") == 0)
        return do_clusters(worker, request, answer, error);
    if (strcmp(op, "jit") == 0)
        return do_jit(worker, request, answer, error);
    return clab_error_set(error, CLAB_INTERNAL, "unknown worker request '%s'", op);
}

int clab_device_worker(int in_fd, int out_fd)
{
    struct worker *worker = calloc(1, sizeof *worker);
    struct clab_line_reader reader = {.fd = in_fd};
    char *line;
    size_t bytes;
    int result = 0;
    if (worker == NULL)
        return clab_status_exit(CLAB_NO_MEMORY);
    worker->out_fd = out_fd;
    while (result == 0 && clab_line_read(&reader, -1, &line, &bytes) == 1) {
        struct clab_error error = {0};
        json_t *request = json_loadb(line, bytes, 0, NULL), *answer = json_object();
        clab_status status = request != NULL
                                 ? dispatch(worker, request, answer, &error)
                                 : clab_error_set(&error, CLAB_INTERNAL, "worker request is not JSON");
        if (status != CLAB_OK) {
            error.status = status;
            json_object_set_new(answer, "error", clab_error_to_json(&error));
            if (error.native_call[0] != '\0' && clab_call_is_sticky((CUresult)error.native_code))
                json_object_set_new(answer, "sticky", json_true());
        }
        if (clab_wire_send(out_fd, answer, NULL) != CLAB_OK)
            result = clab_status_exit(CLAB_OUTPUT);
        json_decref(answer);
        json_decref(request);
        clab_error_clear(&error);
    }
    clab_line_reader_free(&reader);
    clab_watch_stop(worker->watch);
    clab_device_fini(&worker->device);
    /* The process ends here; the driver frees what the device still holds. Only our own memory is returned.
     */
    if (worker->open)
        for (size_t i = 0; i < worker->n_sets; i++) {
            free(worker->sets[i].buffers);
            json_decref(worker->sets[i].json);
        }
    free(worker);
    return result;
}
