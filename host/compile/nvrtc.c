/* CUDA C++ to PTX or cubin with NVRTC (NVRTC 13.0 manual, "Supported Compile Options", "Accessing Lowered
   Names", "Precompiled Header Support"). An sm_ architecture gives PTX and a cubin in one compile, with no
   GPU; compute_ gives PTX only. The entry is always looked up as a name expression, which works for extern
   "C" names too.

   Precompiled headers (pch.c) can fail a compile, where the disk is full for example: then it is tried once
   more without. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/process.h"
#include "base/str.h"
#include "compile/cache.h"
#include "compile/compile.h"
#include "compile/host_headers.h"
#include "compile/pch.h"
#include "compile/ptxas_log.h"
#include "compile/share.h"
#include "compile/sha256.h"
#include "compile/target.h"
#include "driver/nvrtc.h"

struct job {
    const struct clab_toolkit *toolkit;
    const struct clab_compile_request *request;
    const struct clab_target *target;
    const char *text;
    struct clab_nvrtc *nvrtc;
    struct clab_arena arena;
    const char **options;
    size_t option_count, option_capacity;
    bool out_of_memory;
    bool host_headers;       /* NVRTC is given texts for host headers */
    bool own_unroll;         /* CCCL's unrolling is left as its header sets it */
    bool no_small_floats;    /* CCCL leaves types of 8 bits and less out */
    struct clab_str *opened; /* takes the names of the files that the front end opens; NULL: not asked */
};

static void add_option(struct job *job, const char *format, ...) CLAB_PRINTF(2, 3);
static void add_option(struct job *job, const char *format, ...)
{
    char text[8192];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const char **grown = clab_arena_grow(&job->arena, (void *)job->options, job->option_count,
                                         &job->option_capacity, sizeof *job->options);
    char *copy = clab_arena_strdup(&job->arena, text);
    if (grown == NULL || copy == NULL) {
        job->out_of_memory = true;
        return;
    }
    job->options = grown;
    job->options[job->option_count++] = copy;
}

static bool user_sets(const struct clab_compile_request *request, const char *option, const char *other)
{
    for (size_t i = 0; i < request->option_count; i++)
        if (strncmp(request->options[i], option, strlen(option)) == 0 ||
            strncmp(request->options[i], other, strlen(other)) == 0)
            return true;
    return false;
}

/* CCCL 3.0's cuda/std/__type_traits/type_list.h, which cooperative_groups.h and nearly all of libcu++
   include, unrolls its type lists 16 deep; the front end takes twice as long for each step of depth, 0.42 s
   of the 0.72 s that cooperative_groups.h costs. Under nvcc the header takes 10, but it does not count NVRTC
   as nvcc. The lists, and all that is made of them, are the same. Measured: NVRTC 13.0.88, CCCL 3.0.1,
   2026-11-30. */
#define UNROLL_LIMIT "_CCCL_META_UNROLL_LIMIT"

static bool says_unroll_limit(const struct job *job)
{
    const struct clab_compile_request *request = job->request;
    bool said = strstr(job->text, UNROLL_LIMIT) != NULL;
    for (size_t i = 0; i < request->define_count; i++)
        said = said || strstr(request->defines[i], UNROLL_LIMIT) != NULL;
    for (size_t i = 0; i < request->option_count; i++)
        said = said || strstr(request->options[i], UNROLL_LIMIT) != NULL;
    return said;
}

static void add_options(struct job *job, const struct clab_pch *pch)
{
    const struct clab_compile_request *request = job->request;
    const struct clab_part *cuda = &job->toolkit->parts[CLAB_PART_CUDA_INCLUDE];
    const struct clab_part *cccl = &job->toolkit->parts[CLAB_PART_CCCL_INCLUDE];
    bool to_cubin = request->want == CLAB_IMAGE_CUBIN;
    job->option_count = 0;
    add_option(job, "--gpu-architecture=%s_%s", to_cubin ? "sm" : "compute", job->target->name + 3);
    if (!user_sets(request, "--std", "-std"))
        add_option(job, "--std=c++17");
    if (request->line_info)
        add_option(job, "--generate-line-info");
    if (to_cubin)
        add_option(job, "--ptxas-options=-v");
    const char *slash = strrchr(request->source_path, '/');
    if (slash != NULL)
        add_option(job, "-I%.*s", (int)(slash - request->source_path), request->source_path);
    else
        add_option(job, "-I.");
    for (size_t i = 0; i < request->include_dir_count; i++)
        add_option(job, "-I%s", request->include_dirs[i]);
    if (cuda->found)
        add_option(job, "-I%s", cuda->path);
    if (cccl->found && strcmp(cccl->path, cuda->path) != 0)
        add_option(job, "-I%s", cccl->path);
    if (!job->own_unroll)
        add_option(job, "-D" UNROLL_LIMIT "=10");
    if (job->no_small_floats)
        add_option(job, "-DCCCL_DISABLE_NVFP8_SUPPORT");
    if (job->opened != NULL) {
        add_option(job, "-Xcudafe");
        add_option(job, "--trace_includes");
    }
    for (size_t i = 0; i < request->define_count; i++)
        add_option(job, "-D%s", request->defines[i]);
    for (size_t i = 0; i < request->option_count; i++)
        add_option(job, "%s", request->options[i]);
    if (pch->use == CLAB_PCH_USE)
        add_option(job, "--use-pch=%s", pch->path);
    else if (pch->use == CLAB_PCH_MAKE)
        add_option(job, "--create-pch=%s", pch->part);
}

/* A lowered name, as our own lists of entries have them, is no expression that NVRTC resolves. */
static bool is_symbol(const char *entry)
{
    return strncmp(entry, "_Z", 2) == 0;
}

struct headers {
    const char **names, **texts;
    int count;
};

/* Our host headers, less those that the source's folder or the request's have: NVRTC would take ours first.
   False when memory is out. */
static bool choose_headers(struct job *job, struct headers *out)
{
    const struct clab_compile_request *request = job->request;
    const char *const *names, *const *texts, *slash = strrchr(request->source_path, '/');
    const size_t count = clab_host_headers(&names, &texts);
    out->names = clab_arena_alloc(&job->arena, 2 * count * sizeof *out->names);
    if (out->names == NULL)
        return false;
    out->texts = out->names + count;
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        const int length = slash != NULL ? (int)(slash - request->source_path) : 1;
        snprintf(path, sizeof path, "%.*s/%s", length, slash != NULL ? request->source_path : ".", names[i]);
        bool is_there = access(path, F_OK) == 0;
        for (size_t j = 0; j < request->include_dir_count && !is_there; j++) {
            snprintf(path, sizeof path, "%s/%s", request->include_dirs[j], names[i]);
            is_there = access(path, F_OK) == 0;
        }
        if (is_there)
            continue;
        out->names[out->count] = names[i];
        out->texts[out->count++] = texts[i];
    }
    return true;
}

/* What NVRTC writes to standard error meanwhile becomes job->opened. */
static nvrtcResult compile_watched(struct job *job, nvrtcProgram program)
{
    clab_str_free(job->opened);
    const int held = memfd_create("opened", MFD_CLOEXEC), before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    const bool watched = held >= 0 && before >= 0 && dup2(held, STDERR_FILENO) >= 0;
    const nvrtcResult result = job->nvrtc->nvrtcCompileProgram(program, (int)job->option_count, job->options);
    if (watched) {
        fflush(stderr);
        dup2(before, STDERR_FILENO);
        char chunk[65536];
        ssize_t got;
        for (off_t at = 0; (got = pread(held, chunk, sizeof chunk, at)) > 0; at += got)
            clab_str_add_bytes(job->opened, chunk, (size_t)got);
    }
    if (held >= 0)
        close(held);
    if (before >= 0)
        close(before);
    return result;
}

/* Creates and compiles. *out_log is heap memory (NULL: no log). The program is the caller's to destroy. */
static nvrtcResult run(struct job *job, const char *entry, nvrtcProgram *out_program, char **out_log)
{
    const struct clab_nvrtc *nvrtc = job->nvrtc;
    *out_log = NULL;
    struct headers headers = {0};
    if (job->host_headers && !choose_headers(job, &headers))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    nvrtcResult result = nvrtc->nvrtcCreateProgram(out_program, job->text, job->request->source_path,
                                                   headers.count, headers.texts, headers.names);
    if (result != NVRTC_SUCCESS)
        return result;
    if (entry != NULL)
        result = nvrtc->nvrtcAddNameExpression(*out_program, entry);
    if (result == NVRTC_SUCCESS && job->opened != NULL)
        result = compile_watched(job, *out_program);
    else if (result == NVRTC_SUCCESS)
        result = nvrtc->nvrtcCompileProgram(*out_program, (int)job->option_count, job->options);
    size_t bytes = 0;
    if (nvrtc->nvrtcGetProgramLogSize(*out_program, &bytes) == NVRTC_SUCCESS && bytes > 1) {
        *out_log = calloc(1, bytes + 1);
        if (*out_log != NULL)
            nvrtc->nvrtcGetProgramLog(*out_program, *out_log);
    }
    return result;
}

#define HOST_CODE_REMEDY                                                                                   \
    "NVRTC compiles device code only: put the kernels into a file of their own, set host code apart with " \
    "#ifndef __CUDACC_RTC__, or give what `nvcc -ptx` makes of it"

/* What to do about an error that many will meet. */
static void add_remedy(const struct job *job, const char *log, struct clab_error *error)
{
    const struct clab_part *parts = job->toolkit->parts;
    const char *file = log != NULL ? strstr(log, "cannot open source file \"") : NULL;
    if (file != NULL) {
        char name[256];
        file += strlen("cannot open source file \"");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "\""), file);
        bool cccl = strncmp(name, "cuda/", 5) == 0 || strncmp(name, "cub/", 4) == 0 ||
                    strncmp(name, "nv/", 3) == 0 || strncmp(name, "thrust/", 7) == 0;
        bool cuda = strncmp(name, "cooperative_groups", 18) == 0 || strncmp(name, "cuda_", 5) == 0;
        static const char *const host[] = {"iostream", "vector",        "string",  "map",     "thread",
                                           "chrono",   "unordered_map", "mutex",   "fstream", "sstream",
                                           "random",   "stdexcept",     "iomanip", "time.h",  "unistd.h"};
        if (cccl && !parts[CLAB_PART_CCCL_INCLUDE].found)
            clab_error_remedy(error, "the CCCL headers are missing: %s",
                              parts[CLAB_PART_CCCL_INCLUDE].remedy);
        else if (cuda && !parts[CLAB_PART_CUDA_INCLUDE].found)
            clab_error_remedy(error, "the CUDA headers are missing: %s",
                              parts[CLAB_PART_CUDA_INCLUDE].remedy);
        else if (!cccl && !cuda)
            clab_error_remedy(error, "name the folder that has it: -I DIR");
        for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
            if (strcmp(name, host[i]) == 0)
                clab_error_remedy(error, HOST_CODE_REMEDY);
    }
    if (log != NULL && strstr(log, "host functions are not allowed in JIT mode") != NULL)
        clab_error_remedy(error, HOST_CODE_REMEDY);
    if (log != NULL && strstr(log, "invalid value for --gpu-architecture") != NULL)
        clab_error_remedy(error, "NVRTC %d.%d does not know %s", job->nvrtc->version / 1000,
                          job->nvrtc->version % 1000 / 10, job->target->name);
}

/* CUDA's own headers call a function of this name where the architecture is not one that they were written
   for; NVRTC goes along, and only the assembler finds it undefined. */
static clab_status refuse_gated(const struct job *job, const char *text, struct clab_error *error)
{
    const char *gate = text != NULL ? strstr(text, "_is_not_supported_before_SM_") : NULL;
    if (gate == NULL)
        return CLAB_OK;
    const char *start = gate, *end = gate;
    while (start > text && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
        start--;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    static const char prefix[] = "__cuda_ptx_";
    if (strncmp(start, prefix, sizeof prefix - 1) == 0)
        start += sizeof prefix - 1;
    /* "90a_SM_100a_SM_101a__" */
    const char *least = gate + strlen("_is_not_supported_before_SM_");
    struct clab_str targets = {0};
    while (least < end) {
        const size_t bytes = strcspn(least, "_");
        clab_str_addf(&targets, "%ssm_%.*s", targets.bytes > 0 ? ", " : "", (int)bytes, least);
        least += bytes + strspn(least + bytes, "_");
        least += strncmp(least, "SM_", 3) == 0 ? 3 : 0;
    }
    clab_error_set(error, CLAB_PTX_TARGET,
                   "the kernel uses cuda::ptx::%.*s, which CUDA's headers offer for %s%s, not for %s",
                   (int)(gate - start), start, targets.text != NULL ? targets.text : "others",
                   targets.text != NULL && strpbrk(targets.text, ",af") != NULL ? " only" : " and later",
                   job->target->name);
    clab_str_free(&targets);
    clab_error_at(error, job->request->source_path, 0, 0);
    return clab_error_remedy(error,
                             "compile for an architecture of that list (--arch), or write the instruction as "
                             "inline PTX");
}

/* Whether a failed compile is worth another try without precompiled headers: it was no plain error in the
 * source. */
static bool blames_pch(const char *log)
{
    struct clab_error probe = {0};
    bool plain = log != NULL && clab_nvrtc_log_error(log, &probe) && strstr(probe.message, "PCH") == NULL &&
                 strstr(probe.message, "precompiled") == NULL && strstr(probe.message, "write") == NULL;
    clab_error_clear(&probe);
    return !plain;
}

/* Whether what NVRTC said, of a failed compile or a good one, may come of our unrolling limit: the user's
   headers set another, or a list is so long that lists of 10 nest too deep. */
static bool blames_unroll_limit(nvrtcResult result, const char *log)
{
    return log != NULL &&
           (strstr(log, UNROLL_LIMIT) != NULL ||
            (result != NVRTC_SUCCESS && (strstr(log, "recursi") != NULL || strstr(log, "depth") != NULL)));
}

/* An entry that the source does not have: compiled once more without asking for it, to name those that it
 * has. */
static clab_status report_missing_entry(struct job *job, struct clab_error *error)
{
    const struct clab_compile_request *request = job->request;
    nvrtcProgram program = NULL;
    char *log = NULL, *ptx = NULL;
    size_t bytes = 0;
    struct clab_image image = {0};
    clab_status status = CLAB_NOT_FOUND;
    clab_error_set(error, status, "%s has no kernel '%s'", request->source_path, request->entry);
    if (run(job, NULL, &program, &log) == NVRTC_SUCCESS &&
        job->nvrtc->nvrtcGetPTXSize(program, &bytes) == NVRTC_SUCCESS &&
        (ptx = calloc(1, bytes + 1)) != NULL && job->nvrtc->nvrtcGetPTX(program, ptx) == NVRTC_SUCCESS &&
        clab_image_from_bytes(request->source_path, ptx, bytes, &image, error) == CLAB_OK) {
        /* A name that NVRTC did not resolve is none of the image's either. */
        status = clab_image_choose_entry(&image, request->entry, error);
        if (status == CLAB_OK)
            status = clab_error_set(error, CLAB_NOT_FOUND, "%s has no kernel '%s'", request->source_path,
                                    request->entry);
        else
            clab_error_remedy(
                error, "a C++ kernel is named as in the source, with its template arguments: ns::k<4>");
    }
    if (program != NULL)
        job->nvrtc->nvrtcDestroyProgram(&program);
    clab_image_free(&image);
    free(log);
    free(ptx);
    return status;
}

static void copy_error(struct clab_error *to, const struct clab_error *from)
{
    if (to != NULL)
        clab_error_copy(to, from);
}

/* What the assembler says of a line of the PTX, which nobody has seen: told of the source's line, else with
   the instruction. */
static void place_in_source(const struct job *job, nvrtcProgram program, struct clab_error *located)
{
    const struct clab_nvrtc *nvrtc = job->nvrtc;
    const char *path = job->request->source_path, *slash = strrchr(path, '/');
    char file[4096], message[sizeof located->message];
    uint32_t line = 0, column = 0;
    const uint32_t ptx_line = located->line;
    size_t bytes = 0;
    char *ptx = NULL;
    if (ptx_line == 0)
        return;
    if (nvrtc->nvrtcGetPTXSize(program, &bytes) == NVRTC_SUCCESS && (ptx = calloc(1, bytes + 1)) != NULL &&
        nvrtc->nvrtcGetPTX(program, ptx) != NVRTC_SUCCESS)
        ptx[0] = '\0';
    snprintf(message, sizeof message, "%.900s (line %u of its PTX)", located->message, ptx_line);
    snprintf(located->message, sizeof located->message, "%s", message);
    clab_error_at(located, path, 0, 0);
    if (ptx != NULL && clab_ptx_source_place(ptx, ptx_line, file, sizeof file, &line, &column)) {
        const char *name = strrchr(file, '/');
        const bool own = strcmp(name != NULL ? name + 1 : file, slash != NULL ? slash + 1 : path) == 0;
        clab_error_at(located, own ? path : file, line, own ? column : 0);
        if (own)
            clab_text_line(job->text, line, located->source_line, sizeof located->source_line);
    } else if (ptx != NULL) {
        clab_text_line(ptx, ptx_line, message, sizeof message);
        snprintf(located->instruction, sizeof located->instruction, "%.255s",
                 message + strspn(message, " \t"));
    }
    free(ptx);
}

/* Whether the first error is of the name that was asked for; lines about a precompiled header may come
 * before. */
static bool blames_name(const char *log)
{
    const char *line = strstr(log, "): error: ");
    while (line != NULL && line > log && line[-1] != '\n')
        line--;
    return line != NULL && strncmp(line, "__nv_name_map", 13) == 0;
}

static clab_status report_failure(struct job *job, nvrtcProgram program, nvrtcResult result, const char *log,
                                  struct clab_error *error)
{
    const struct clab_compile_request *request = job->request;
    if (log != NULL && request->entry != NULL && blames_name(log))
        return report_missing_entry(job, error);
    if (refuse_gated(job, log, error) != CLAB_OK) {
        clab_error_log(error, log, SIZE_MAX);
        return CLAB_PTX_TARGET;
    }
    struct clab_error located = {0};
    char *kept = log != NULL ? clab_compile_log_strip(log) : NULL;
    char *rest = NULL;
    if (log != NULL && clab_nvrtc_log_error(log, &located)) {
        rest = clab_log_rest(kept, &located);
        copy_error(error, &located);
    } else if (log != NULL && clab_ptxas_log_error(log, request->source_path, NULL, &located)) {
        rest = clab_log_rest(kept, &located);
        place_in_source(job, program, &located);
        copy_error(error, &located);
    } else if (log != NULL && log[0] != '\0') {
        clab_error_set(error, CLAB_COMPILE, "NVRTC: %.*s", (int)strcspn(log, "\n"), log);
        rest = kept != NULL ? strdup(kept) : NULL;
        clab_error_at(error, request->source_path, 0, 0);
    } else {
        clab_error_set(error, CLAB_COMPILE, "NVRTC could not compile %s", request->source_path);
    }
    clab_status status = located.status != CLAB_OK ? located.status : CLAB_COMPILE;
    clab_error_clear(&located);
    clab_error_native(error, "nvrtcCompileProgram", (int)result, job->nvrtc->nvrtcGetErrorString(result));
    clab_error_log(error, rest, SIZE_MAX);
    free(rest);
    free(kept);
    add_remedy(job, log, error);
    return status;
}

/* Fetches PTX and, if wanted, cubin, and fills the image. */
static clab_status collect(struct job *job, nvrtcProgram program, const char *log, struct clab_image *out,
                           struct clab_error *error)
{
    const struct clab_nvrtc *nvrtc = job->nvrtc;
    const struct clab_compile_request *request = job->request;
    size_t ptx_bytes = 0, cubin_bytes = 0;
    char *ptx = NULL, *cubin = NULL;
    clab_status status = CLAB_OK;
    nvrtcResult result = nvrtc->nvrtcGetPTXSize(program, &ptx_bytes);
    if (result == NVRTC_SUCCESS && (ptx = calloc(1, ptx_bytes + 1)) != NULL)
        result = nvrtc->nvrtcGetPTX(program, ptx);
    if (result == NVRTC_SUCCESS && request->want == CLAB_IMAGE_CUBIN) {
        result = nvrtc->nvrtcGetCUBINSize(program, &cubin_bytes);
        if (result == NVRTC_SUCCESS && (cubin = calloc(1, cubin_bytes + 1)) != NULL)
            result = nvrtc->nvrtcGetCUBIN(program, cubin);
    }
    if (result != NVRTC_SUCCESS)
        status = clab_error_set(error, CLAB_COMPILE, "NVRTC gave no image for %s: %s", request->source_path,
                                nvrtc->nvrtcGetErrorString(result));
    else if (ptx == NULL || (request->want == CLAB_IMAGE_CUBIN && cubin == NULL))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the image of %s", request->source_path);
    if (status == CLAB_OK)
        status = refuse_gated(job, ptx, error);
    if (status == CLAB_OK)
        status = clab_image_from_bytes(request->source_path, cubin != NULL ? cubin : ptx,
                                       cubin != NULL ? cubin_bytes : ptx_bytes, out, error);
    if (status == CLAB_OK) {
        snprintf(out->arch, sizeof out->arch, "%s", job->target->name);
        snprintf(out->compiler, sizeof out->compiler, "nvrtc %d.%d", nvrtc->version / 1000,
                 nvrtc->version % 1000 / 10);
        if (cubin != NULL) {
            out->ptx = ptx;
            out->ptx_bytes = strlen(ptx);
            ptx = NULL;
        }
        out->log = log != NULL ? clab_compile_log_strip(log) : NULL;
    }
    if (status == CLAB_OK && request->entry != NULL && is_symbol(request->entry)) {
        status = clab_image_choose_entry(out, request->entry, error);
    } else if (status == CLAB_OK && request->entry != NULL) {
        const char *lowered = NULL;
        result = nvrtc->nvrtcGetLoweredName(program, request->entry, &lowered);
        if (result != NVRTC_SUCCESS || lowered == NULL)
            status = clab_error_set(error, CLAB_NOT_FOUND, "%s has no kernel '%s': %s", request->source_path,
                                    request->entry, nvrtc->nvrtcGetErrorString(result));
        else
            status = clab_image_choose_entry(out, lowered, error);
        if (status == CLAB_OK) {
            free(out->entry);
            out->entry = strdup(request->entry);
        }
    }
    if (status == CLAB_OK && log != NULL)
        clab_ptxas_log_image_resources(log, out);
    free(ptx);
    free(cubin);
    if (status != CLAB_OK)
        clab_image_free(out);
    return status;
}

static clab_status compile(struct job *job, const struct clab_pch_plan *plan, struct clab_pch_store *store,
                           struct clab_image *out, struct clab_error *error)
{
    nvrtcProgram program = NULL;
    char *log = NULL;
    struct clab_pch pch = {0};
    if (store != NULL)
        clab_pch_choose(store, plan, job->nvrtc, job->host_headers ? 1 : 0, &pch);
    add_options(job, &pch);
    if (job->out_of_memory)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the options of %s",
                              job->request->source_path);
    uint64_t start = clab_now_ns();
    const char *entry = job->request->entry;
    nvrtcResult result = run(job, entry != NULL && !is_symbol(entry) ? entry : NULL, &program, &log);
    clab_status status;
    /* Only a source that names a host header is given ours: the others compile as they always did. */
    const bool wants_headers = result != NVRTC_SUCCESS && !job->host_headers && clab_host_header_missing(log);
    const bool wants_own = !job->own_unroll && blames_unroll_limit(result, log);
    if (pch.use == CLAB_PCH_MAKE)
        clab_pch_made(store, &pch,
                      result == NVRTC_SUCCESS &&
                          job->nvrtc->nvrtcGetPCHCreateStatus(program) == NVRTC_SUCCESS);
    const bool refused = store != NULL && clab_pch_refused(store, &pch, log);
    bool again = wants_headers || wants_own || refused ||
                 (result != NVRTC_SUCCESS && pch.use != CLAB_PCH_NONE && blames_pch(log));
    job->host_headers = job->host_headers || wants_headers;
    job->own_unroll = job->own_unroll || wants_own;
    if (again)
        status = CLAB_OK;
    else if (result != NVRTC_SUCCESS)
        status = report_failure(job, program, result, log, error);
    else
        status = collect(job, program, log, out, error);
    if (program != NULL)
        job->nvrtc->nvrtcDestroyProgram(&program);
    free(log);
    if (again)
        return compile(job, plan, wants_headers ? store : NULL, out, error);
    if (status == CLAB_OK)
        out->compile_ns = clab_now_ns() - start;
    return status;
}

clab_status clab_nvrtc_compile(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                               struct clab_image *out, struct clab_error *error)
{
    return clab_nvrtc_compile_pch(toolkit, request, NULL, NULL, out, error);
}

/* Loads NVRTC and takes the request's text, of its file unless it brings one (*out_read is then heap memory,
   the caller's). */
static clab_status begin(struct job *job, char **out_read, struct clab_error *error)
{
    const struct clab_compile_request *request = job->request;
    const struct clab_part *part = &job->toolkit->parts[CLAB_PART_NVRTC];
    if (!part->found) {
        clab_error_set(error, CLAB_NO_TOOLKIT, "%s needs NVRTC, which is not installed",
                       request->source_path);
        return clab_error_remedy(error, "%s", part->remedy);
    }
    if (request->arch == NULL)
        return clab_error_set(error, CLAB_USAGE, "%s needs an architecture to be compiled for",
                              request->source_path);
    clab_status status = clab_target_parse(request->arch, &job->target, error);
    if (status != CLAB_OK)
        return status;
    size_t bytes;
    if (job->text == NULL) {
        job->text = *out_read = clab_file_read(request->source_path, (size_t)64 << 20, &bytes);
        if (*out_read == NULL)
            return clab_error_set(error, CLAB_NOT_FOUND, "cannot read %s: %s", request->source_path,
                                  strerror(errno));
    }
    job->nvrtc = malloc(sizeof *job->nvrtc);
    if (job->nvrtc == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory to load NVRTC");
    job->own_unroll = says_unroll_limit(job);
    return clab_nvrtc_load(part->path, job->nvrtc, error);
}

static void end(struct job *job, char *read)
{
    clab_arena_free(&job->arena);
    free(job->nvrtc);
    free(read);
}

clab_status clab_nvrtc_compile_pch(const struct clab_toolkit *toolkit,
                                   const struct clab_compile_request *request,
                                   const struct clab_pch_plan *plan, struct clab_pch_store *store,
                                   struct clab_image *out, struct clab_error *error)
{
    struct job job = {.toolkit = toolkit, .request = request, .text = request->source_text};
    char *read = NULL;
    memset(out, 0, sizeof *out);
    clab_status status = begin(&job, &read, error);
    if (status == CLAB_OK)
        status = compile(&job, plan, request->no_pch ? NULL : store, out, error);
    end(&job, read);
    return status;
}

bool clab_nvrtc_compile_for_chip(const struct clab_toolkit *toolkit,
                                 const struct clab_compile_request *request, struct clab_image *out)
{
    const struct clab_target *target = request->arch != NULL ? clab_target_find(request->arch) : NULL;
    struct clab_compile_request plain = *request;
    struct clab_str opened = {0}, included = {0};
    struct clab_error error = {0};
    char *read = NULL, name[16];
    memset(out, 0, sizeof *out);
    if (target == NULL || !clab_share_possible(request))
        return false;
    snprintf(name, sizeof name, "sm_%d", target->number);
    plain.arch = name;
    plain.want = CLAB_IMAGE_PTX;
    struct job job = {.toolkit = toolkit, .request = &plain, .text = plain.source_text, .opened = &opened};
    const bool listed = clab_scan_includes(plain.source_path, plain.source_text, plain.include_dirs,
                                           plain.include_dir_count, &included);
    job.no_small_floats = listed && !included.failed && !clab_share_names_small_floats(&plain, included.text);
    bool good = begin(&job, &read, &error) == CLAB_OK && compile(&job, NULL, NULL, out, &error) == CLAB_OK;
    if (good && (opened.failed || opened.text == NULL ||
                 !clab_share_proved(toolkit, plain.source_text, opened.text, out->data))) {
        clab_image_free(out);
        good = false;
    }
    end(&job, read);
    clab_str_free(&opened);
    clab_str_free(&included);
    clab_error_clear(&error);
    return good;
}
