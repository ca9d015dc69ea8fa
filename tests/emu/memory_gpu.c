/* Runs memory/FILE.ptx (memory_file.h) on a GPU, each file in a process of its own, and compares with what
   the file expects of an H200. Usage: memory_gpu [--driver LIBCUDA] FOLDER [PART-OF-A-NAME]. A file whose
   device the GPU is not is skipped, and said so. With --dump after the folder's argument, words of out that
   are not 0 are printed. Exit status: 0 all held, 1 not, 77 no GPU. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/call.h"
#include "driver/driver.h"
#include "memory_file.h"

enum { PASSED, FAILED, SKIPPED, NO_GPU };

#define TIME_LIMIT_S 20

struct gpu {
    const struct clab_driver *driver;
    CUmodule module;
    CUfunction function;
    CUdeviceptr in, out;
};

static bool dump;

static int no_gpu(const char *what, CUresult result)
{
    printf("no GPU: %s gives %d\n", what, (int)result);
    return NO_GPU;
}

static int gpu_open(const char *library, const struct memory_file *file, struct gpu *out)
{
    struct clab_error error = {0};
    CUdevice device;
    CUcontext context;
    int major = 0, minor = 0;
    if (clab_driver_load(library, &out->driver, &error) != CLAB_OK) {
        printf("no GPU: %s\n", error.message);
        return NO_GPU;
    }
    const struct clab_driver *d = out->driver;
    CUresult result = d->cuInit(0);
    if (result != CUDA_SUCCESS || (result = d->cuDeviceGet(&device, 0)) != CUDA_SUCCESS) {
        return no_gpu("cuInit or cuDeviceGet", result);
    }
    d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    d->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (10 * major + minor < atoi(file->device + 3)) {
        printf("skipped, wants %s\n", file->device);
        return SKIPPED;
    }
    if ((result = d->cuDevicePrimaryCtxRetain(&context, device)) != CUDA_SUCCESS ||
        (result = d->cuCtxSetCurrent(context)) != CUDA_SUCCESS) {
        return no_gpu("cuDevicePrimaryCtxRetain", result);
    }
    return PASSED;
}

static bool gpu_load(struct gpu *gpu, const struct memory_file *file, const char *entry)
{
    const struct clab_driver *d = gpu->driver;
    static uint32_t words[MEMORY_WORDS];
    for (uint32_t i = 0; i < MEMORY_WORDS; i++) {
        words[i] = i;
    }
    CUresult result;
    if ((result = d->cuModuleLoadData(&gpu->module, file->text)) != CUDA_SUCCESS ||
        (result = d->cuModuleGetFunction(&gpu->function, gpu->module, entry)) != CUDA_SUCCESS ||
        (result = d->cuMemAlloc_v2(&gpu->in, sizeof words)) != CUDA_SUCCESS ||
        (result = d->cuMemAlloc_v2(&gpu->out, sizeof words)) != CUDA_SUCCESS ||
        (result = d->cuMemcpyHtoD_v2(gpu->in, words, sizeof words)) != CUDA_SUCCESS ||
        (result = d->cuMemsetD8_v2(gpu->out, 0, sizeof words)) != CUDA_SUCCESS) {
        printf("cannot be loaded: %s\n", clab_call_name(d, result));
        return false;
    }
    return true;
}

static CUresult gpu_launch(struct gpu *gpu, const struct memory_file *file)
{
    const struct clab_driver *d = gpu->driver;
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    cluster.value.clusterDim.x = file->cluster;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
    const CUlaunchConfig config = {
        .gridDimX = file->grid,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = file->block,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = file->shared_bytes,
        .attrs = &cluster,
        .numAttrs = file->clustered,
    };
    void *params[] = {&gpu->in, &gpu->out};
    const CUresult result = d->cuLaunchKernelEx(&config, gpu->function, params, NULL);
    return result != CUDA_SUCCESS ? result : d->cuCtxSynchronize();
}

/* The code that the file expects: an H200 line's, else FAULT's, else success. */
static void code_expected(const struct memory_file *file, char out_code[64])
{
    char line[256];
    snprintf(out_code, 64, "CUDA_SUCCESS");
    if (memory_file_line(file->text, "FAULT", line, sizeof line)) {
        sscanf(line, "%63s", out_code);
    }
    for (const char *at = file->text; (at = memory_file_line(at, "H200", line, sizeof line));) {
        if (strncmp(line, "out[", 4)) {
            sscanf(line, "%63s", out_code);
        }
    }
}

static void words_dump(const uint32_t *words)
{
    for (unsigned i = 0; i < MEMORY_WORDS; i++) {
        if (words[i]) {
            printf(" %u:%x", i, words[i]);
        }
    }
    printf("\n");
}

static int file_run(const char *library, const char *path, const char *entry)
{
    struct memory_file file;
    struct gpu gpu = {0};
    static uint32_t words[MEMORY_WORDS];
    char code[64], text[512];
    unsigned checks = 0;
    const char *wrong = memory_file_read(path, &file);
    if (wrong) {
        printf("%s\n", wrong);
        return FAILED;
    }
    const int opened = gpu_open(library, &file, &gpu);
    if (opened != PASSED) {
        return opened;
    }
    if (!gpu_load(&gpu, &file, entry)) {
        return FAILED;
    }
    const CUresult result = gpu_launch(&gpu, &file);
    code_expected(&file, code);
    if (strcmp(code, clab_call_name(gpu.driver, result))) {
        printf("%s, wanted %s\n", clab_call_name(gpu.driver, result), code);
        return FAILED;
    }
    if (result == CUDA_SUCCESS) {
        gpu.driver->cuMemcpyDtoH_v2(words, gpu.out, sizeof words);
        if (dump) {
            words_dump(words);
        }
        if (!memory_file_expects(&file, words, true, &checks, text, sizeof text)) {
            printf("%s\n", text);
            return FAILED;
        }
    }
    printf("%s, %u checks\n", code, checks);
    return PASSED;
}

/* In a process of its own: a fault spoils its context, and an undefined kernel may never end. */
static int file_fork(const char *library, const char *folder, const char *name)
{
    char path[4096], entry[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(entry, sizeof entry, "%.*s", (int)(strlen(name) - 4), name);
    printf("%s: ", entry);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(TIME_LIMIT_S);
        const int status = file_run(library, path, entry);
        fflush(stdout);
        _exit(status);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        char code[64] = "";
        struct memory_file file;
        if (!memory_file_read(path, &file)) {
            code_expected(&file, code);
            memory_file_free(&file);
        }
        const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        printf("%s\n", hung ? "HANGS" : "died");
        return hung && !strcmp(code, "HANGS") ? PASSED : FAILED;
    }
    return WEXITSTATUS(status);
}

static int is_test(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 4 && !strcmp(entry->d_name + length - 4, ".ptx");
}

int main(int argc, char **argv)
{
    const char *library = NULL, *folder = NULL, *part = "";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--driver") && i + 1 < argc) {
            library = argv[++i];
        } else if (!strcmp(argv[i], "--dump")) {
            dump = true;
        } else if (!folder) {
            folder = argv[i];
        } else {
            part = argv[i];
        }
    }
    struct dirent **entries;
    const int n = folder ? scandir(folder, &entries, is_test, alphasort) : -1;
    if (n <= 0) {
        fprintf(stderr, "usage: memory_gpu [--driver LIBCUDA] [--dump] FOLDER [PART-OF-A-NAME]\n");
        return 2;
    }
    int count[4] = {0};
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, part) && !count[NO_GPU]) {
            count[file_fork(library, folder, entries[i]->d_name) & 3]++;
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d passed, %d failed, %d skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
    return count[NO_GPU] ? 77 : count[FAILED] > 0;
}
