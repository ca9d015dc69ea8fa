/* Where the CUDA parts are. A place is a folder laid out like a toolkit (lib64 or lib, include, bin;
   .toolkit, which tools/setup fills from the pip wheels, is one); each part is taken from the first place
   that has it, so that a toolkit without a disassembler still gives its compiler. */
#include "compile/toolkit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/str.h"
#include "driver/nvjitlink.h"
#include "driver/nvrtc.h"

static const struct clab_part blank_parts[CLAB_PART_COUNT] = {
    [CLAB_PART_NVRTC] = {.name = "NVRTC",
                         .use = "compiles CUDA C++",
                         .remedy =
                             "tools/setup fetches it; or install a CUDA toolkit, or pip's nvidia-cuda-nvrtc"},
    [CLAB_PART_NVJITLINK] =
        {.name = "nvJitLink",
         .use = "assembles PTX to a cubin without a GPU",
         .remedy = "tools/setup fetches it; or install a CUDA toolkit, or pip's nvidia-nvjitlink"},
    [CLAB_PART_CUDA_INCLUDE] = {.name = "CUDA headers",
                                .use = "cooperative_groups.h and the like, for kernels",
                                .remedy = "tools/setup fetches them; or install a CUDA toolkit, or pip's "
                                          "nvidia-cuda-runtime"},
    [CLAB_PART_CCCL_INCLUDE] = {.name = "CCCL headers",
                                .use = "cuda/std, cuda/barrier, cuda/ptx, for kernels",
                                .remedy = "tools/setup fetches them; or install a CUDA toolkit, or pip's "
                                          "nvidia-cuda-cccl"},
    [CLAB_PART_NVDISASM] = {.name = "nvdisasm",
                            .use = "shows SASS",
                            .remedy = "tools/setup fetches it; or install a CUDA toolkit, or pip's "
                                      "nvidia-cuda-nvdisasm"},
    [CLAB_PART_CUOBJDUMP] = {.name = "cuobjdump",
                             .use = "lists what is in a fatbin",
                             .remedy = "tools/setup fetches it; or install a CUDA toolkit, or pip's "
                                       "nvidia-cuda-cuobjdump"},
    [CLAB_PART_PTXAS] = {.name = "ptxas",
                         .use = "checks PTX in the tests",
                         .remedy = "install a CUDA toolkit, or pip's nvidia-cuda-nvcc"},
};

/* Patterns of a part below a place; the first that exists wins. */
static const char *const patterns[CLAB_PART_COUNT][6] = {
    [CLAB_PART_NVRTC] = {"lib64/libnvrtc.so.1[2-9]", "lib/libnvrtc.so.1[2-9]",
                         "lib/*-linux-gnu/libnvrtc.so.1[2-9]", "targets/*-linux/lib/libnvrtc.so.1[2-9]"},
    [CLAB_PART_NVJITLINK] = {"lib64/libnvJitLink.so.1[2-9]", "lib/libnvJitLink.so.1[2-9]",
                             "lib/*-linux-gnu/libnvJitLink.so.1[2-9]",
                             "targets/*-linux/lib/libnvJitLink.so.1[2-9]"},
    [CLAB_PART_CUDA_INCLUDE] = {"include/cooperative_groups.h",
                                "targets/*-linux/include/cooperative_groups.h"},
    [CLAB_PART_CCCL_INCLUDE] = {"include/cccl/cuda/std/version",
                                "targets/*-linux/include/cccl/cuda/std/version", "include/cuda/std/version",
                                "targets/*-linux/include/cuda/std/version"},
    [CLAB_PART_NVDISASM] = {"bin/nvdisasm"},
    [CLAB_PART_CUOBJDUMP] = {"bin/cuobjdump"},
    [CLAB_PART_PTXAS] = {"bin/ptxas"},
};

static bool is_program(enum clab_part_id id)
{
    return id == CLAB_PART_NVDISASM || id == CLAB_PART_CUOBJDUMP || id == CLAB_PART_PTXAS;
}

static bool is_folder(enum clab_part_id id)
{
    return id == CLAB_PART_CUDA_INCLUDE || id == CLAB_PART_CCCL_INCLUDE;
}

static bool usable(enum clab_part_id id, const char *path)
{
    return access(path, is_program(id) ? X_OK : R_OK) == 0;
}

static void take(struct clab_part *part, enum clab_part_id id, const char *path, const char *origin)
{
    char *full = realpath(path, NULL);
    const char *text = full != NULL && !is_folder(id) ? full : path;
    /* The include folder is the file's ancestor: cut off what the pattern says below it. */
    snprintf(part->path, sizeof part->path, "%s", text);
    const char *below = id == CLAB_PART_CUDA_INCLUDE   ? "/cooperative_groups.h"
                        : id == CLAB_PART_CCCL_INCLUDE ? "/cuda/std/version"
                                                       : "";
    size_t cut = strlen(below);
    if (strlen(part->path) > cut)
        part->path[strlen(part->path) - cut] = '\0';
    snprintf(part->origin, sizeof part->origin, "%s", origin);
    part->found = true;
    free(full);
}

/* Takes from the place what is still missing. */
static void look_in(struct clab_toolkit *toolkit, const char *place, const char *origin)
{
    if (place == NULL || place[0] == '\0' || access(place, X_OK) != 0)
        return;
    for (int id = 0; id < CLAB_PART_COUNT; id++) {
        struct clab_part *part = &toolkit->parts[id];
        for (size_t i = 0; i < 6 && patterns[id][i] != NULL && !part->found; i++) {
            char pattern[PATH_MAX + 64];
            snprintf(pattern, sizeof pattern, "%s/%s", place, patterns[id][i]);
            glob_t found;
            if (glob(pattern, 0, NULL, &found) != 0)
                continue;
            /* The last is the newest: libnvrtc.so.13 sorts behind .12. */
            for (size_t k = found.gl_pathc; k-- > 0 && !part->found;)
                if (usable((enum clab_part_id)id, found.gl_pathv[k]))
                    take(part, (enum clab_part_id)id, found.gl_pathv[k], origin);
            globfree(&found);
        }
    }
}

static void look_in_toolkit(struct clab_toolkit *toolkit, const char *place)
{
    char *full = realpath(place, NULL);
    if (full != NULL)
        look_in(toolkit, full, ".toolkit");
    free(full);
}

/* Seen from the program's folder: the source tree's .toolkit (build/<preset>/host/cli), the installed tree's.
 */
static void look_beside(struct clab_toolkit *toolkit)
{
    static const char *const ways[] = {"../../../../.toolkit", "../lib/clusterlab/toolkit", "../.toolkit"};
    char program[PATH_MAX], place[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        int folder = (int)(strrchr(program, '/') - program);
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            snprintf(place, sizeof place, "%.*s/%s", folder, program, ways[i]);
            look_in_toolkit(toolkit, place);
        }
    }
    look_in_toolkit(toolkit, ".toolkit");
}

static void look_in_path(struct clab_part *part, enum clab_part_id id)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0' && !part->found) {
        size_t length = strcspn(path, ":");
        char candidate[PATH_MAX];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, part->name);
        if (length > 0 && usable(id, candidate))
            take(part, id, candidate, "PATH");
        path += length + (path[length] == ':');
    }
}

/* The system's loader knows more places than we do (ld.so.conf, LD_LIBRARY_PATH); asking it means loading, so
   this comes last and only for what is still missing. */
static void ask_the_loader(struct clab_part *part, enum clab_part_id id)
{
    static const char *const names[][3] = {
        [CLAB_PART_NVRTC] = {"libnvrtc.so.13", "libnvrtc.so.12"},
        [CLAB_PART_NVJITLINK] = {"libnvJitLink.so.13", "libnvJitLink.so.12"}};
    for (size_t i = 0; i < 3 && names[id][i] != NULL && !part->found; i++) {
        void *handle = dlopen(names[id][i], RTLD_LAZY | RTLD_LOCAL);
        struct link_map *map;
        if (handle != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
            take(part, id, map->l_name, "system");
        if (handle != NULL)
            dlclose(handle);
    }
}

void clab_toolkit_find(struct clab_toolkit *out)
{
    memcpy(out->parts, blank_parts, sizeof blank_parts);
    const char *only = getenv("CLUSTERLAB_TOOLKIT");
    if (only != NULL && only[0] != '\0') {
        look_in(out, only, "$CLUSTERLAB_TOOLKIT");
        return;
    }
    look_in(out, getenv("CUDA_HOME"), "$CUDA_HOME");
    look_in(out, getenv("CUDA_PATH"), "$CUDA_PATH");
    look_beside(out);
    look_in(out, "/usr/local/cuda", "/usr/local/cuda");
    glob_t others;
    if (glob("/usr/local/cuda-[1-9]*", 0, NULL, &others) == 0) {
        for (size_t i = others.gl_pathc; i-- > 0;)
            look_in(out, others.gl_pathv[i], "/usr/local/cuda-*");
        globfree(&others);
    }
    look_in(out, "/opt/cuda", "/opt/cuda");
    look_in(out, "/usr/lib/nvidia-cuda-toolkit", "system");
    look_in(out, "/usr", "system");
    for (int id = 0; id < CLAB_PART_COUNT; id++) {
        if (out->parts[id].found)
            continue;
        if (is_program((enum clab_part_id)id))
            look_in_path(&out->parts[id], (enum clab_part_id)id);
        else if (!is_folder((enum clab_part_id)id))
            ask_the_loader(&out->parts[id], (enum clab_part_id)id);
    }
}

/* The first match of "V<digits and dots>" or "release <...>" in a program's --version. */
static void program_version(const char *path, char *text, size_t bytes)
{
    const char *const argv[] = {path, "--version", NULL};
    struct clab_process process;
    if (clab_process_start(&process, argv, NULL, false) != 0)
        return;
    struct clab_line_reader reader = {.fd = process.from_fd};
    char *line;
    size_t length;
    while (clab_line_read(&reader, 2000, &line, &length) == 1) {
        const char *at = strstr(line, ", V");
        if (at != NULL)
            snprintf(text, bytes, "%.*s", (int)strspn(at + 3, "0123456789."), at + 3);
    }
    clab_line_reader_free(&reader);
    clab_process_kill(&process);
}

/* The value of "#define NAME value" in a header. */
static long header_define(const char *path, const char *name)
{
    size_t length;
    char *text = clab_file_read(path, (size_t)16 << 20, &length);
    char pattern[64];
    snprintf(pattern, sizeof pattern, "#define %s ", name);
    const char *at = text != NULL ? strstr(text, pattern) : NULL;
    long value = at != NULL ? strtol(at + strlen(pattern), NULL, 10) : 0;
    free(text);
    return value;
}

clab_status clab_toolkit_version(const struct clab_toolkit *toolkit, enum clab_part_id id, char *text,
                                 size_t bytes, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    const struct clab_part *part = &toolkit->parts[id];
    char path[PATH_MAX + 64];
    long version = 0;
    text[0] = '\0';
    if (!part->found)
        return CLAB_OK;
    if (is_program(id)) {
        program_version(part->path, text, bytes);
        return CLAB_OK;
    }
    if (id == CLAB_PART_CUDA_INCLUDE) {
        snprintf(path, sizeof path, "%s/cuda.h", part->path);
        version = header_define(path, "CUDA_VERSION");
    } else if (id == CLAB_PART_CCCL_INCLUDE) {
        snprintf(path, sizeof path, "%s/cuda/std/__cccl/version.h", part->path);
        long cccl = header_define(path, "CCCL_VERSION");
        if (cccl != 0)
            snprintf(text, bytes, "%ld.%ld.%ld", cccl / 1000000, cccl / 1000 % 1000, cccl % 1000);
        return CLAB_OK;
    } else if (id == CLAB_PART_NVRTC) {
        struct clab_nvrtc *nvrtc = calloc(1, sizeof *nvrtc);
        if (nvrtc != NULL && (status = clab_nvrtc_load(part->path, nvrtc, error)) == CLAB_OK)
            version = nvrtc->version;
        free(nvrtc);
    } else {
        struct clab_nvjitlink *link = calloc(1, sizeof *link);
        if (link != NULL && (status = clab_nvjitlink_load(part->path, link, error)) == CLAB_OK)
            version = link->version;
        free(link);
    }
    if (version != 0)
        snprintf(text, bytes, "%ld.%ld", version / 1000, version % 1000 / 10);
    return status;
}

void clab_toolkit_identity(const struct clab_toolkit *toolkit, enum clab_part_id id, char *text, size_t bytes)
{
    const struct clab_part *part = &toolkit->parts[id];
    struct stat info;
    char probe[PATH_MAX + 64];
    text[0] = '\0';
    if (!part->found)
        return;
    snprintf(probe, sizeof probe, "%s%s", part->path,
             id == CLAB_PART_CUDA_INCLUDE   ? "/cuda.h"
             : id == CLAB_PART_CCCL_INCLUDE ? "/cuda/std/__cccl/version.h"
                                            : "");
    if (stat(probe, &info) == 0)
        snprintf(text, bytes, "%s %lld %lld.%09ld", part->path, (long long)info.st_size,
                 (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    else
        snprintf(text, bytes, "%s", part->path);
}
