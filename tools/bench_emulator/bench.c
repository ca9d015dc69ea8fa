/* Runs the kernels of this folder on the stand-in driver and as plain C, one after the other, and prints what
   each took: one JSON object a line. tools/bench-emulator builds it per instruction set, starts it and reads
   the lines.

   usage: bench LIBCUDA FOLDER PTX_FOLDER SHAPES SET THREADS REPEATS NAME...

   Names: the stems of the PTX files in FOLDER; reduction (of PTX_FOLDER, without and with clusters); parse
   (of the files in SHAPES that shapes.py makes); threads (plain C on THREADS threads); check (what all hazard
   checks cost: four kernels with them and without). Every result is compared with that of plain C. Leaves
   out: anything about accuracy; that is the tests' business. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/hazard.h"
#include "driver/channel.h"
#include "plain.h"

#define STRINGIFY(name) #name
#define SYMBOL(name)    STRINGIFY(name) /* after cuda.h's macros: the name that is exported */
#define FETCH(name)     __typeof__(name) *name##_call = (__typeof__(name) *)find(SYMBOL(name))
#define THREADS         (64u * 256u)
#define MAX_REPEATS     100
#define REDUCE_N        UINT64_C(16776605)
#define ENTRIES         16384

static void *library;
static const struct clab_channel *channel;
static const char *set, *host_threads;
static unsigned repeats;

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench: %s: %s\n", what, detail ? detail : "");
    exit(1);
}

static void *find(const char *name)
{
    void *at = dlsym(library, name);
    if (!at) {
        die("no symbol", name);
    }
    return at;
}

static void check(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        struct clab_error error = {0};
        char text[16];
        snprintf(text, sizeof text, "CUresult %d", (int)result);
        die(what, channel && channel->last_error(&error) ? error.message : text);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static char *file_read(const char *folder, const char *name, const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s%s", folder, folder[0] ? "/" : "", name, suffix);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        die("cannot read", path);
    }
    const long bytes = ftell(file);
    char *text = calloc(1, (size_t)bytes + 1);
    rewind(file);
    if (!text || fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        die("cannot read", path);
    }
    fclose(file);
    return text;
}

static void print_seconds(const char *key, const double *seconds)
{
    printf(", \"%s\": [", key);
    for (unsigned r = 0; r < repeats; r++) {
        printf("%s%.6f", r ? ", " : "", seconds[r]);
    }
    printf("]");
}

/* `instructions`: thread instructions executed by the emulator, 0 where nothing is executed. */
static void print(const char *name, uint64_t instructions, const double *emulated, const double *plain)
{
    printf("{\"name\": \"%s\", \"set\": \"%s\", \"threads\": %s, \"thread_instructions\": %llu", name, set,
           host_threads, (unsigned long long)instructions);
    print_seconds("seconds", emulated);
    if (plain) {
        print_seconds("plain_seconds", plain);
    }
    printf("}\n");
    fflush(stdout);
}

static CUmodule module_load(const char *text)
{
    FETCH(cuModuleLoadData);
    CUmodule module;
    check(cuModuleLoadData_call(&module, text), "cuModuleLoadData");
    return module;
}

static CUfunction function_get(CUmodule module, const char *name)
{
    FETCH(cuModuleGetFunction);
    CUfunction function;
    check(cuModuleGetFunction_call(&function, module, name), name);
    return function;
}

static CUdeviceptr device_alloc(size_t bytes)
{
    FETCH(cuMemAlloc);
    CUdeviceptr at;
    check(cuMemAlloc_call(&at, bytes), "cuMemAlloc");
    return at;
}

/* Seconds of one launch. */
static double launch(CUfunction function, unsigned grid, unsigned block, unsigned cluster, void **arguments)
{
    FETCH(cuLaunchKernelEx);
    FETCH(cuCtxSynchronize);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {cluster, 1, 1}};
    CUlaunchConfig config = {.gridDimX = grid,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = block,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = cluster ? 1 : 0};
    const double start = now();
    check(cuLaunchKernelEx_call(&config, function, arguments, NULL), "cuLaunchKernelEx");
    check(cuCtxSynchronize_call(), "cuCtxSynchronize");
    return now() - start;
}

static uint64_t instructions_of_last(void)
{
    struct clab_counters counters;
    if (!channel->last_counters(&counters)) {
        die("no counters", "");
    }
    return counters.thread_instructions + counters.spin_thread_instructions;
}

static void run_kernel(const char *folder, const char *name, plain_kernel *plain, uint32_t turns)
{
    FETCH(cuMemcpyHtoD);
    FETCH(cuMemcpyDtoH);
    FETCH(cuMemFree);
    FETCH(cuModuleUnload);
    char *text = file_read(folder, name, ".ptx");
    CUmodule module = module_load(text);
    CUfunction function = function_get(module, name);
    CUdeviceptr out = device_alloc(4 * THREADS), table = device_alloc(4 * PLAIN_TABLE);
    uint32_t *words = calloc(PLAIN_TABLE, 4), *got = calloc(THREADS, 4), *wanted = calloc(THREADS, 4);
    double emulated[MAX_REPEATS], by_hand[MAX_REPEATS];
    if (!words || !got || !wanted) {
        die("out of memory", name);
    }
    for (uint32_t i = 0; i < PLAIN_TABLE; i++) {
        words[i] = i * 2654435761u;
    }
    check(cuMemcpyHtoD_call(table, words, 4 * PLAIN_TABLE), "cuMemcpyHtoD");
    void *arguments[] = {&out, &table, &turns};
    launch(function, THREADS / 256, 256, 0, arguments); /* warm */
    plain(wanted, words, THREADS, turns);
    for (unsigned r = 0; r < repeats; r++) {
        emulated[r] = launch(function, THREADS / 256, 256, 0, arguments);
        const double start = now();
        plain(wanted, words, THREADS, turns);
        by_hand[r] = now() - start;
    }
    check(cuMemcpyDtoH_call(got, out, 4 * THREADS), "cuMemcpyDtoH");
    for (uint32_t i = 0; i < THREADS; i++) {
        if (got[i] != wanted[i]) {
            char where[96];
            snprintf(where, sizeof where, "thread %u has %08x, and plain C %08x", i, got[i], wanted[i]);
            die(name, where);
        }
    }
    print(name, instructions_of_last(), emulated, by_hand);
    check(cuMemFree_call(out), "cuMemFree");
    check(cuMemFree_call(table), "cuMemFree");
    check(cuModuleUnload_call(module), "cuModuleUnload");
    free(words);
    free(got);
    free(wanted);
    free(text);
}

/* The textbook reduction of ones: their number is exact in any order. */
static void run_reduction(const char *folder)
{
    FETCH(cuMemcpyHtoD);
    FETCH(cuMemcpyDtoH);
    FETCH(cuMemFree);
    FETCH(cuFuncSetAttribute);
    float *ones = calloc(REDUCE_N, 4);
    for (uint64_t i = 0; ones && i < REDUCE_N; i++) {
        ones[i] = 1;
    }
    if (!ones) {
        die("out of memory", "reduction");
    }
    CUdeviceptr input = device_alloc(4 * REDUCE_N), sum = device_alloc(4);
    uint64_t n = REDUCE_N;
    check(cuMemcpyHtoD_call(input, ones, 4 * REDUCE_N), "cuMemcpyHtoD");
    void *arguments[] = {&input, &sum, &n};
    for (unsigned cluster = 0; cluster <= 16; cluster = cluster ? 2 * cluster : 2) {
        const char *entry = cluster ? "reduce_mapa" : "reduce_atomic";
        char *text = file_read(folder, entry, ".ptx"), name[32];
        CUfunction function = function_get(module_load(text), entry);
        check(cuFuncSetAttribute_call(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
              "cuFuncSetAttribute");
        double emulated[MAX_REPEATS], by_hand[MAX_REPEATS];
        const unsigned unit = cluster ? cluster : 1;
        const unsigned grid = ((unsigned)((n + 511) / 512) + unit - 1) / unit * unit;
        for (unsigned r = 0; r <= repeats; r++) { /* the first is to warm */
            float got = 0;
            check(cuMemcpyHtoD_call(sum, &got, 4), "cuMemcpyHtoD");
            const double took = launch(function, grid, 256, cluster, arguments), start = now();
            const float wanted = plain_sum(ones, n);
            by_hand[r ? r - 1 : 0] = now() - start;
            emulated[r ? r - 1 : 0] = took;
            check(cuMemcpyDtoH_call(&got, sum, 4), "cuMemcpyDtoH");
            if (got != wanted || got != (float)REDUCE_N) {
                die(entry, "wrong sum");
            }
        }
        snprintf(name, sizeof name, cluster ? "reduction, clusters of %u" : "reduction", cluster);
        print(name, instructions_of_last(), emulated, by_hand);
        free(text);
    }
    check(cuMemFree_call(input), "cuMemFree");
    check(cuMemFree_call(sum), "cuMemFree");
    free(ones);
}

/* CPU time of this process, so that a busy machine does not count. */
static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The same launches with the checks off and on in turn. Their hazards may be of the milder kinds only. */
static void time_checks(const char *name, CUfunction function, unsigned grid, void **arguments)
{
    double off[MAX_REPEATS], on[MAX_REPEATS];
    char title[48];
    if (!channel->has_hazards || channel->hazards->hazard_bytes != sizeof(struct clab_hazard)) {
        die(name, "no hazard checks in this build");
    }
    struct clab_error error = {0};
    if (channel->set_option("seed", "1", &error) != CLAB_OK) { /* the first that clusterlab check takes */
        die("option", error.message);
    }
    launch(function, grid, 256, 0, arguments); /* warm */
    for (unsigned r = 0; r < repeats; r++) {
        double start = cpu_seconds();
        launch(function, grid, 256, 0, arguments);
        off[r] = cpu_seconds() - start;
        channel->hazards->enable(1);
        start = cpu_seconds();
        launch(function, grid, 256, 0, arguments);
        on[r] = cpu_seconds() - start;
        channel->hazards->enable(0);
    }
    struct clab_hazard *hazards = NULL;
    size_t n = 0;
    if (channel->hazards->take(&hazards, &n) != 0) {
        die(name, "out of memory");
    }
    if (n > 0 && hazards[0].severity != CLAB_SEVERITY_MILD) {
        die(name, hazards[0].missing);
    }
    free(hazards);
    snprintf(title, sizeof title, "check, %s", name);
    printf("{\"name\": \"%s\", \"set\": \"%s\", \"threads\": %s, \"thread_instructions\": %llu", title, set,
           host_threads, (unsigned long long)instructions_of_last());
    print_seconds("seconds", on);
    print_seconds("off_seconds", off);
    printf("}\n");
    fflush(stdout);
}

static void run_check(const char *folder, const char *ptx_folder)
{
    FETCH(cuMemsetD32);
    FETCH(cuMemFree);
    static const char *const names[] = {"barrier", "gather", "atomics"};
    CUdeviceptr out = device_alloc(4 * THREADS), table = device_alloc(4 * PLAIN_TABLE);
    uint32_t turns = 400;
    check(cuMemsetD32_call(table, 1, PLAIN_TABLE), "cuMemsetD32");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char *text = file_read(folder, names[k], ".ptx");
        void *arguments[] = {&out, &table, &turns};
        time_checks(names[k], function_get(module_load(text), names[k]), THREADS / 256, arguments);
        free(text);
    }
    check(cuMemFree_call(out), "cuMemFree");
    check(cuMemFree_call(table), "cuMemFree");
    CUdeviceptr input = device_alloc(4 * REDUCE_N), sum = device_alloc(4);
    uint64_t n = REDUCE_N;
    check(cuMemsetD32_call(input, 0, REDUCE_N), "cuMemsetD32");
    check(cuMemsetD32_call(sum, 0, 1), "cuMemsetD32");
    void *arguments[] = {&input, &sum, &n};
    char *text = file_read(ptx_folder, "reduce_atomic", ".ptx");
    time_checks("reduction", function_get(module_load(text), "reduce_atomic"), (unsigned)((n + 511) / 512),
                arguments);
    check(cuMemFree_call(input), "cuMemFree");
    check(cuMemFree_call(sum), "cuMemFree");
    free(text);
}

/* Parse, then decode every entry, which happens when a function is fetched. */
static void run_parse(const char *folder, const char *shape)
{
    FETCH(cuModuleUnload);
    FETCH(cuModuleGetFunctionCount);
    FETCH(cuModuleEnumerateFunctions);
    FETCH(cuFuncLoad);
    static CUfunction functions[ENTRIES];
    char *text = file_read(folder, shape, ".ptx"), name[64];
    double seconds[MAX_REPEATS];
    for (unsigned r = 0; r <= repeats; r++) {
        unsigned n = 0;
        const double start = now();
        CUmodule module = module_load(text);
        check(cuModuleGetFunctionCount_call(&n, module), "cuModuleGetFunctionCount");
        if (n == 0 || n > ENTRIES) {
            die("parse", "no functions, or too many");
        }
        check(cuModuleEnumerateFunctions_call(functions, n, module), "cuModuleEnumerateFunctions");
        for (unsigned i = 0; i < n; i++) {
            check(cuFuncLoad_call(functions[i]), "cuFuncLoad");
        }
        seconds[r ? r - 1 : 0] = now() - start;
        check(cuModuleUnload_call(module), "cuModuleUnload");
    }
    snprintf(name, sizeof name, "parse, %s", shape);
    print(name, 0, seconds, NULL);
    free(text);
}

static void *plain_work(void *out)
{
    plain_alu(out, NULL, THREADS, 20000);
    return NULL;
}

/* Every thread does what one does alone in plain_seconds. */
static void run_threads(void)
{
    enum { MOST = 256 };
    const unsigned n = (unsigned)strtoul(host_threads, NULL, 10) % MOST;
    uint32_t *out = calloc((size_t)n + 1, 4 * THREADS);
    double alone[MAX_REPEATS], together[MAX_REPEATS];
    if (!out) {
        die("out of memory", "threads");
    }
    plain_work(out);
    for (unsigned r = 0; r < repeats; r++) {
        pthread_t threads[MOST];
        double start = now();
        plain_work(out);
        alone[r] = now() - start;
        start = now();
        for (unsigned i = 1; i < n; i++) {
            if (pthread_create(&threads[i], NULL, plain_work, out + i * THREADS) != 0) {
                die("no thread", host_threads);
            }
        }
        plain_work(out);
        for (unsigned i = 1; i < n; i++) {
            pthread_join(threads[i], NULL);
        }
        together[r] = now() - start;
    }
    print("threads", 0, together, alone);
    free(out);
}

static void open_driver(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        die("cannot load", dlerror());
    }
    FETCH(cuInit);
    FETCH(cuGetExportTable);
    FETCH(cuDevicePrimaryCtxRetain);
    FETCH(cuCtxSetCurrent);
    CUuuid id;
    const void *table;
    CUcontext context;
    memcpy(&id, CLAB_CHANNEL_UUID, 16);
    check(cuInit_call(0), "cuInit");
    check(cuGetExportTable_call(&table, &id), "not the stand-in driver");
    channel = table;
    if (channel->version != CLAB_CHANNEL_VERSION || channel->counters_bytes != sizeof(struct clab_counters)) {
        die(path, "another version");
    }
    struct clab_error error = {0};
    if (channel->set_option("isa", set, &error) != CLAB_OK ||
        channel->set_option("threads", host_threads, &error) != CLAB_OK) {
        die("option", error.message);
    }
    check(cuDevicePrimaryCtxRetain_call(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent_call(context), "cuCtxSetCurrent");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        plain_kernel *plain;
        uint32_t turns;
    } kernels[] = {{"alu", plain_alu, 2000},           {"barrier", plain_barrier, 400},
                   {"divergent", plain_divergent, 12}, {"gather", plain_gather, 400},
                   {"atomics", plain_atomics, 400},    {"shuffles", plain_shuffles, 400}};
    if (argc < 9) {
        die("usage", "bench LIBCUDA FOLDER PTX_FOLDER SHAPES SET THREADS REPEATS NAME...");
    }
    set = argv[5];
    host_threads = argv[6];
    repeats = (unsigned)strtoul(argv[7], NULL, 10);
    if (repeats == 0 || repeats > MAX_REPEATS) {
        die("repeats", "1 to 100");
    }
    open_driver(argv[1]);
    for (int i = 8; i < argc; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
            if (strcmp(argv[i], kernels[k].name) == 0) {
                run_kernel(argv[2], kernels[k].name, kernels[k].plain, kernels[k].turns);
                known = true;
            }
        }
        if (strcmp(argv[i], "reduction") == 0) {
            run_reduction(argv[3]);
        } else if (strcmp(argv[i], "threads") == 0) {
            run_threads();
        } else if (strcmp(argv[i], "check") == 0) {
            run_check(argv[2], argv[3]);
        } else if (strcmp(argv[i], "parse") == 0) {
            static const char *const shapes[] = {"many", "small", "line", "blocks", "loops", "registers"};
            for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
                run_parse(argv[4], shapes[k]);
            }
        } else if (!known) {
            die("unknown benchmark", argv[i]);
        }
    }
    return 0;
}
