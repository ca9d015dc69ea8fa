/* clusterlab's reduction against CUB's DeviceReduce::Sum: one process, one context, one stream, samples
   interleaved in shuffled rounds, L2 flushed, by the same code that times experiments (lab/measure.h). Both
   produce the result inside the timed span: ours zeroes it first, CUB writes it. Both are checked before and
   after, on the fill of zeros and ones.

   usage: cub_compare --clusterlab PROGRAM [--variant NAME] [--n N]... [--samples N] [--json FILE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/temporary.h"
#include "compile/compile.h"
#include "cub_sum.h"
#include "driver/call.h"
#include "lab/buffers.h"
#include "lab/device.h"
#include "lab/experiment.h"
#include "lab/launch.h"
#include "lab/measure.h"
#include "lab/stats.h"
#include "lab/watch.h"
#include "lab/wire.h"
#include "report/record.h"

#define PEAK_BYTES_PER_S 4.8e12 /* H200: HBM3e, NVIDIA's data sheet */
#define MAX_SIZES        16
#define BITS_PASS        1 /* reduce.lua's second fill: seeded zeros and ones */
#define OURS             0
#define CUBS             1

struct options {
    const char *program, *variant, *json;
    unsigned long long sizes[MAX_SIZES];
    size_t n_sizes;
    unsigned samples;
};

struct contest {
    const struct options *options;
    struct clab_device device;
    struct clab_watch *watch;
    struct clab_compiler *compiler;
    struct clab_record_writer writer;
    /* of the size in hand */
    unsigned long long n;
    struct clab_loaded loaded;
    struct clab_launch *launch;
    struct clab_buffer_set set;
    CUdeviceptr cub_out, cub_temporary;
    struct cub_sum cub;
    struct series {
        double *ns; /* by round, NaN missing */
        size_t count, capacity, discarded;
    } series[2];
};

static clab_status submit_ours(void *context, struct clab_error *error)
{
    struct contest *contest = context;
    clab_status status = clab_buffers_reset(&contest->device, &contest->set, BITS_PASS, false, error);
    if (status == CLAB_OK)
        status = clab_buffers_reset(&contest->device, &contest->set, BITS_PASS, true, error);
    return status == CLAB_OK ? clab_launch_submit(&contest->device, contest->launch, error) : status;
}

static bool on_sample(void *context, const struct clab_sample *sample)
{
    struct contest *contest = context;
    struct series *series = &contest->series[sample->id];
    json_t *record = json_pack(
        "{s:s,s:I,s:i,s:f,s:o?,s:s?}", "variant", sample->id == OURS ? contest->options->variant : "cub", "n",
        (json_int_t)contest->n, "round", (int)sample->round, "cold_ns", sample->ns, "sm_mhz",
        isnan(sample->sm_mhz) ? json_null() : json_real(sample->sm_mhz), "discarded", sample->discarded);
    clab_record_write(&contest->writer, "sample", NULL, record);
    json_decref(record);
    if (sample->discarded != NULL) {
        series->discarded++;
        return true;
    }
    if (sample->round >= series->capacity) {
        size_t capacity = 2 * (size_t)sample->round + 64;
        double *more = realloc(series->ns, capacity * sizeof *more);
        if (more == NULL)
            return false;
        series->ns = more;
        series->capacity = capacity;
    }
    while (series->count <= sample->round)
        series->ns[series->count++] = (double)NAN;
    series->ns[sample->round] = sample->ns;
    return true;
}

/* Plan, image, buffers and launch of the variant at contest->n. */
static clab_status prepare(struct contest *contest, struct clab_error *error)
{
    char setting[32], path[4096] = "";
    snprintf(setting, sizeof setting, "n=%llu", contest->n);
    const char *const sets[] = {setting}, *const variants[] = {contest->options->variant};
    json_t *facts = clab_device_facts(&contest->device), *plan = NULL;
    const struct clab_lab_request request = {.experiment = "reduce",
                                             .sets = sets,
                                             .n_sets = 1,
                                             .clusters = "1",
                                             .variants = variants,
                                             .n_variants = 1,
                                             .device = facts};
    clab_status status = clab_lab_plan(&request, &plan, error);
    const json_t *row = json_array_get(json_object_get(plan, "rows"), 0);
    const json_t *variant =
        json_array_get(json_object_get(plan, "variants"), (size_t)clab_json_int(row, "variant", 0));
    struct clab_image image = {0};
    if (status == CLAB_OK) {
        char arch[16];
        snprintf(arch, sizeof arch, "sm_%d%d", contest->device.cc_major, contest->device.cc_minor);
        const struct clab_compile_request compile = {.source_path = clab_json_text(variant, "source", ""),
                                                     .arch = arch,
                                                     .entry = clab_json_text(variant, "entry", NULL),
                                                     .want = CLAB_IMAGE_CUBIN};
        status = clab_compile(contest->compiler, &compile, &image, error);
    }
    if (status == CLAB_OK && (clab_temporary_file("cub-compare", path, sizeof path) != 0 ||
                              clab_file_write_atomic(path, image.data, image.bytes) != 0))
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write a temporary image");
    if (status == CLAB_OK)
        status = clab_load(&contest->device, path, clab_json_text(variant, "source", ""),
                           image.lowered != NULL ? image.lowered : clab_json_text(variant, "entry", ""),
                           &contest->loaded, error);
    if (path[0] != '\0')
        (void)unlink(path);
    clab_image_free(&image);
    if (status == CLAB_OK)
        status = clab_buffers_new(
            &contest->device,
            json_array_get(json_object_get(plan, "buffer_sets"), (size_t)clab_json_int(row, "buffers", 0)),
            &contest->set, error);
    if (status == CLAB_OK)
        status = clab_buffers_fill(&contest->device, &contest->set, BITS_PASS, error);
    if (status == CLAB_OK)
        status = clab_launch_prepare(&contest->device, &contest->loaded, row, clab_buffers_address,
                                     &contest->set, contest->launch, error);
    json_decref(plan);
    json_decref(facts);
    return status;
}

static clab_status prepare_cub(struct contest *contest, struct clab_error *error)
{
    const struct clab_driver *driver = contest->device.driver;
    const size_t bytes = cub_sum_temporary_bytes(contest->n);
    if (bytes == 0)
        return clab_error_set(error, CLAB_DRIVER,
                              "DeviceReduce::Sum does not say how much temporary storage it needs");
    clab_status status = CLAB_CALL(driver, error, cuMemAlloc_v2, (&contest->cub_out, sizeof(float)), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuMemAlloc_v2, (&contest->cub_temporary, bytes), NULL);
    contest->cub = (struct cub_sum){
        .temporary = (void *)(uintptr_t)contest->cub_temporary,
        .temporary_bytes = bytes,
        .in = (const float *)(uintptr_t)clab_buffers_address("input", &contest->set),
        .out = (float *)(uintptr_t)contest->cub_out,
        .n = contest->n,
        .stream = contest->device.stream,
    };
    return status;
}

/* Launches both once and holds both sums against the host's. */
static clab_status check(struct contest *contest, const char *when, struct clab_error *error)
{
    const struct clab_driver *driver = contest->device.driver;
    long double wanted = 0;
    for (size_t i = 0; i < contest->set.count; i++)
        if (strcmp(contest->set.buffers[i].name, "input") == 0)
            wanted = contest->set.buffers[i].sums[BITS_PASS];
    float cub = -1;
    clab_status status = CLAB_CALL(driver, error, cuMemsetD8_v2, (contest->cub_out, 0xff, sizeof cub), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuCtxSynchronize, (), NULL);
    if (status == CLAB_OK)
        status = submit_ours(contest, error);
    if (status == CLAB_OK)
        status = cub_sum_submit(&contest->cub, error);
    if (status == CLAB_OK)
        status = clab_device_wait(&contest->device, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuMemcpyDtoH_v2, (&cub, contest->cub_out, sizeof cub), NULL);
    if (status == CLAB_OK)
        status = clab_buffers_check(&contest->device, &contest->set, BITS_PASS, error);
    if (status == CLAB_OK && !clab_close(cub, wanted, 0, contest->n > 1ull << 24 ? 1e-3 : 0))
        status = clab_error_set(error, CLAB_WRONG, "DeviceReduce::Sum gives %.9g, wanted %.9Lg", (double)cub,
                                wanted);
    if (status != CLAB_OK)
        (void)clab_error_context(error, "%s timing, n = %llu", when, contest->n);
    return status;
}

static struct clab_summary summary_of(const struct series *series)
{
    struct clab_summary summary = {.noisy = true};
    double *known = calloc(series->count + 1, sizeof *known);
    size_t n = 0;
    for (size_t i = 0; i < series->count && known != NULL; i++)
        if (!isnan(series->ns[i]))
            known[n++] = series->ns[i];
    if (known != NULL)
        clab_summary_of(known, n, &summary);
    free(known);
    return summary;
}

static json_t *summary_json(const struct contest *contest, size_t which, const struct clab_summary *summary)
{
    const double gb_per_s = summary->median > 0 ? 4.0 * (double)contest->n / summary->median : 0;
    return json_pack("{s:f,s:f,s:f,s:f,s:I,s:I,s:b,s:f,s:f}", "median_ns", summary->median, "min_ns",
                     summary->min, "p05_ns", summary->p05, "p95_ns", summary->p95, "samples",
                     (json_int_t)summary->count, "discarded", (json_int_t)contest->series[which].discarded,
                     "noisy", summary->noisy, "gb_per_s", gb_per_s, "share_of_peak",
                     gb_per_s * 1e9 / PEAK_BYTES_PER_S);
}

static void report(struct contest *contest, const struct clab_outcome *outcome)
{
    const struct clab_summary ours = summary_of(&contest->series[OURS]),
                              cub = summary_of(&contest->series[CUBS]);
    const size_t count = contest->series[OURS].count < contest->series[CUBS].count
                             ? contest->series[OURS].count
                             : contest->series[CUBS].count;
    struct clab_ratio ratio = {0};
    const bool paired =
        clab_ratio_paired(contest->series[CUBS].ns, contest->series[OURS].ns, count, 1, &ratio);
    const double bytes = 4.0 * (double)contest->n;
    const struct {
        const char *name;
        const struct clab_summary *summary;
    } lines[] = {{contest->options->variant, &ours}, {"cub", &cub}};
    for (size_t i = 0; i < 2; i++) {
        printf("%12llu  %-14s %10.2f %8.0f %6.1f %%  %5zu%s", contest->n, lines[i].name,
               lines[i].summary->median / 1000, bytes / lines[i].summary->median,
               bytes / lines[i].summary->median * 1e9 / PEAK_BYTES_PER_S * 100, lines[i].summary->count,
               lines[i].summary->noisy ? " noisy" : "");
        if (i == 0 && paired)
            printf("  %.4f [%.4f, %.4f]", ratio.ratio, ratio.low, ratio.high);
        putchar('\n');
    }
    fflush(stdout);
    json_t *record =
        json_pack("{s:s,s:I,s:o,s:o,s:o,s:s,s:o,s:o}", "variant", contest->options->variant, "n",
                  (json_int_t)contest->n, "ours", summary_json(contest, OURS, &ours), "cub",
                  summary_json(contest, CUBS, &cub), "cub_over_ours",
                  paired ? json_pack("{s:f,s:f,s:f,s:I}", "ratio", ratio.ratio, "low", ratio.low, "high",
                                     ratio.high, "pairs", (json_int_t)ratio.pairs)
                         : json_null(),
                  "end", clab_measure_end_text(outcome->end), "reference_mhz",
                  isnan(outcome->reference_mhz) ? json_null() : json_real(outcome->reference_mhz), "throttle",
                  outcome->throttle_known ? json_string(outcome->throttle) : json_null());
    clab_record_write(&contest->writer, "comparison", NULL, record);
    json_decref(record);
}

static void forget(struct contest *contest)
{
    const struct clab_driver *driver = contest->device.driver;
    if (contest->cub_out != 0)
        (void)driver->cuMemFree_v2(contest->cub_out);
    if (contest->cub_temporary != 0)
        (void)driver->cuMemFree_v2(contest->cub_temporary);
    contest->cub_out = contest->cub_temporary = 0;
    if (contest->set.buffers != NULL)
        clab_buffers_free(&contest->device, &contest->set);
    clab_unload(&contest->device, &contest->loaded);
    for (size_t i = 0; i < 2; i++) {
        free(contest->series[i].ns);
        contest->series[i] = (struct series){0};
    }
}

static clab_status compare(struct contest *contest, struct clab_error *error)
{
    const struct clab_measured_row rows[] = {
        {.id = OURS, .submit = submit_ours, .context = contest},
        {.id = CUBS, .submit = cub_sum_submit, .context = &contest->cub}};
    const struct clab_measure_options measure = {
        .samples = contest->options->samples, .seed = contest->n, .watch = contest->watch};
    const struct clab_measure_sink sink = {.on_sample = on_sample, .context = contest};
    struct clab_outcome outcome;
    clab_status status = prepare(contest, error);
    if (status == CLAB_OK)
        status = prepare_cub(contest, error);
    if (status == CLAB_OK)
        status = check(contest, "before", error);
    if (status == CLAB_OK)
        status = clab_measure_cold(&contest->device, rows, 2, &measure, &sink, &outcome, error);
    if (status == CLAB_OK)
        status = check(contest, "after", error);
    if (status == CLAB_OK)
        report(contest, &outcome);
    forget(contest);
    return status;
}

static bool read_options(int argc, char **argv, struct options *options)
{
    *options = (struct options){.variant = "fast", .samples = 300};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[++i] : NULL;
        if (value == NULL)
            return false;
        if (strcmp(name, "--clusterlab") == 0)
            options->program = value;
        else if (strcmp(name, "--variant") == 0)
            options->variant = value;
        else if (strcmp(name, "--json") == 0)
            options->json = value;
        else if (strcmp(name, "--samples") == 0)
            options->samples = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(name, "--n") == 0 && options->n_sizes < MAX_SIZES)
            options->sizes[options->n_sizes++] = strtoull(value, NULL, 10);
        else
            return false;
    }
    if (options->n_sizes == 0) {
        static const unsigned long long sizes[] = {16776605, 1ull << 28, 1ull << 31};
        memcpy(options->sizes, sizes, sizeof sizes);
        options->n_sizes = sizeof sizes / sizeof *sizes;
    }
    return options->program != NULL && options->samples != 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct contest contest = {.options = &options};
    struct clab_error error = {0};
    if (!read_options(argc, argv, &options)) {
        fputs("usage: cub_compare --clusterlab PROGRAM [--variant NAME] [--n N]... [--samples N] [--json "
              "FILE]\n",
              stderr);
        return clab_status_exit(CLAB_USAGE);
    }
    const struct clab_compiler_options compiler_options = {.program = options.program};
    contest.watch = clab_watch_start();
    contest.launch = aligned_alloc(_Alignof(struct clab_launch), sizeof *contest.launch);
    contest.compiler = clab_compiler_new(&compiler_options);
    clab_status status = contest.launch != NULL && contest.compiler != NULL
                             ? clab_records_open(&contest.writer, options.json, &error)
                             : clab_error_set(&error, CLAB_NO_MEMORY, "no memory");
    if (status == CLAB_OK)
        status = clab_device_open(&contest.device, "cuda:0", &error);
    if (status == CLAB_OK) {
        json_t *facts = clab_device_facts(&contest.device);
        json_t *run =
            clab_run_record(argc, argv, json_pack("{s:o,s:i}", "device", facts, "cub", cub_sum_version()));
        clab_record_write(&contest.writer, "run", NULL, run);
        printf("%s, driver %s; CUB %d.%d.%d; cold L2, producing the result included, samples interleaved\n\n"
               "%12s  %-14s %10s %8s %8s  %5s  %s\n",
               clab_json_text(facts, "name", ""), clab_json_text(facts, "driver", ""),
               cub_sum_version() / 100000, cub_sum_version() / 100 % 1000, cub_sum_version() % 100, "n", "",
               "median us", "GB/s", "of peak", "kept", "cub / ours (above 1: ours is faster)");
        json_decref(run);
        if (contest.device.has_uuid)
            (void)clab_watch_device(contest.watch, contest.device.uuid);
    }
    for (size_t i = 0; i < options.n_sizes && status == CLAB_OK; i++) {
        contest.n = options.sizes[i];
        status = compare(&contest, &error);
    }
    if (status == CLAB_OK)
        status = clab_records_close(&contest.writer, &error);
    if (status != CLAB_OK) {
        char *text = clab_error_format(&error);
        fprintf(stderr, "cub_compare: %s\n", text != NULL ? text : error.message);
        free(text);
    }
    clab_error_clear(&error);
    clab_watch_stop(contest.watch);
    if (contest.compiler != NULL)
        clab_compiler_free(contest.compiler);
    clab_device_fini(&contest.device);
    free(contest.launch);
    return clab_status_exit(status);
}
