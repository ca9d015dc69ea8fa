/* The trace, in the JSON form that chrome://tracing and ui.perfetto.dev read ("Trace Event Format": complete
   events, ts and dur in microseconds): a row is a process, an SM a thread of it. The picture is
   timeline_svg.c's. */
#include "report/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

clab_status clab_timelines_open(struct clab_timelines *timelines, const char *path, struct clab_error *error)
{
    static const char *const endings[] = {".json", ".svg"};
    size_t bytes = strlen(path);
    char full[4096];
    memset(timelines, 0, sizeof *timelines);
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(endings[i]);
        if (bytes > n && strcmp(path + bytes - n, endings[i]) == 0) {
            bytes -= n;
            break;
        }
    }
    if (bytes == 0 || strcmp(path, "-") == 0 || bytes + 8 > sizeof full)
        return clab_error_set(error, CLAB_USAGE,
                              "--timeline wants the name of two files, NAME.json and NAME.svg; got '%s'",
                              path);
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < 2 && status == CLAB_OK; i++) {
        snprintf(full, sizeof full, "%.*s%s", (int)bytes, path, endings[i]);
        status =
            clab_output_open(i == 0 ? &timelines->trace : &timelines->picture, full, "a timeline", error);
    }
    if (status == CLAB_OK)
        timelines->rows = json_array();
    else
        (void)clab_output_close(&timelines->trace);
    return status;
}

void clab_timelines_add(struct clab_timelines *timelines, const char *experiment, const char *item,
                        unsigned sms, const json_t *row, const json_t *slots)
{
    json_array_append_new(timelines->rows,
                          json_pack("{s:s,s:s,s:i,s:O,s:O}", "experiment", experiment, "item", item, "sms",
                                    (int)sms, "row", row, "slots", slots));
}

/* A text as JSON, quoted. */
static void put_text(FILE *file, const char *text)
{
    json_t *string = json_string(text);
    if (string != NULL)
        json_dumpf(string, file, JSON_ENCODE_ANY);
    json_decref(string);
}

static void put_meta(FILE *file, const char *kind, size_t pid, long long tid, const char *name)
{
    fprintf(file, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%zu,\"tid\":%lld,\"args\":{\"name\":", kind, pid,
            tid);
    put_text(file, name);
    fputs("}},\n", file);
}

static long long slot_word(const json_t *slots, size_t i, size_t word)
{
    return (long long)json_integer_value(json_array_get(slots, 6 * i + word));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static void put_row(FILE *file, size_t pid, const json_t *entry, bool last)
{
    const json_t *row = json_object_get(entry, "row"), *slots = json_object_get(entry, "slots");
    const json_t *summary = json_object_get(row, "timeline"), *profile = json_object_get(row, "params");
    const size_t n = json_array_size(slots) / 6;
    const char *item = text_of(entry, "item");
    json_t *seen = json_object();
    char *params = json_dumps(profile, JSON_COMPACT);
    char name[1024];
    snprintf(name, sizeof name, "%s %s (%s)", text_of(row, "variant"), params != NULL ? params : "",
             text_of(summary, "kind"));
    free(params);
    put_meta(file, "process_name", pid, 0, name);
    for (size_t i = 0; i < n; i++) {
        const long long sm = slot_word(slots, i, 3);
        snprintf(name, sizeof name, "SM %lld", sm);
        if (json_object_get(seen, name) == NULL) {
            json_object_set_new(seen, name, json_true());
            put_meta(file, "thread_name", pid, sm, name);
        }
    }
    json_decref(seen);
    for (size_t i = 0; i < n; i++) {
        const long long start = slot_word(slots, i, 1), end = slot_word(slots, i, 2);
        if (slot_word(slots, i, 5) == 0)
            snprintf(name, sizeof name, "%s %lld", item, slot_word(slots, i, 0));
        else
            snprintf(name, sizeof name, "held by another kernel");
        fputs("{\"ph\":\"X\",\"name\":", file);
        put_text(file, name);
        fprintf(file, ",\"pid\":%zu,\"tid\":%lld,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"cta\":%lld}}%s\n", pid,
                slot_word(slots, i, 3), (double)start / 1000, (double)(end - start) / 1000,
                slot_word(slots, i, 4), last && i + 1 == n ? "" : ",");
    }
}

static bool put_trace(FILE *file, const json_t *rows)
{
    const json_t *first = json_object_get(json_array_get(rows, 0), "row");
    const char *kind = text_of(json_object_get(first, "timeline"), "kind");
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"experiment\":", file);
    put_text(file, text_of(json_array_get(rows, 0), "experiment"));
    fputs(",\"device\":", file);
    put_text(file, text_of(json_object_get(first, "device"), "name"));
    fputs(",\"time\":", file);
    put_text(file, strcmp(kind, "measured") == 0 ? "measured" : "modelled, not measured");
    fputs("},\"traceEvents\":[\n", file);
    for (size_t i = 0; i < json_array_size(rows); i++)
        put_row(file, i + 1, json_array_get(rows, i), i + 1 == json_array_size(rows));
    fputs("]}\n", file);
    return ferror(file) == 0;
}

clab_status clab_timelines_close(struct clab_timelines *timelines, struct clab_error *error)
{
    struct clab_output *outputs[] = {&timelines->trace, &timelines->picture};
    clab_status status = CLAB_OK;
    if (timelines->rows == NULL)
        return CLAB_OK;
    for (size_t i = 0; i < 2; i++) {
        bool written = true;
        if (json_array_size(timelines->rows) != 0)
            written = clab_output_begin(outputs[i]) &&
                      (i == 0 ? put_trace(outputs[i]->file, timelines->rows)
                              : clab_timelines_svg(outputs[i]->file, timelines->rows));
        if (!clab_output_close(outputs[i]) || !written)
            status = clab_error_set(error, CLAB_OUTPUT, "the timeline could not be written to %s: %s",
                                    outputs[i]->path, strerror(errno));
    }
    json_decref(timelines->rows);
    timelines->rows = NULL;
    return status;
}
