/* clusterlab compile: one file for several architectures, as PTX, cubin and SASS files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/cli.h"
#include "compile/sass.h"
#include "compile/target.h"

#define MAX_ARCHS 64

/* What --emit asks for, in the order in which it is made. */
enum { EMIT_PTX = 1, EMIT_CUBIN = 2, EMIT_SASS = 4 };

static clab_status parse_emit(const char *text, unsigned *out_emit, struct clab_error *error)
{
    static const char *const names[] = {"ptx", "cubin", "sass"};
    *out_emit = 0;
    for (const char *p = text;; p++) {
        const size_t length = strcspn(p, ",");
        unsigned found = 0;
        for (unsigned i = 0; i < 3; i++)
            if (strlen(names[i]) == length && memcmp(names[i], p, length) == 0)
                found = 1u << i;
        if (found == 0)
            return clab_error_set(error, CLAB_USAGE,
                                  "--emit takes ptx, cubin and sass, separated by commas, got '%s'", text);
        *out_emit |= found;
        p += length;
        if (*p == '\0')
            return CLAB_OK;
    }
}

/* FOLDER/STEM.ARCH.KIND: where one product goes. */
static clab_status product_path(const char *folder, const char *file, const char *arch, const char *kind,
                                char *path, size_t bytes, struct clab_error *error)
{
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file, *dot = strrchr(base, '.');
    const int stem = dot != NULL && dot != base ? (int)(dot - base) : (int)strlen(base);
    const int length = snprintf(path, bytes, "%s/%.*s.%s.%s", folder, stem, base, arch, kind);
    if (length < 0 || (size_t)length >= bytes)
        return clab_error_set(error, CLAB_OUTPUT, "the path of the %s of %s is too long", kind, file);
    return CLAB_OK;
}

static clab_status write_product(struct clab_cli *cli, const char *path, const void *data, size_t bytes,
                                 const char *maker, const char *note, struct clab_error *error)
{
    if (clab_file_write_atomic(path, data, bytes) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", path, strerror(errno));
    fprintf(cli->out, "%s  %zu bytes%s%s%s\n", path, bytes, maker[0] != '\0' ? "  " : "", maker, note);
    return CLAB_OK;
}

static clab_status write_image(struct clab_cli *cli, const char *folder, const char *file, const char *arch,
                               const struct clab_image *image, struct clab_error *error)
{
    char path[4096];
    const struct clab_image_resources *r = &image->resources;
    clab_status status =
        product_path(folder, file, arch, clab_image_kind_name(image->kind), path, sizeof path, error);
    if (status == CLAB_OK)
        status = write_product(cli, path, image->data, image->bytes, image->compiler,
                               image->cached ? " (cached)" : "", error);
    if (status == CLAB_OK && r->known)
        fprintf(cli->out, "  %d registers, %d bytes shared, %d bytes stack, spills %d/%d bytes\n",
                r->registers, r->static_smem_bytes, r->stack_bytes, r->spill_store_bytes,
                r->spill_load_bytes);
    if (status == CLAB_OK && image->log != NULL)
        fprintf(cli->err, "%s\n", image->log);
    return status;
}

static clab_status write_sass(struct clab_cli *cli, const struct clab_compiler *compiler, const char *folder,
                              const char *file, const char *arch, const struct clab_image *cubin,
                              struct clab_error *error)
{
    char path[4096], *text = NULL;
    clab_status status = product_path(folder, file, arch, "sass", path, sizeof path, error);
    if (status == CLAB_OK)
        status = clab_sass(clab_compiler_toolkit(compiler), cubin, &text, error);
    if (status == CLAB_OK)
        status = write_product(cli, path, text, strlen(text), "", "", error);
    free(text);
    return status;
}

/* Everything that was asked for, for one architecture. */
static clab_status compile_for(struct clab_cli *cli, struct clab_compiler *compiler,
                               struct clab_compile_request *request, unsigned emit, const char *folder,
                               struct clab_error *error)
{
    clab_status status = CLAB_OK;
    for (int kind = 0; kind < 2 && status == CLAB_OK; kind++) {
        if ((emit & (kind == 0 ? EMIT_PTX : EMIT_CUBIN | EMIT_SASS)) == 0)
            continue;
        struct clab_image image = {0};
        request->want = kind == 0 ? CLAB_IMAGE_PTX : CLAB_IMAGE_CUBIN;
        status = clab_compile(compiler, request, &image, error);
        if (status == CLAB_OK && image.kind != request->want)
            status =
                clab_error_set(error, CLAB_USAGE, "%s is a %s: no %s can be made of it", request->source_path,
                               clab_image_kind_name(image.kind), kind == 0 ? "PTX" : "cubin");
        if (status == CLAB_OK && (kind == 0 || (emit & EMIT_CUBIN) != 0))
            status = write_image(cli, folder, request->source_path, request->arch, &image, error);
        if (status == CLAB_OK && kind == 1 && (emit & EMIT_SASS) != 0)
            status = write_sass(cli, compiler, folder, request->source_path, request->arch, &image, error);
        clab_image_free(&image);
    }
    return status;
}

/* Without --arch: what the file itself says, else sm_90. */
static char *default_archs(const char *file)
{
    struct clab_image image = {0};
    const char *dot = strrchr(file, '.');
    char *archs = NULL;
    if (dot != NULL && strcmp(dot, ".cu") != 0 && clab_image_read(file, &image, NULL) == CLAB_OK &&
        image.arch[0] != '\0')
        archs = strdup(image.arch);
    clab_image_free(&image);
    return archs != NULL ? archs : strdup("sm_90");
}

int clab_cmd_compile(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},   {.name = "--emit", .kind = CLAB_OPTION_TEXT},
        {.name = "--entry", .kind = CLAB_OPTION_TEXT},  {.name = "--include", .kind = CLAB_OPTION_LIST},
        {.name = "--define", .kind = CLAB_OPTION_LIST}, {.name = "--option", .kind = CLAB_OPTION_LIST},
        {.name = "--out", .kind = CLAB_OPTION_TEXT},    {0},
    };
    const char *positional[1];
    size_t n_positional = 0;
    unsigned emit = 0;
    clab_status status = clab_options_parse_compiler(o, argc, argv, positional, 1, &n_positional, error);
    const char *folder = o[6].set ? o[6].text : ".";
    if (status == CLAB_OK && n_positional != 1)
        status = clab_error_set(error, CLAB_USAGE, "compile needs one FILE");
    if (status == CLAB_OK)
        status = parse_emit(o[1].set ? o[1].text : "ptx", &emit, error);
    if (status == CLAB_OK)
        status = clab_cli_source_check(positional[0], error);
    if (status == CLAB_OK)
        status = clab_cli_file_check(positional[0], error);
    /* Every architecture is looked at before the first is compiled. */
    char *archs = status != CLAB_OK ? NULL
                  : o[0].set        ? strdup(o[0].text)
                                    : default_archs(positional[0]),
         *rest = NULL;
    const struct clab_target *targets[MAX_ARCHS];
    size_t n_targets = 0;
    if (status == CLAB_OK && archs == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the architectures");
    for (char *arch = status == CLAB_OK ? strtok_r(archs, ",", &rest) : NULL;
         arch != NULL && status == CLAB_OK; arch = strtok_r(NULL, ",", &rest)) {
        if (n_targets == MAX_ARCHS)
            status = clab_error_set(error, CLAB_USAGE, "--arch names more than %d architectures", MAX_ARCHS);
        else
            status = clab_target_parse(arch, &targets[n_targets++], error);
    }
    if (status == CLAB_OK && n_targets == 0)
        status = clab_error_set(error, CLAB_USAGE, "--arch names no architecture");
    if (status == CLAB_OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot make %s: %s", folder, strerror(errno));
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = status == CLAB_OK ? clab_compiler_new(&options) : NULL;
    if (status == CLAB_OK && compiler == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    for (size_t i = 0; i < n_targets && status == CLAB_OK; i++) {
        struct clab_compile_request request = {
            .source_path = positional[0], .arch = targets[i]->name, .entry = o[2].text};
        clab_cli_compiler_words(o, &request);
        status = compile_for(cli, compiler, &request, emit, folder, error);
        if (status != CLAB_OK && n_targets > 1)
            clab_error_context(error, "%s", targets[i]->name);
    }
    if (compiler != NULL)
        clab_compiler_free(compiler);
    free(archs);
    return clab_status_exit(status);
}
