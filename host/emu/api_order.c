/* What each task of a stream knows to be done before it starts, for the hazard checker (check/check.h):
   earlier tasks of its stream, those before the events that the stream waited for, what the host has waited
   for when the task was submitted, and the implicit order of the legacy default stream. One vector clock a
   stream, by task numbers, and one for the host: all its threads count as one. Kept only while launches are
   checked; tasks from before have left no shadow that an order could matter to.

   Lenient: whatever
   follows a wait for a value in memory counts as ordered after everything; so does all when memory is out. */
#include "check/check.h"
#include "emu/api.h"

#include <stdlib.h>
#include <string.h>

static struct api_order host;

static bool off(void)
{
    return check_hooks() == NULL;
}

static void add(struct api_order *to, uint64_t stream, uint64_t number)
{
    for (size_t i = 0; i < to->n; i++)
        if (to->known[i].stream == stream) {
            if (to->known[i].number < number)
                to->known[i].number = number;
            return;
        }
    if (to->n == to->capacity) {
        size_t capacity = to->capacity == 0 ? 8 : 2 * to->capacity;
        struct check_known *grown = realloc(to->known, capacity * sizeof *grown);
        if (grown == NULL) {
            to->everything = true;
            return;
        }
        to->known = grown;
        to->capacity = capacity;
    }
    to->known[to->n++] = (struct check_known){stream, number};
}

void api_order_fini(struct api_order *order)
{
    free(order->known);
    *order = (struct api_order){0};
}

static void join(struct api_order *to, const struct api_order *more)
{
    to->everything |= more->everything;
    for (size_t i = 0; i < more->n; i++)
        add(to, more->known[i].stream, more->known[i].number);
}

/* What follows task `issued` of `on` knows; `then`: what that task knew, NULL: what the stream knows now. */
static void join_task(struct api_order *to, const struct api_stream *on, uint64_t issued,
                      const struct api_order *then)
{
    join(to, then != NULL ? then : &on->order);
    if (issued > 0)
        add(to, on->id, issued);
}

void api_order_after(struct api_stream *stream, const struct api_stream *on, uint64_t issued,
                     const struct api_order *then)
{
    if (!off() && stream != on)
        join_task(&stream->order, on, issued, then);
}

void api_order_keep(struct api_order *out, const struct api_stream *stream)
{
    api_order_fini(out);
    if (!off())
        join(out, &stream->order);
}

struct check_task *api_order_task(struct api_stream *stream, uint64_t number, const struct api_work *work)
{
    if (off())
        return NULL;
    stream->order.everything |= host.everything;
    for (size_t i = 0; i < host.n; i++)
        add(&stream->order, host.known[i].stream, host.known[i].number);
    struct check_task *task = malloc(sizeof *task + stream->order.n * sizeof task->known[0]);
    if (task != NULL) {
        *task =
            (struct check_task){.stream = stream->id,
                                .number = number,
                                .programmatic = work->kind == API_WORK_KERNEL && work->launch.programmatic,
                                .everything = stream->order.everything,
                                .n = stream->order.n};
        if (task->n > 0)
            memcpy(task->known, stream->order.known, task->n * sizeof task->known[0]);
    }
    if (work->kind == API_WORK_WAIT_VALUE) /* whoever wrote it */
        stream->order.everything = true;
    return task;
}

void api_order_host_after(const struct api_stream *on, uint64_t issued, const struct api_order *then)
{
    if (off())
        return;
    join_task(&host, on, issued, then);
    /* A task that is still to run, or runs, was submitted before the host knew. */
    for (const struct api_stream *other = on->context != NULL ? on->context->streams : NULL; other != NULL;
         other = other->next)
        if (!api_stream_idle(other))
            return;
    check_launches_known(host.known, host.n);
}

void api_order_host_after_task(const struct check_task *task)
{
    if (task == NULL)
        return;
    host.everything |= task->everything;
    for (size_t i = 0; i < task->n; i++)
        add(&host, task->known[i].stream, task->known[i].number);
    if (task->number > 1)
        add(&host, task->stream, task->number - 1);
}

void api_order_host_after_all(void)
{
    if (off())
        return;
    api_order_fini(&host);
    check_launches_settled();
}
