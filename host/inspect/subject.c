/* From FILE[:ENTRY] to listings, resources and notes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "compile/sass.h"
#include "compile/target.h"
#include "inspect/container.h"
#include "inspect/inspect.h"

static const size_t file_limit_bytes = (size_t)1 << 31;

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), wanted = strlen(ending);
    return n > wanted && strcmp(text + n - wanted, ending) == 0;
}

static bool exists(const char *path, size_t bytes)
{
    struct stat info;
    char *copy = strndup(path, bytes);
    const bool found = copy != NULL && stat(copy, &info) == 0 && S_ISREG(info.st_mode);
    free(copy);
    return found;
}

clab_status clab_inspect_split(const char *text, char **out_file, char **out_entry, struct clab_error *error)
{
    static const char *const extensions[] = {".cubin", ".fatbin", ".ptx", ".cu", ".obj", ".o", ".so"};
    const char *end = NULL;
    *out_file = *out_entry = NULL;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        const size_t bytes = strlen(extensions[i]);
        for (const char *at = strstr(text, extensions[i]); at != NULL; at = strstr(at + 1, extensions[i]))
            if ((at[bytes] == ':' || at[bytes] == '\0') && (end == NULL || at + bytes < end))
                end = at + bytes;
    }
    for (const char *colon = strchr(text, ':'); end == NULL && colon != NULL; colon = strchr(colon + 1, ':'))
        if (exists(text, (size_t)(colon - text)))
            end = colon;
    if (end == NULL)
        end = text + strlen(text);
    if (*end == ':' && end[1] == '\0')
        return clab_error_set(error, CLAB_USAGE, "%s: no entry after the colon", text);
    *out_file = strndup(text, (size_t)(end - text));
    if (*end == ':')
        *out_entry = strdup(end + 1);
    if (*out_file != NULL && (*end != ':' || *out_entry != NULL))
        return CLAB_OK;
    free(*out_file);
    free(*out_entry);
    *out_file = *out_entry = NULL;
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the name of a file");
}

/* --- images */

static clab_status keep_ptx(struct clab_subject *out, const char *text, size_t bytes,
                            struct clab_error *error)
{
    out->ptx = strndup(text, bytes);
    out->ptx_bytes = bytes;
    return out->ptx != NULL ? CLAB_OK
                            : clab_error_set(error, CLAB_NO_MEMORY, "%s: no memory for its PTX", out->file);
}

/* A cubin with its entry chosen; for one without symbols the sections' names serve. */
static clab_status choose_in_cubin(struct clab_image *cubin, const char *entry, struct clab_error *error)
{
    char **names;
    size_t count;
    clab_status status = clab_image_entries(cubin, &names, &count, error);
    const bool stripped = status == CLAB_OK && count == 0;
    if (status == CLAB_OK)
        clab_image_names_free(names, count);
    if (!stripped)
        return status == CLAB_OK ? clab_image_choose_entry(cubin, entry, error) : status;
    status = clab_cubin_sections(cubin, &names, &count, error);
    const char *chosen = NULL;
    for (size_t i = 0; status == CLAB_OK && i < count; i++)
        if (entry == NULL ? count == 1 : strcmp(names[i], entry) == 0)
            chosen = names[i];
    if (status == CLAB_OK && chosen == NULL) {
        struct clab_str list = {0};
        for (size_t i = 0; i < count && list.bytes < 600; i++)
            clab_str_addf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
        status = clab_error_set(error, CLAB_NOT_FOUND, "%s has no symbols; %s%s", cubin->source_path,
                                count > 0 ? "its sections name: " : "and no section of code",
                                count > 0 ? list.text : "");
        clab_str_free(&list);
    }
    if (status == CLAB_OK &&
        ((cubin->lowered = strdup(chosen)) == NULL || (cubin->entry = strdup(chosen)) == NULL))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the name of the entry");
    clab_image_names_free(names, count);
    return status;
}

static struct clab_compile_request compile_request(const struct clab_inspect_request *request,
                                                   const char *arch)
{
    return (struct clab_compile_request){.source_path = request->file,
                                         .arch = arch,
                                         .want = CLAB_IMAGE_CUBIN,
                                         .entry = request->entry,
                                         .include_dirs = request->include_dirs,
                                         .include_dir_count = request->include_dir_count,
                                         .defines = request->defines,
                                         .define_count = request->define_count,
                                         .options = request->options,
                                         .option_count = request->option_count,
                                         .line_info = true,
                                         .adopt_suffix = true};
}

static clab_status open_source(struct clab_compiler *compiler, const struct clab_inspect_request *request,
                               struct clab_subject *out, struct clab_error *error)
{
    struct clab_compile_request compile =
        compile_request(request, request->arch != NULL ? request->arch : "sm_90");
    clab_status status = clab_compile(compiler, &compile, &out->cubin, error);
    if (status == CLAB_OK && out->cubin.lowered == NULL)
        status = clab_image_choose_entry(&out->cubin, request->entry, error);
    if (status == CLAB_OK && out->cubin.ptx != NULL)
        status = keep_ptx(out, out->cubin.ptx, out->cubin.ptx_bytes, error);
    return status;
}

/* PTX from anywhere: text is `out->ptx`. Whether it assembles is another matter than whether it can be read.
 */
static clab_status open_ptx(struct clab_compiler *compiler, const struct clab_inspect_request *request,
                            struct clab_image *image, struct clab_subject *out, struct clab_error *error)
{
    clab_status status = clab_image_choose_entry(image, request->entry, error);
    if (status == CLAB_OK)
        status = keep_ptx(out, image->data, image->bytes, error);
    if (status != CLAB_OK)
        return status;
    struct clab_compile_request compile =
        compile_request(request, request->arch != NULL ? request->arch : image->arch);
    char *name = NULL; /* the service tells PTX by its ending */
    if (!ends_with(request->file, ".ptx")) {
        struct clab_str text = {0};
        clab_str_addf(&text, "%s.ptx", request->file);
        compile.source_path = name = clab_str_take(&text);
    }
    compile.source_text = out->ptx;
    compile.entry = image->lowered;
    if (clab_compile(compiler, &compile, &out->cubin, &out->why[CLAB_LEVEL_SASS]) == CLAB_OK &&
        request->entry == NULL && out->cubin.lowered == NULL)
        (void)clab_image_choose_entry(&out->cubin, image->lowered, NULL);
    snprintf(out->arch, sizeof out->arch, "%s", image->arch);
    out->lowered = strdup(image->lowered);
    free(name);
    return out->lowered != NULL ? CLAB_OK : clab_error_set(error, CLAB_NO_MEMORY, "no memory for a name");
}

static clab_status open_cubin(const struct clab_inspect_request *request, struct clab_image *image,
                              struct clab_subject *out, struct clab_error *error)
{
    const struct clab_target *made_for = clab_target_find(image->arch), *chip;
    clab_status status = CLAB_OK;
    if (request->arch != NULL)
        status = clab_target_parse(request->arch, &chip, error);
    if (status == CLAB_OK && request->arch != NULL && made_for != NULL) {
        status = clab_target_check(made_for, false, chip, error);
        if (status != CLAB_OK)
            clab_error_at(error, request->file, 0, 0);
    }
    if (status == CLAB_OK)
        status = choose_in_cubin(image, request->entry, error);
    if (status == CLAB_OK)
        status = clab_image_copy(&out->cubin, image, error);
    return status;
}

static clab_status open_container(struct clab_compiler *compiler, const struct clab_inspect_request *request,
                                  const char *data, size_t bytes, struct clab_subject *out,
                                  struct clab_error *error)
{
    struct clab_image *images;
    size_t count;
    const struct clab_target *chip = NULL;
    clab_status status = request->arch != NULL ? clab_target_parse(request->arch, &chip, error) : CLAB_OK;
    if (status == CLAB_OK)
        status = clab_container_read(request->file, data, bytes, &images, &count, error);
    if (status != CLAB_OK)
        return status;
    struct clab_image *cubin = clab_container_best(images, count, CLAB_IMAGE_CUBIN, request->entry, chip);
    struct clab_image *ptx = clab_container_best(images, count, CLAB_IMAGE_PTX, request->entry, chip);
    if (cubin == NULL && ptx == NULL) {
        status = clab_container_refuse(request->file, images, count, request->entry, request->arch, error);
    } else if (cubin != NULL) {
        /* PTX beside it is shown where the two are for one architecture. */
        status = open_cubin(request, cubin, out, error);
        if (status == CLAB_OK && ptx != NULL && strcmp(ptx->arch, cubin->arch) == 0)
            status = keep_ptx(out, ptx->data, ptx->bytes, error);
    } else {
        status = open_ptx(compiler, request, ptx, out, error);
    }
    clab_container_free(images, count);
    return status;
}

static clab_status open_images(struct clab_compiler *compiler, const struct clab_inspect_request *request,
                               struct clab_subject *out, struct clab_error *error)
{
    if (ends_with(request->file, ".cu"))
        return open_source(compiler, request, out, error);
    size_t bytes;
    char *data = clab_file_read(request->file, file_limit_bytes, &bytes);
    if (data == NULL)
        return clab_error_set(error, CLAB_NOT_FOUND, "cannot read %s: %s", request->file, strerror(errno));
    struct clab_image image = {0};
    clab_status status;
    if (clab_container_is(data, bytes)) {
        status = open_container(compiler, request, data, bytes, out, error);
    } else {
        status = clab_image_from_bytes(request->file, data, bytes, &image, error);
        if (status == CLAB_OK)
            status = image.kind == CLAB_IMAGE_PTX ? open_ptx(compiler, request, &image, out, error)
                                                  : open_cubin(request, &image, out, error);
    }
    clab_image_free(&image);
    free(data);
    return status;
}

/* --- listings */

static clab_status read_ptx(struct clab_subject *out, struct clab_error *why)
{
    if (out->ptx == NULL) {
        clab_error_set(why, CLAB_UNSUPPORTED, "%s holds no PTX of '%s'", out->file, out->entry);
        return clab_error_remedy(why, "give its source or its PTX, or look at its SASS (--level sass)");
    }
    clab_status status = ptx_parse(out->ptx, out->ptx_bytes, out->file, NULL, &out->module, why);
    if (status != CLAB_OK)
        return status;
    const struct ptx_function *function = ptx_function_get(out->module, out->lowered);
    if (function == NULL || !function->defined)
        return clab_error_set(why, CLAB_NOT_FOUND, "the PTX of %s does not define '%s'", out->file,
                              out->lowered);
    status = clab_resources_of_ptx(out->module, function, &out->resources, why);
    if (status == CLAB_OK && function->error != NULL) {
        clab_error_copy(why, function->error);
        return function->error->status;
    }
    if (status == CLAB_OK)
        status = clab_ptx_listing(out->module, function, &out->listings[CLAB_LEVEL_PTX], why);
    if (status == CLAB_OK) /* notes go by the chip that it is compiled for */
        (void)ptx_target_parse(out->arch, strlen(out->arch), &out->listings[CLAB_LEVEL_PTX].target);
    out->has[CLAB_LEVEL_PTX] = status == CLAB_OK;
    return status;
}

static clab_status read_sass(const struct clab_compiler *compiler, struct clab_subject *out,
                             struct clab_error *why)
{
    if (out->cubin.kind != CLAB_IMAGE_CUBIN)
        return why->status != CLAB_OK ? why->status
                                      : clab_error_set(why, CLAB_UNSUPPORTED, "%s has no cubin", out->file);
    const struct clab_toolkit *toolkit = clab_compiler_toolkit(compiler);
    const char *not_own[] = {toolkit->parts[CLAB_PART_CUDA_INCLUDE].path,
                             toolkit->parts[CLAB_PART_CCCL_INCLUDE].path, NULL};
    char *text = NULL;
    clab_status status = clab_sass_lines(toolkit, clab_compiler_cache_dir(compiler), &out->cubin, &text, why);
    if (status == CLAB_OK)
        status = clab_sass_listing(text, out->lowered, not_own, &out->listings[CLAB_LEVEL_SASS], why);
    free(text);
    out->has[CLAB_LEVEL_SASS] = status == CLAB_OK;
    return status;
}

/* ptxas 13.0 takes the last backslash of an escaped name for a separator in a cubin's line table:
   "a\316\261.cu" becomes file "261.cu" of folder "a\316". What becomes of `name` so, unescaped, or NULL where
   nothing does. The caller frees it. */
static char *broken_name(const char *name)
{
    size_t last = strlen(name);
    while (last > 0 && (name[last - 1] & 0x80) == 0 && name[last - 1] != '/')
        last--;
    char *broken = last > 0 && name[last - 1] != '/' ? malloc(strlen(name) + 4) : NULL;
    if (broken != NULL)
        sprintf(broken, "%.*s/%o%s", (int)last - 1, name, (unsigned)(unsigned char)name[last - 1],
                name + last);
    return broken;
}

/* Without memory the names stay as they are. */
static void mend_names(struct clab_listing *sass, const struct clab_listing *ptx)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < ptx->n_insns; i++) {
        if (ptx->insns[i].place.file == NULL || (name != NULL && strcmp(name, ptx->insns[i].place.file) == 0))
            continue;
        name = ptx->insns[i].place.file;
        char *broken = broken_name(name);
        for (uint32_t k = 0; broken != NULL && k < sass->n_insns; k++)
            if (sass->insns[k].place.file != NULL && strcmp(sass->insns[k].place.file, broken) == 0)
                sass->insns[k].place.file = name;
        free(broken);
    }
}

/* .loc names the innermost line of an inlined call, the SASS reader the innermost one of the user's: the PTX
   gets that where SASS was made from it. Without memory it stays as it is. */
static void share_places(const struct clab_listing *sass, struct clab_listing *ptx)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < ptx->n_insns; i++)
        last = ptx->insns[i].address > last ? ptx->insns[i].address : last;
    const struct clab_place **of_line = calloc((size_t)last + 1, sizeof *of_line);
    for (uint32_t k = sass->n_insns; of_line != NULL && k-- > 0;)
        if (sass->insns[k].ptx_line <= last && sass->insns[k].place.file != NULL)
            of_line[sass->insns[k].ptx_line] = &sass->insns[k].place;
    for (uint32_t i = 0; of_line != NULL && i < ptx->n_insns; i++)
        if (of_line[ptx->insns[i].address] != NULL)
            ptx->insns[i].place = *of_line[ptx->insns[i].address];
    free(of_line);
}

clab_status clab_inspect_open(struct clab_compiler *compiler, const struct clab_inspect_request *request,
                              struct clab_subject *out, struct clab_error *error)
{
    memset(out, 0, sizeof *out);
    clab_resources_init(&out->resources);
    out->file = strdup(request->file);
    clab_status status = out->file != NULL ? open_images(compiler, request, out, error)
                                           : clab_error_set(error, CLAB_NO_MEMORY, "no memory for a name");
    if (status != CLAB_OK)
        return status;
    if (out->lowered == NULL && out->cubin.lowered != NULL)
        out->lowered = strdup(out->cubin.lowered);
    out->entry = strdup(request->entry != NULL ? request->entry : out->lowered != NULL ? out->lowered : "");
    if (out->lowered == NULL || out->entry == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the name of the entry");
    if (out->cubin.kind == CLAB_IMAGE_CUBIN) {
        snprintf(out->arch, sizeof out->arch, "%s", out->cubin.arch);
        snprintf(out->compiler, sizeof out->compiler, "%s", out->cubin.compiler);
        status = clab_resources_of_cubin(&out->cubin, out->lowered, &out->resources, error);
        if (status != CLAB_OK)
            return status;
    }
    struct clab_error *why = out->why;
    (void)read_ptx(out, &why[CLAB_LEVEL_PTX]);
    (void)read_sass(compiler, out, &why[CLAB_LEVEL_SASS]);
    if (!out->has[CLAB_LEVEL_PTX] && !out->has[CLAB_LEVEL_SASS]) {
        /* PTX that does not assemble says why best itself. */
        const bool assembled = out->cubin.kind == CLAB_IMAGE_CUBIN;
        clab_error_copy(error, &why[assembled || out->ptx == NULL ? CLAB_LEVEL_SASS : CLAB_LEVEL_PTX]);
        return error != NULL ? error->status : CLAB_LOAD;
    }
    if (out->has[CLAB_LEVEL_PTX] && out->has[CLAB_LEVEL_SASS]) {
        mend_names(&out->listings[CLAB_LEVEL_SASS], &out->listings[CLAB_LEVEL_PTX]);
        share_places(&out->listings[CLAB_LEVEL_SASS], &out->listings[CLAB_LEVEL_PTX]);
    }
    for (unsigned level = 0; level < CLAB_LEVELS && status == CLAB_OK; level++)
        if (out->has[level])
            status = clab_notes_find(&out->listings[level], &out->resources, &out->notes[level], error);
    return status;
}

void clab_subject_free(struct clab_subject *subject)
{
    for (unsigned level = 0; level < CLAB_LEVELS; level++) {
        clab_notes_free(&subject->notes[level]);
        clab_listing_free(&subject->listings[level]);
        clab_error_clear(&subject->why[level]);
    }
    if (subject->module != NULL)
        ptx_module_free(subject->module);
    clab_image_free(&subject->cubin);
    free(subject->ptx);
    free(subject->file);
    free(subject->entry);
    free(subject->lowered);
    memset(subject, 0, sizeof *subject);
}

clab_status clab_subject_level(const struct clab_subject *subject, const char *name, enum clab_level *out,
                               struct clab_error *error)
{
    if (name != NULL && strcmp(name, "ptx") != 0 && strcmp(name, "sass") != 0)
        return clab_error_set(error, CLAB_USAGE, "--level takes ptx or sass, got '%s'", name);
    *out = name != NULL                    ? (strcmp(name, "ptx") == 0 ? CLAB_LEVEL_PTX : CLAB_LEVEL_SASS)
           : subject->has[CLAB_LEVEL_SASS] ? CLAB_LEVEL_SASS
                                           : CLAB_LEVEL_PTX;
    if (subject->has[*out])
        return CLAB_OK;
    clab_error_copy(error, &subject->why[*out]);
    return subject->why[*out].status;
}
