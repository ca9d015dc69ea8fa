/* clusterlab compile: one file for several architectures, as PTX and cubin files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/cli.h"
#include "compile/target.h"

/* -IDIR, -I DIR, -DNAME and -o DIR become their long forms, so that one parser serves. */
static char **lengthen(int argc, char **argv, int *out_argc)
{
    char **words = calloc((size_t)argc * 2 + 1, sizeof *words);
    int n = 0;
    for (int i = 0; i < argc && words != NULL; i++) {
        const char *option = strncmp(argv[i], "-I", 2) == 0   ? "--include"
                             : strncmp(argv[i], "-D", 2) == 0 ? "--define"
                             : strncmp(argv[i], "-o", 2) == 0 ? "--out"
                                                              : NULL;
        if (option == NULL) {
            words[n++] = argv[i];
            continue;
        }
        words[n++] = (char *)(uintptr_t)option;
        if (argv[i][2] != '\0')
            words[n++] = argv[i] + 2;
    }
    *out_argc = n;
    return words;
}

static bool wants(const char *emit, const char *kind)
{
    size_t n = strlen(kind);
    for (const char *p = emit; (p = strstr(p, kind)) != NULL; p += n)
        if ((p == emit || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

static clab_status write_image(struct clab_cli *cli, const char *folder, const char *file, const struct clab_image *image,
                               struct clab_error *error)
{
    char path[4096];
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file, *dot = strrchr(base, '.');
    snprintf(path, sizeof path, "%s/%.*s.%s.%s", folder, dot != NULL ? (int)(dot - base) : (int)strlen(base), base,
             image->arch, clab_image_kind_name(image->kind));
    if (clab_file_write_atomic(path, image->data, image->bytes) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", path, strerror(errno));
    fprintf(cli->out, "%s  %zu bytes  %s%s\n", path, image->bytes, image->compiler, image->cached ? " (cached)" : "");
    if (image->resources.known)
        fprintf(cli->out, "  %d registers, %d bytes shared, %d bytes stack, spills %d/%d bytes\n",
                image->resources.registers, image->resources.static_smem_bytes, image->resources.stack_bytes,
                image->resources.spill_store_bytes, image->resources.spill_load_bytes);
    if (image->log != NULL)
        fprintf(cli->err, "%s\n", image->log);
    return CLAB_OK;
}

int clab_cmd_compile(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},    {.name = "--emit", .kind = CLAB_OPTION_TEXT},
        {.name = "--entry", .kind = CLAB_OPTION_TEXT},   {.name = "--include", .kind = CLAB_OPTION_LIST},
        {.name = "--define", .kind = CLAB_OPTION_LIST},  {.name = "--option", .kind = CLAB_OPTION_LIST},
        {.name = "--out", .kind = CLAB_OPTION_TEXT},     {0},
    };
    const char *positional[1];
    size_t n_positional = 0;
    int n_words = 0;
    char **words = lengthen(argc, argv, &n_words);
    char archs[1024];
    clab_status status = words == NULL ? clab_error_set(error, CLAB_NO_MEMORY, "no memory for the options")
                                       : clab_options_parse(o, n_words, words, positional, 1, &n_positional, error);
    const char *emit = o[1].set ? o[1].text : "ptx", *folder = o[6].set ? o[6].text : ".";
    if (status == CLAB_OK && n_positional != 1)
        status = clab_error_set(error, CLAB_USAGE, "compile needs one FILE");
    if (status == CLAB_OK && !wants(emit, "ptx") && !wants(emit, "cubin"))
        status = clab_error_set(error, CLAB_USAGE, "--emit wants ptx, cubin or both, got '%s'", emit);
    if (status == CLAB_OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot make %s: %s", folder, strerror(errno));
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = status == CLAB_OK ? clab_compiler_new(&options) : NULL;
    snprintf(archs, sizeof archs, "%s", o[0].set ? o[0].text : "sm_90");
    char *rest = NULL;
    for (char *arch = strtok_r(archs, ",", &rest); compiler != NULL && arch != NULL && status == CLAB_OK;
         arch = strtok_r(NULL, ",", &rest)) {
        const struct clab_target *target = NULL;
        status = clab_target_parse(arch, &target, error);
        for (int kind = 0; kind < 2 && status == CLAB_OK; kind++) {
            if (!wants(emit, kind == 0 ? "ptx" : "cubin"))
                continue;
            struct clab_image image = {0};
            struct clab_compile_request request = {
                .source_path = positional[0], .arch = target->name, .entry = o[2].text,
                .want = kind == 0 ? CLAB_IMAGE_PTX : CLAB_IMAGE_CUBIN,
                .include_dirs = o[3].list, .include_dir_count = o[3].count,
                .defines = o[4].list, .define_count = o[4].count,
                .options = o[5].list, .option_count = o[5].count};
            status = clab_compile(compiler, &request, &image, error);
            if (status == CLAB_OK)
                status = write_image(cli, folder, positional[0], &image, error);
            clab_image_free(&image);
        }
    }
    if (compiler != NULL)
        clab_compiler_free(compiler);
    free(words);
    return clab_status_exit(status);
}
