/* clusterlab compile: one file for several architectures, as PTX, cubin and SASS files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/cli.h"
#include "compile/sass.h"
#include "compile/target.h"
#include "inspect/container.h"

#define MAX_ARCHS             64
#define CONTAINER_LIMIT_BYTES ((size_t)1 << 31)

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

/* What a fatbin, an object or a program holds; `count` 0 for other files. */
struct container {
    struct clab_image *images;
    size_t count;
};

/* Fills `out` where the file is such a container, and leaves it empty where not. */
static clab_status open_container(const char *file, struct container *out, struct clab_error *error)
{
    const char *dot = strrchr(file, '.');
    size_t bytes;
    if (dot != NULL && strcmp(dot, ".cu") == 0)
        return CLAB_OK;
    char *data = clab_file_read(file, CONTAINER_LIMIT_BYTES, &bytes);
    if (data == NULL)
        return clab_error_set(error, CLAB_NOT_FOUND, "cannot read %s: %s", file, strerror(errno));
    const clab_status status = clab_container_is(data, bytes)
                                   ? clab_container_read(file, data, bytes, &out->images, &out->count, error)
                                   : CLAB_OK;
    free(data);
    return status;
}

/* The container's own image for the architecture; a cubin is assembled where it has only PTX for it. */
static clab_status take(struct clab_compiler *compiler, const struct clab_compile_request *request,
                        const struct container *container, struct clab_image *out, struct clab_error *error)
{
    const struct clab_target *chip = clab_target_find(request->arch);
    const struct clab_image *found =
        clab_container_best(container->images, container->count, request->want, request->entry, chip);
    if (found != NULL)
        return clab_image_copy(out, found, error);
    if (request->want == CLAB_IMAGE_CUBIN)
        found =
            clab_container_best(container->images, container->count, CLAB_IMAGE_PTX, request->entry, chip);
    if (found == NULL) {
        clab_container_refuse(request->source_path, container->images, container->count, request->entry,
                              request->arch, error);
        return clab_error_context(error, "no %s", request->want == CLAB_IMAGE_PTX ? "PTX" : "cubin");
    }
    struct clab_str name = {0};
    struct clab_compile_request assemble = *request;
    clab_str_addf(&name, "%s.ptx", request->source_path); /* the service tells PTX by its ending */
    assemble.source_path = name.text != NULL ? name.text : request->source_path;
    assemble.source_text = found->data;
    const clab_status status = clab_compile(compiler, &assemble, out, error);
    clab_str_free(&name);
    return status;
}

/* Everything that was asked for, for one architecture. */
static clab_status compile_for(struct clab_cli *cli, struct clab_compiler *compiler,
                               struct clab_compile_request *request, const struct container *container,
                               unsigned emit, const char *folder, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    for (int kind = 0; kind < 2 && status == CLAB_OK; kind++) {
        if ((emit & (kind == 0 ? EMIT_PTX : EMIT_CUBIN | EMIT_SASS)) == 0)
            continue;
        struct clab_image image = {0};
        request->want = kind == 0 ? CLAB_IMAGE_PTX : CLAB_IMAGE_CUBIN;
        status = container->count != 0 ? take(compiler, request, container, &image, error)
                                       : clab_compile(compiler, request, &image, error);
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

/* Whether all that is asked for can be had of the container for an architecture. */
static bool has_all(const struct container *container, const char *arch, const char *entry, unsigned emit)
{
    const struct clab_target *chip = clab_target_find(arch);
    const bool ptx = clab_container_best(container->images, container->count, CLAB_IMAGE_PTX, entry, chip) !=
                     NULL,
               cubin = clab_container_best(container->images, container->count, CLAB_IMAGE_CUBIN, entry,
                                           chip) != NULL;
    return ((emit & EMIT_PTX) == 0 || ptx) && ((emit & (EMIT_CUBIN | EMIT_SASS)) == 0 || cubin || ptx);
}

/* Without --arch: what the file itself says, else sm_90; of a container every architecture that it has. */
static char *default_archs(const char *file, const struct container *container, const char *entry,
                           unsigned emit)
{
    struct clab_str list = {0};
    for (int all = 0; all < 2 && list.bytes == 0;
         all++) /* nothing can be had: the first one's refusal says so */
        for (size_t i = 0; i < container->count; i++) {
            const char *arch = container->images[i].arch;
            bool again = false;
            for (size_t j = 0; j < i; j++)
                again = again || strcmp(arch, container->images[j].arch) == 0;
            if (!again && (all == 1 || has_all(container, arch, entry, emit)))
                clab_str_addf(&list, "%s%s", list.bytes != 0 ? "," : "", arch);
        }
    if (list.bytes != 0)
        return clab_str_take(&list);
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
        status = clab_cli_file_check(positional[0], error);
    struct container container = {0};
    if (status == CLAB_OK)
        status = open_container(positional[0], &container, error);
    if (status == CLAB_OK && container.count == 0)
        status = clab_cli_source_check(positional[0], error);
    /* Every architecture is looked at before the first is compiled. */
    char *archs = status != CLAB_OK ? NULL
                  : o[0].set        ? strdup(o[0].text)
                                    : default_archs(positional[0], &container, o[2].text, emit),
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
        status = compile_for(cli, compiler, &request, &container, emit, folder, error);
        if (status != CLAB_OK && n_targets > 1)
            clab_error_context(error, "%s", targets[i]->name);
    }
    if (compiler != NULL)
        clab_compiler_free(compiler);
    clab_container_free(container.images, container.count);
    free(archs);
    return clab_status_exit(status);
}
