/* JSON forms of errors and counters, and the one-line framing between parent and worker. */
#include "lab/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"

const char *clab_json_text(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : otherwise;
}

int64_t clab_json_int(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value))
        return json_integer_value(value);
    if (json_is_real(value))
        return (int64_t)json_real_value(value);
    return otherwise;
}

bool clab_json_bool(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        /* Text from compilers and drivers need not be UTF-8; what is not is replaced rather than lost. */
        json_t *value = json_string(text);
        if (value == NULL) {
            char *copy = strdup(text);
            for (char *p = copy; p != NULL && *p != '\0'; p++)
                if ((unsigned char)*p >= 0x80)
                    *p = '?';
            value = copy != NULL ? json_string(copy) : NULL;
            free(copy);
        }
        json_object_set_new(object, key, value);
    }
}

static json_t *triple(const uint32_t v[3])
{
    return json_pack("[I,I,I]", (json_int_t)v[0], (json_int_t)v[1], (json_int_t)v[2]);
}

/* Records outlive the order of errors.def, so a status travels by its id there. */
static const char *const status_ids[CLAB_STATUS_COUNT] = {
#define CLAB_STATUS(id, text, exit_status) [CLAB_##id] = #id,
#include "base/errors.def"
#undef CLAB_STATUS
};

static clab_status status_of_id(const char *id)
{
    for (int i = 0; i < CLAB_STATUS_COUNT; i++)
        if (strcmp(status_ids[i], id) == 0)
            return (clab_status)i;
    return CLAB_OK;
}

json_t *clab_error_to_json(const struct clab_error *error)
{
    json_t *object = json_object();
    if (object == NULL)
        return NULL;
    json_object_set_new(object, "status", json_string(status_ids[error->status]));
    set_text(object, "message", error->message);
    set_text(object, "file", error->file);
    if (error->line != 0)
        json_object_set_new(object, "line", json_integer(error->line));
    if (error->column != 0)
        json_object_set_new(object, "column", json_integer(error->column));
    set_text(object, "source_line", error->source_line);
    set_text(object, "kernel", error->kernel);
    set_text(object, "instruction", error->instruction);
    set_text(object, "origin", error->origin);
    if (error->where.has_cta) {
        json_object_set_new(object, "cluster", triple(error->where.cluster));
        json_object_set_new(object, "cta", triple(error->where.cta));
        json_object_set_new(object, "cta_rank", json_integer(error->where.cta_rank));
    }
    if (error->where.has_warp)
        json_object_set_new(object, "warp", json_integer(error->where.warp));
    if (error->where.has_lane)
        json_object_set_new(object, "lane", json_integer(error->where.lane));
    set_text(object, "space", error->space);
    if (error->has_address)
        json_object_set_new(object, "address", json_integer((json_int_t)error->address));
    set_text(object, "native_call", error->native_call);
    if (error->native_call[0] != '\0')
        json_object_set_new(object, "native_code", json_integer(error->native_code));
    set_text(object, "native_name", error->native_name);
    set_text(object, "remedy", error->remedy);
    set_text(object, "log", error->log);
    return object;
}

static void get_text(const json_t *object, const char *key, char *out, size_t size)
{
    snprintf(out, size, "%s", clab_json_text(object, key, ""));
}

static bool get_triple(const json_t *object, const char *key, uint32_t out[3])
{
    const json_t *array = json_object_get(object, key);
    if (json_array_size(array) != 3)
        return false;
    for (size_t i = 0; i < 3; i++)
        out[i] = (uint32_t)json_integer_value(json_array_get(array, i));
    return true;
}

clab_status clab_error_from_json(const json_t *object, struct clab_error *out_error)
{
    const clab_status status = status_of_id(clab_json_text(object, "status", ""));
    if (status == CLAB_OK)
        return clab_error_set(out_error, CLAB_INTERNAL, "worker sent an error without a status");
    clab_error_set(out_error, status, "%s", clab_json_text(object, "message", ""));
    get_text(object, "file", out_error->file, sizeof out_error->file);
    out_error->line = (uint32_t)clab_json_int(object, "line", 0);
    out_error->column = (uint32_t)clab_json_int(object, "column", 0);
    get_text(object, "source_line", out_error->source_line, sizeof out_error->source_line);
    get_text(object, "kernel", out_error->kernel, sizeof out_error->kernel);
    get_text(object, "instruction", out_error->instruction, sizeof out_error->instruction);
    get_text(object, "origin", out_error->origin, sizeof out_error->origin);
    struct clab_where *where = &out_error->where;
    where->has_cta = get_triple(object, "cta", where->cta) && get_triple(object, "cluster", where->cluster);
    where->cta_rank = (uint32_t)clab_json_int(object, "cta_rank", 0);
    where->has_warp = json_object_get(object, "warp") != NULL;
    where->warp = (uint32_t)clab_json_int(object, "warp", 0);
    where->has_lane = json_object_get(object, "lane") != NULL;
    where->lane = (uint32_t)clab_json_int(object, "lane", 0);
    get_text(object, "space", out_error->space, sizeof out_error->space);
    out_error->has_address = json_object_get(object, "address") != NULL;
    out_error->address = (uint64_t)clab_json_int(object, "address", 0);
    get_text(object, "native_call", out_error->native_call, sizeof out_error->native_call);
    out_error->native_code = (int)clab_json_int(object, "native_code", 0);
    get_text(object, "native_name", out_error->native_name, sizeof out_error->native_name);
    get_text(object, "remedy", out_error->remedy, sizeof out_error->remedy);
    const char *log = clab_json_text(object, "log", NULL);
    if (log != NULL)
        clab_error_log(out_error, log, SIZE_MAX);
    return out_error->status;
}

/* The counters that are single numbers; traffic tables are named by direction and space below. */
#define EACH_COUNTER(X)       \
    X(warp_instructions)      \
    X(thread_instructions)    \
    X(atomics_global)         \
    X(atomics_shared)         \
    X(atomics_remote)         \
    X(barriers)               \
    X(cluster_barriers)       \
    X(mbarrier_arrives)       \
    X(mbarrier_phases)        \
    X(async_stores)           \
    X(bulk_copies)            \
    X(bulk_requested_bytes)   \
    X(bulk_delivered_bytes)   \
    X(bulk_across_bytes)      \
    X(async_store_bytes)      \
    X(clc_granted)            \
    X(clc_declined)           \
    X(ctas)                   \
    X(clusters)               \
    X(spin_warp_instructions) \
    X(spin_thread_instructions)

static const char *const space_names[CLAB_SPACE_COUNT] = {"global", "shared", "remote",
                                                          "local",  "const",  "param"};

/* Calls `each` for every counter; stops when it returns true. */
static bool visit(const struct clab_counters *counters, bool (*each)(const char *, uint64_t, void *),
                  void *context)
{
#define X(field)                                \
    if (each(#field, counters->field, context)) \
        return true;
    EACH_COUNTER(X)
#undef X
    char name[64];
    for (unsigned direction = 0; direction < 2; direction++)
        for (unsigned space = 0; space < CLAB_SPACE_COUNT; space++) {
            const struct clab_traffic *traffic =
                direction == 0 ? &counters->loads[space] : &counters->stores[space];
            const char *verb = direction == 0 ? "loads" : "stores";
            snprintf(name, sizeof name, "%s_%s", verb, space_names[space]);
            if (each(name, traffic->accesses, context))
                return true;
            snprintf(name, sizeof name, "%s_%s_bytes", verb, space_names[space]);
            if (each(name, traffic->bytes, context))
                return true;
        }
    return false;
}

static bool add_counter(const char *name, uint64_t value, void *context)
{
    json_object_set_new(context, name, json_integer((json_int_t)value));
    return false;
}

json_t *clab_counters_to_json(const struct clab_counters *counters)
{
    json_t *object = json_object();
    if (object != NULL)
        visit(counters, add_counter, object);
    return object;
}

struct wanted {
    const char *name;
    uint64_t value;
};

static bool find_counter(const char *name, uint64_t value, void *context)
{
    struct wanted *wanted = context;
    if (strcmp(name, wanted->name) != 0)
        return false;
    wanted->value = value;
    return true;
}

bool clab_counter_get(const struct clab_counters *counters, const char *name, uint64_t *out_value)
{
    struct wanted wanted = {.name = name};
    if (!visit(counters, find_counter, &wanted))
        return false;
    *out_value = wanted.value;
    return true;
}

clab_status clab_wire_send(int fd, const json_t *value, struct clab_error *error)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (text == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a message");
    size_t bytes = strlen(text);
    text[bytes] = '\n'; /* in place of the NUL, so that the line goes out in one write */
    int result = clab_write_all(fd, text, bytes + 1);
    free(text);
    if (result != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot write to a worker pipe: %s", strerror(errno));
    return CLAB_OK;
}
