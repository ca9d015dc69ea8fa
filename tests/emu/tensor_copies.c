/* Tensor copies, one a case (tensor_copies.h), on any libcuda: what each wrote where, or its error.

   usage: tensor_copies [--driver LIBCUDA] [--jobs N] [--seconds N] [--cc N] [--record FILE | --check FILE]
   CASES…

   A result is one line, `case | words`. For a load, the words of shared memory that were written; for stores
   and reductions, those of global memory that changed, counted from the tensor's address. `i..j=v` words of
   one value, `i..j=v+` each one more than the last, hexadecimal values. Before a case, word i of shared
   memory is a0000 + i for stores and eeeeeeee for loads, and word i of the tensor 500000 + i; both are other
   for reductions (pattern). `encode N`, `load N`, `launch N`: that call failed with CUresult N; `error N`:
   the kernel did; `timeout`; `!done` after the words: the copy's bytes had not all been counted.

   The cases run in processes, a fresh one after each failure, which takes its context with it; after
   --seconds N those left get the result `not run`. --check compares with a file of such lines. Exit status:
   0, 1 a line differs, 2 usage, 77 no device. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/call.h"
#include "driver/driver.h"
#include "tensor_copies.h"

#define DATA_BYTES    (1u << 20)
#define DATA_WORDS    (DATA_BYTES / 4)
#define TENSOR_AT     (1u << 18) /* bytes; what is before it shows stores that leave the tensor */
#define SHARED_WORDS  (TENSOR_SHARED_BYTES / 4)
#define RESULT_BYTES  2048
#define TIME_LIMIT_S  20
#define MAX_JOBS      64
#define UNTOUCHED     UINT32_C(0xeeeeeeee)
#define STATUS_BROKEN 3 /* of a worker: the context is spoilt, the case's result is written */
#define STATUS_NONE   4 /* no device */

struct device {
    int cc; /* wanted, 10 x major + minor; 0 any */
    const struct clab_driver *driver;
    CUdeviceptr data, source, out;
    uint32_t *data_words, *before, *shared_words;
};

/* Word i of both memories for reductions: small numbers of the element's type. */
static uint32_t pattern(unsigned type, uint32_t i)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        return UINT32_C(0x3c003e00) + (i & 0x1ff) * UINT32_C(0x10001);
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
        return UINT32_C(0x3f803fc0) + (i & 0x3f) * UINT32_C(0x10001);
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
        return UINT32_C(0x3f800000) + i * UINT32_C(0x2010);
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
        return i & 1 ? UINT32_C(0x3ff00000) + i * 16 : i;
    default:
        return UINT32_C(0x1000) + i;
    }
}

static bool device_open(const char *library, struct device *out)
{
    struct clab_error error = {0};
    CUdevice device;
    CUcontext context;
    int major, minor;
    if (clab_driver_load(library, &out->driver, &error) != CLAB_OK) {
        fprintf(stderr, "tensor_copies: %s\n", error.message);
        return false;
    }
    const struct clab_driver *d = out->driver;
    out->data_words = malloc(DATA_BYTES);
    out->before = malloc(DATA_BYTES);
    out->shared_words = malloc(TENSOR_SHARED_BYTES + 4);
    return out->data_words && out->before && out->shared_words && d->cuInit(0) == CUDA_SUCCESS &&
           d->cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
           d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) ==
               CUDA_SUCCESS &&
           d->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) ==
               CUDA_SUCCESS &&
           (!out->cc || out->cc == 10 * major + minor) &&
           d->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
           d->cuCtxSetCurrent(context) == CUDA_SUCCESS &&
           d->cuMemAlloc_v2(&out->data, DATA_BYTES) == CUDA_SUCCESS &&
           d->cuMemAlloc_v2(&out->source, TENSOR_SHARED_BYTES) == CUDA_SUCCESS &&
           d->cuMemAlloc_v2(&out->out, TENSOR_SHARED_BYTES + 4) == CUDA_SUCCESS;
}

static CUresult encode(const struct device *device, const struct tensor_case *c, CUtensorMap *out)
{
    const struct clab_driver *d = device->driver;
    void *address = (void *)(uintptr_t)(device->data + TENSOR_AT); /* a device address */
    memset(out, 0, sizeof *out);
    if (c->wide) {
        return d->cuTensorMapEncodeIm2colWide(
            out, (CUtensorMapDataType)c->type, c->map_rank, address, c->dims, c->strides, c->lower[0],
            c->upper[0], c->channels, c->pixels, c->steps, (CUtensorMapInterleave)c->interleave,
            c->wide == 1 ? CU_TENSOR_MAP_IM2COL_WIDE_MODE_W : CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
            (CUtensorMapSwizzle)c->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            (CUtensorMapFloatOOBfill)c->fill);
    }
    const CUresult result =
        c->map_im2col
            ? d->cuTensorMapEncodeIm2col(out, (CUtensorMapDataType)c->type, c->map_rank, address, c->dims,
                                         c->strides, c->lower, c->upper, c->channels, c->pixels, c->steps,
                                         (CUtensorMapInterleave)c->interleave, (CUtensorMapSwizzle)c->swizzle,
                                         CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)c->fill)
            : d->cuTensorMapEncodeTiled(out, (CUtensorMapDataType)c->type, c->map_rank, address, c->dims,
                                        c->strides, c->box, c->steps, (CUtensorMapInterleave)c->interleave,
                                        (CUtensorMapSwizzle)c->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                        (CUtensorMapFloatOOBfill)c->fill);
    for (unsigned i = 0; i < c->n_pokes; i++) {
        memcpy((unsigned char *)out + 4 * (c->poke_at[i] & 31), &c->poke_value[i], 4);
    }
    return result;
}

static bool fill(const struct device *device, const struct tensor_case *c)
{
    const struct clab_driver *d = device->driver;
    for (uint32_t i = 0; i < DATA_WORDS; i++) {
        const uint32_t word = i - TENSOR_AT / 4;
        device->before[i] =
            c->verb == TENSOR_REDUCE ? pattern(c->type, word & 0xffff) : UINT32_C(0x500000) + word;
    }
    for (uint32_t i = 0; i < SHARED_WORDS; i++) {
        device->shared_words[i] = c->verb == TENSOR_LOAD     ? UNTOUCHED
                                  : c->verb == TENSOR_REDUCE ? pattern(c->type, i + 5)
                                                             : UINT32_C(0xa0000) + i;
    }
    return d->cuMemcpyHtoD_v2(device->data, device->before, DATA_BYTES) == CUDA_SUCCESS &&
           d->cuMemcpyHtoD_v2(device->source, device->shared_words, TENSOR_SHARED_BYTES) == CUDA_SUCCESS;
}

/* --- results */

struct writer {
    char *text;
    size_t length;
};

static void run_append(struct writer *w, int first, int last, uint32_t value, uint32_t step)
{
    const size_t room = RESULT_BYTES - w->length;
    int n;
    if (first == last) {
        n = snprintf(w->text + w->length, room, " %d=%x", first, (unsigned)value);
    } else {
        n = snprintf(w->text + w->length, room, " %d..%d=%x%s", first, last, (unsigned)value,
                     step ? "+" : "");
    }
    w->length += (size_t)n < room ? (size_t)n : room - 1;
}

/* Those of `n` words that differ from `before` (NULL: from UNTOUCHED), numbered from `origin`. */
static void words_append(struct writer *w, const uint32_t *words, const uint32_t *before, int n, int origin)
{
#define CHANGED(i) (words[i] != (before ? before[i] : UNTOUCHED))
    for (int i = 0; i < n; i++) {
        if (!CHANGED(i)) {
            continue;
        }
        const uint32_t step = i + 1 < n && CHANGED(i + 1) && words[i + 1] == words[i] + 1;
        int last = i;
        while (last + 1 < n && CHANGED(last + 1) && words[last + 1] == words[last] + step) {
            last++;
        }
        run_append(w, i + origin, last + origin, words[i], step);
        i = last;
    }
#undef CHANGED
}

/* The case's result into `out` (RESULT_BYTES). False when the context is spoilt. */
static bool case_run(const struct device *device, const struct tensor_case *c, char *out)
{
    const struct clab_driver *d = device->driver;
    struct writer w = {out, 0};
    CUtensorMap map;
    CUmodule module;
    CUfunction function;
    CUresult result = encode(device, c, &map);
    if (result != CUDA_SUCCESS) {
        snprintf(out, RESULT_BYTES, "encode %d", (int)result);
        return true;
    }
    char *ptx = tensor_case_ptx(c);
    result = ptx ? d->cuModuleLoadData(&module, ptx) : CUDA_ERROR_OUT_OF_MEMORY;
    free(ptx);
    if (result != CUDA_SUCCESS || d->cuModuleGetFunction(&function, module, "copy") != CUDA_SUCCESS ||
        !fill(device, c)) {
        snprintf(out, RESULT_BYTES, "load %d", (int)result);
        return true;
    }
    CUdeviceptr source = device->source, shared = device->out;
    int at[TENSOR_MAX_RANK], off[3];
    memcpy(at, c->at, sizeof at);
    memcpy(off, c->off, sizeof off);
    uint32_t bytes = tensor_box_bytes(c), to = c->to_bytes;
    void *params[] = {&source, &shared, at, off, &bytes, &to, &map};
    result = d->cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
    if (result != CUDA_SUCCESS) {
        snprintf(out, RESULT_BYTES, "launch %d", (int)result);
        return false;
    }
    if ((result = d->cuCtxSynchronize()) != CUDA_SUCCESS) {
        snprintf(out, RESULT_BYTES, "error %d", (int)result);
        return false;
    }
    d->cuMemcpyDtoH_v2(device->shared_words, device->out, TENSOR_SHARED_BYTES + 4);
    d->cuMemcpyDtoH_v2(device->data_words, device->data, DATA_BYTES);
    d->cuModuleUnload(module);
    if (c->verb == TENSOR_LOAD) {
        words_append(&w, device->shared_words, NULL, SHARED_WORDS, -(int)(c->to_bytes / 4));
    } else {
        words_append(&w, device->data_words, device->before, DATA_WORDS, -(int)(TENSOR_AT / 4));
    }
    if (w.length == 0) {
        w.length = (size_t)snprintf(out, RESULT_BYTES, "nothing");
    }
    if (!device->shared_words[SHARED_WORDS]) {
        snprintf(out + w.length, RESULT_BYTES - w.length, " !done");
    }
    return true;
}

/* --- processes */

struct work {
    const char *library;
    int cc;
    const struct tensor_case *cases;
    size_t first, last; /* [first, last) */
    char (*results)[RESULT_BYTES];
};

static int worker(const struct work *work, size_t from)
{
    struct device device = {.cc = work->cc};
    alarm(TIME_LIMIT_S);
    if (!device_open(work->library, &device)) {
        return STATUS_NONE;
    }
    for (size_t i = from; i < work->last; i++) {
        alarm(TIME_LIMIT_S);
        if (!case_run(&device, &work->cases[i], work->results[i])) {
            return STATUS_BROKEN;
        }
    }
    return 0;
}

/* All of `work`, in as many processes one after another as it takes. */
static int supervise(const struct work *work)
{
    size_t from = work->first;
    while (from < work->last) {
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(worker(work, from));
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            return 1;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NONE) {
            return STATUS_NONE;
        }
        while (from < work->last && work->results[from][0]) {
            from++;
        }
        if (from < work->last) {
            const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS_BROKEN) {
                snprintf(work->results[from++], RESULT_BYTES, hung ? "timeout" : "died");
            }
        }
    }
    return 0;
}

static void wake(int signal)
{
    (void)signal;
}

/* `seconds` 0: as long as it takes. */
static int run_all(struct work all, unsigned jobs, unsigned seconds)
{
    const size_t n = all.last;
    int worst = 0;
    unsigned started = 0;
    pid_t children[MAX_JOBS];
    const struct sigaction at_alarm = {.sa_handler = wake}; /* wait is interrupted */
    for (unsigned job = 0; job < jobs; job++, started++) {
        struct work part = all;
        part.first = n * job / jobs;
        part.last = n * (job + 1) / jobs;
        const pid_t child = fork();
        if (child == 0) {
            _exit(supervise(&part));
        }
        if (child < 0) {
            worst = 1;
            break;
        }
        children[job] = child;
    }
    sigaction(SIGALRM, &at_alarm, NULL);
    alarm(seconds);
    for (unsigned job = 0; job < started; job++) {
        int status = 0;
        if (waitpid(children[job], &status, 0) < 0) { /* time is up */
            for (unsigned left = job; left < started; left++) {
                kill(children[left], SIGKILL);
            }
            waitpid(children[job], &status, 0);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) > worst) {
            worst = WEXITSTATUS(status);
        }
    }
    alarm(0);
    for (size_t i = 0; i < n; i++) {
        if (!all.results[i][0]) {
            snprintf(all.results[i], RESULT_BYTES, "not run");
        }
    }
    return worst;
}

/* --- the record */

/* Compares with the file's lines, in any order. Returns how many cases differ or are not in it. */
static size_t check(const char *path, const struct tensor_case *cases, size_t n,
                    char (*results)[RESULT_BYTES])
{
    size_t wrong = 0, same = 0;
    char line[512 + RESULT_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t next = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *bar = strstr(line, " | ");
        if (line[0] == '#' || !bar) {
            continue;
        }
        *bar = '\0';
        size_t i = next;
        for (size_t tries = 0; tries < n && strcmp(cases[i].text, line); tries++) {
            i = (i + 1) % n;
        }
        if (strcmp(cases[i].text, line)) {
            continue; /* of a case that is no longer there */
        }
        next = (i + 1) % n;
        const char *result = results[i][0] == ' ' ? results[i] + 1 : results[i];
        if (strcmp(result, bar + 3)) {
            wrong++;
            printf("%s\n  got:    %s\n  record: %s\n", line, result, bar + 3);
        } else {
            same++;
        }
    }
    fclose(file);
    printf("%zu as recorded, %zu differ, %zu not in the record\n", same, wrong, n - same - wrong);
    return wrong + (n - same - wrong);
}

static bool record(const char *path, const struct tensor_case *cases, size_t n, char (*results)[RESULT_BYTES])
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        fprintf(file, "%s | %s\n", cases[i].text, results[i][0] == ' ' ? results[i] + 1 : results[i]);
    }
    return fclose(file) == 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: tensor_copies [--driver LIBCUDA] [--jobs N] [--seconds N] [--cc N] [--record FILE | "
            "--check FILE] CASES\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct work work = {0};
    const char *to = NULL, *against = NULL, *path = NULL;
    unsigned jobs = 1, seconds = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            path = argv[i];
        } else if (i + 1 == argc) {
            return usage();
        } else if (!strcmp(argv[i], "--driver")) {
            work.library = argv[++i];
        } else if (!strcmp(argv[i], "--jobs")) {
            jobs = (unsigned)atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--cc")) {
            work.cc = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--seconds")) {
            seconds = (unsigned)atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--record")) {
            to = argv[++i];
        } else if (!strcmp(argv[i], "--check")) {
            against = argv[++i];
        } else {
            return usage();
        }
    }
    if (!path || jobs == 0 || jobs > MAX_JOBS) {
        return usage();
    }
    struct tensor_case *cases;
    const char *wrong = tensor_cases_read(path, &cases, &work.last);
    if (wrong) {
        fprintf(stderr, "tensor_copies: %s\n", wrong);
        return 2;
    }
    work.cases = cases;
    work.results =
        mmap(NULL, (work.last + 1) * RESULT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (work.results == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    int status = run_all(work, jobs, seconds);
    if (status == STATUS_NONE) {
        status = 77;
    } else if (to) {
        status |= !record(to, cases, work.last, work.results);
    } else if (against) {
        status |= check(against, cases, work.last, work.results) != 0;
    } else {
        status |= !record("/dev/stdout", cases, work.last, work.results);
    }
    munmap(work.results, (work.last + 1) * RESULT_BYTES);
    tensor_cases_free(cases, work.last);
    return status;
}
