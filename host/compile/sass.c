/* Runs a disassembler over a cubin (CUDA Binary Utilities 13.0, "nvdisasm", "cuobjdump"). The text is passed
   on as it is: reading it is the inspector's work. */
#include "compile/sass.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/str.h"
#include "base/temporary.h"
#include "compile/sha256.h"

#define LIMIT_MS 60000

/* Both programs write the text to standard output and complaints to standard error, a line or two. */
static clab_status run_program(const char *const *argv, char **out_text, struct clab_error *error)
{
    struct clab_process process;
    struct clab_str text = {0};
    char *line;
    size_t bytes;
    int status = 0, result;
    if (clab_process_start(&process, argv, NULL, true) != 0)
        return clab_error_set(error, CLAB_WORKER, "cannot start %s: %s", argv[0], strerror(errno));
    const uint64_t start = clab_now_ns();
    struct clab_line_reader reader = {.fd = process.from_fd};
    do {
        const uint64_t spent_ms = (clab_now_ns() - start) / 1000000;
        result = clab_line_read(&reader, spent_ms < LIMIT_MS ? (int)(LIMIT_MS - spent_ms) : 0, &line, &bytes);
        if (result == 1) {
            clab_str_add_bytes(&text, line, bytes);
            clab_str_add(&text, "\n");
        }
    } while (result == 1);
    clab_line_reader_free(&reader);
    if (result == -2 || clab_process_wait(&process, 5000, &status) != 1) {
        clab_process_kill(&process);
        clab_str_free(&text);
        return clab_error_set(error, CLAB_WORKER, "%s gave no answer within %d s", argv[0], LIMIT_MS / 1000);
    }
    char complaint[4096];
    ssize_t length = read(process.error_fd, complaint, sizeof complaint);
    clab_process_kill(&process);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        clab_str_free(&text);
        clab_error_set(error, CLAB_COMPILE, "%s could not disassemble the cubin (%s %d)", argv[0],
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        if (length > 0)
            clab_error_log(error, complaint, (size_t)length);
        return CLAB_COMPILE;
    }
    *out_text = clab_str_take(&text);
    return *out_text != NULL ? CLAB_OK
                             : clab_error_set(error, CLAB_NO_MEMORY, "no memory for the disassembly");
}

static clab_status disassemble(const struct clab_toolkit *toolkit, const struct clab_image *image, bool lines,
                               char **out_text, struct clab_error *error)
{
    const struct clab_part *nvdisasm = &toolkit->parts[CLAB_PART_NVDISASM];
    const struct clab_part *cuobjdump = &toolkit->parts[CLAB_PART_CUOBJDUMP];
    char path[4096];
    *out_text = NULL;
    if (image->kind != CLAB_IMAGE_CUBIN)
        return clab_error_set(error, CLAB_USAGE, "SASS is made of a cubin, not of %s",
                              clab_image_kind_name(image->kind));
    if (!nvdisasm->found && !cuobjdump->found) {
        clab_error_set(error, CLAB_NO_TOOLKIT, "no disassembler: neither nvdisasm nor cuobjdump was found");
        clab_error_remedy(error, "%s", nvdisasm->remedy);
        return CLAB_NO_TOOLKIT;
    }
    if (clab_temporary_file("sass", path, sizeof path) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                              clab_temporary_root(), strerror(errno));
    clab_status status = CLAB_OK;
    if (clab_file_write_quick(path, image->data, image->bytes) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", path, strerror(errno));
    const char *const with_lines[] = {nvdisasm->path, "-c", "-g", "-gi", "-gp", path, NULL};
    const char *const plain[] = {nvdisasm->path, "-c", path, NULL};
    const char *const with_cuobjdump[] = {cuobjdump->path, "-sass", path, NULL};
    if (status == CLAB_OK && lines && nvdisasm->found &&
        run_program(with_lines, out_text, NULL) == CLAB_OK) { /* options that an old nvdisasm may not know */
        (void)unlink(path);
        return CLAB_OK;
    }
    if (status == CLAB_OK)
        status = run_program(nvdisasm->found ? plain : with_cuobjdump, out_text, error);
    (void)unlink(path);
    return status;
}

clab_status clab_sass(const struct clab_toolkit *toolkit, const struct clab_image *image, char **out_text,
                      struct clab_error *error)
{
    return disassemble(toolkit, image, false, out_text, error);
}

/* The file of a disassembly in the cache: its folder as those of images, its name by content and program. Its
   first line is the checksum of the rest. */
static bool cache_path(const struct clab_toolkit *toolkit, const char *cache_dir,
                       const struct clab_image *image, char *path, size_t bytes)
{
    char identity[2][4400], key[65];
    if (cache_dir == NULL || cache_dir[0] == '\0' || image->sha256[0] == '\0')
        return false;
    clab_toolkit_identity(toolkit, CLAB_PART_NVDISASM, identity[0], sizeof identity[0]);
    clab_toolkit_identity(toolkit, CLAB_PART_CUOBJDUMP, identity[1], sizeof identity[1]);
    struct clab_str text = {0};
    clab_str_addf(&text, "sass with lines\n%s\n%s\n%s\n", image->sha256, identity[0], identity[1]);
    if (!text.failed)
        clab_sha256_of(text.text, text.bytes, key);
    const int length = text.failed ? -1 : snprintf(path, bytes, "%s/%.2s/%s.sass", cache_dir, key, key);
    clab_str_free(&text);
    return length > 0 && (size_t)length < bytes;
}

#define SUM_BYTES 65 /* 64 hex digits and a newline */

clab_status clab_sass_lines(const struct clab_toolkit *toolkit, const char *cache_dir,
                            const struct clab_image *image, char **out_text, struct clab_error *error)
{
    char path[4400], sum[65];
    size_t bytes;
    const bool caching = cache_path(toolkit, cache_dir, image, path, sizeof path);
    char *kept = caching ? clab_file_read(path, (size_t)1 << 30, &bytes) : NULL;
    if (kept != NULL && bytes > SUM_BYTES) {
        clab_sha256_of(kept + SUM_BYTES, bytes - SUM_BYTES, sum);
        if (memcmp(kept, sum, 64) == 0) {
            memmove(kept, kept + SUM_BYTES, bytes - SUM_BYTES + 1);
            *out_text = kept;
            return CLAB_OK;
        }
    }
    free(kept);
    clab_status status = disassemble(toolkit, image, true, out_text, error);
    if (status != CLAB_OK || !caching)
        return status;
    struct clab_str text = {0};
    clab_sha256_of(*out_text, strlen(*out_text), sum);
    clab_str_addf(&text, "%s\n", sum);
    clab_str_add(&text, *out_text);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    (void)mkdir(path, 0777); /* a failure shows in the write, and costs only speed */
    *slash = '/';
    if (!text.failed)
        (void)clab_file_write_quick(path, text.text, text.bytes);
    clab_str_free(&text);
    return CLAB_OK;
}
