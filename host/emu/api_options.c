/* Options by name, with the spellings and ranges of channel.h. */
#include "emu/api_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static bool parse_u64(const char *text, uint64_t limit, uint64_t *out_value)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > limit)
        return false;
    *out_value = value;
    return true;
}

static clab_status bad(struct clab_error *error, const char *name, const char *value, const char *wanted)
{
    return clab_error_set(error, CLAB_USAGE, "emulator option %s is \"%s\": wanted %s", name, value, wanted);
}

static clab_status set_schedule(struct emu_options *options, const char *value, struct clab_error *error)
{
    if (value == NULL || strcmp(value, "fast") == 0)
        options->schedule = EMU_SCHEDULE_FAST;
    else if (strcmp(value, "fair") == 0)
        options->schedule = EMU_SCHEDULE_FAIR;
    else
        return bad(error, "schedule", value, "fast or fair");
    return CLAB_OK;
}

static clab_status set_isa(struct emu_options *options, const char *value, struct clab_error *error)
{
    static const char *const names[] = {"base", "v3", "v4"};
    options->isa = NULL;
    if (value == NULL || strcmp(value, "auto") == 0)
        return CLAB_OK;
    for (size_t i = 0; i < API_COUNT_OF(names); i++)
        if (strcmp(value, names[i]) == 0)
            options->isa = names[i];
    return options->isa != NULL ? CLAB_OK : bad(error, "isa", value, "base, v3, v4 or auto");
}

static clab_status set_decline(struct emu_options *options, const char *value, struct clab_error *error)
{
    uint64_t count;
    options->decline = UINT32_MAX;
    if (value == NULL)
        return CLAB_OK;
    if (!parse_u64(value, UINT32_MAX, &count))
        return bad(error, "decline", value,
                   "the number of requests after which every further one is declined");
    options->decline = (uint32_t)count;
    return CLAB_OK;
}

static clab_status set_driver(struct emu_options *options, const char *value, struct clab_error *error)
{
    options->driver_version = 0;
    if (value == NULL || value[0] == '\0')
        return CLAB_OK;
    /* A driver takes the .version of its own toolkit (PTX ISA 9.0, release history): CUDA 13.0 is PTX 9.0. */
    static const struct {
        const char *driver;
        uint16_t version;
    } drivers[] = {{"12.0", 80}, {"12.1", 81}, {"12.2", 82}, {"12.3", 83}, {"12.4", 84},
                   {"12.5", 85}, {"12.6", 85}, {"12.7", 86}, {"12.8", 87}, {"12.9", 88},
                   {"13.0", 90}, {"13.1", 91}, {"13.2", 92}};
    for (size_t i = 0; i < API_COUNT_OF(drivers); i++)
        if (strcmp(value, drivers[i].driver) == 0)
            options->driver_version = drivers[i].version;
    return options->driver_version != 0 ? CLAB_OK
                                        : bad(error, "driver", value, "a CUDA version from 12.0 to 13.2");
}

static clab_status set_trace(struct emu_options *options, const char *value, struct clab_error *error)
{
    int cta, warp, used = 0;
    options->trace_cta = options->trace_warp = -1;
    if (value == NULL || value[0] == '\0')
        return CLAB_OK;
    if (sscanf(value, "%d,%d%n", &cta, &warp, &used) != 2 || value[used] != '\0' || cta < 0 || warp < 0)
        return bad(error, "trace", value, "CTA,WARP");
    options->trace_cta = cta;
    options->trace_warp = warp;
    return CLAB_OK;
}

/* The options borrow the path: it is kept here, and the one before it until the next, for a launch in
 * progress. */
static clab_status set_trace_file(struct emu_options *options, const char *value, struct clab_error *error)
{
    static char *kept, *before;
    char *copy = value != NULL && value[0] != '\0' ? strdup(value) : NULL;
    if (copy == NULL && value != NULL && value[0] != '\0')
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a path");
    free(before);
    before = kept;
    kept = copy;
    options->trace_file = copy;
    return CLAB_OK;
}

static clab_status set_source(struct emu_options *options, const char *value, struct clab_error *error)
{
    (void)error;
    snprintf(options->source, sizeof options->source, "%s", value != NULL ? value : "");
    return CLAB_OK;
}

const char *api_source_name(void)
{
    const char *name = emu_machine_options(api_device()->machine)->source;
    return name[0] != '\0' ? name : "ptx input";
}

clab_status api_option_set(struct emu_machine *machine, const char *name, const char *value,
                           struct clab_error *error)
{
    struct emu_options *options = emu_machine_options(machine);
    static const struct {
        const char *name;
        clab_status (*set)(struct emu_options *, const char *, struct clab_error *);
    } words[] = {{"schedule", set_schedule},     {"isa", set_isa},       {"decline", set_decline},
                 {"trace_file", set_trace_file}, {"driver", set_driver}, {"trace", set_trace},
                 {"source", set_source}};
    for (size_t i = 0; i < API_COUNT_OF(words); i++)
        if (strcmp(name, words[i].name) == 0)
            return words[i].set(options, value, error);

    uint64_t number = 0;
    bool seed = strcmp(name, "seed") == 0, budget = strcmp(name, "budget") == 0;
    bool threads = strcmp(name, "threads") == 0, initial = strcmp(name, "initial_clusters") == 0;
    if (!seed && !budget && !threads && !initial)
        return clab_error_set(error, CLAB_USAGE, "the stand-in driver has no option \"%s\"", name);
    if (value != NULL && !parse_u64(value, threads ? 1024 : initial ? UINT32_MAX : UINT64_MAX, &number))
        return bad(error, name, value, threads ? "a number up to 1024" : "a decimal number");
    if (seed)
        options->seed = number;
    else if (budget)
        options->instruction_budget = number;
    else if (threads)
        options->threads = (uint32_t)number;
    else
        options->initial_clusters = (uint32_t)number;
    return CLAB_OK;
}

clab_status api_options_from_environment(struct emu_machine *machine, struct clab_error *error)
{
    static const struct {
        const char *variable, *name;
    } variables[] = {
        {"CLUSTERLAB_EMU_SCHEDULE", "schedule"}, {"CLUSTERLAB_EMU_SEED", "seed"},
        {"CLUSTERLAB_EMU_ISA", "isa"},           {"CLUSTERLAB_EMU_INITIAL_CLUSTERS", "initial_clusters"},
        {"CLUSTERLAB_EMU_DECLINE", "decline"},   {"CLUSTERLAB_EMU_DRIVER", "driver"},
        {"CLUSTERLAB_EMU_THREADS", "threads"},   {"CLUSTERLAB_EMU_BUDGET", "budget"},
        {"CLUSTERLAB_EMU_TRACE", "trace"},       {"CLUSTERLAB_EMU_TRACE_FILE", "trace_file"},
    };
    for (size_t i = 0; i < API_COUNT_OF(variables); i++) {
        const char *value = getenv(variables[i].variable);
        if (value == NULL || value[0] == '\0')
            continue;
        clab_status status = api_option_set(machine, variables[i].name, value, error);
        if (status != CLAB_OK)
            return clab_error_context(error, "%s", variables[i].variable);
    }
    const char *log = getenv("CLUSTERLAB_EMU_CHECK");
    if (log != NULL && log[0] != '\0' && !check_log_to(log))
        return clab_error_set(error, CLAB_USAGE, "CLUSTERLAB_EMU_CHECK: cannot write %s: %s", log,
                              strerror(errno));
    return CLAB_OK;
}
