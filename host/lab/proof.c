/* Looks for instructions in PTX text: a name counts at the start of a statement (after a guard), followed by
   a dot, a space or a semicolon. SASS is read by the inspector (host/inspect/lowered.h). */
#include "lab/proof.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "compile/sass.h"
#include "inspect/lowered.h"

static const char *skip_blank(const char *p, const char *end)
{
    for (;;) {
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
            while (p < end && *p != '\n')
                p++;
        } else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
            p += 2;
            while (end - p >= 2 && !(p[0] == '*' && p[1] == '/'))
                p++;
            p = end - p >= 2 ? p + 2 : end;
        } else {
            return p;
        }
    }
}

static bool begins(const char *p, const char *end, const char *name)
{
    size_t n = strlen(name);
    return (size_t)(end - p) > n && memcmp(p, name, n) == 0 && !isalnum((unsigned char)p[n]) && p[n] != '_';
}

static bool contains(const char *text, size_t bytes, const char *name)
{
    const char *end = text + bytes;
    for (const char *p = skip_blank(text, end); p < end;) {
        if (*p == '@') { /* guard: @p or @!p */
            while (p < end && !isspace((unsigned char)*p))
                p++;
            p = skip_blank(p, end);
        }
        if (begins(p, end, name))
            return true;
        while (p < end && *p != ';' && *p != '{' && *p != '}' && *p != ':' && *p != '\n')
            p++;
        /* "::" belongs to a qualifier, not to a label. */
        if (end - p >= 2 && p[0] == ':' && p[1] == ':')
            p++;
        if (p < end)
            p = skip_blank(p + 1, end);
    }
    return false;
}

static clab_status missing(const struct clab_image *image, struct clab_error *error)
{
    clab_error_at(error, image->source_path != NULL ? image->source_path : "", 0, 0);
    return CLAB_COMPILE;
}

static clab_status check_ptx(const struct clab_image *image, const json_t *instructions, json_t *proof,
                             struct clab_error *error)
{
    const char *text = image->kind == CLAB_IMAGE_PTX ? image->data : image->ptx;
    const size_t bytes = image->kind == CLAB_IMAGE_PTX ? image->bytes : image->ptx_bytes;
    for (size_t i = 0; text != NULL && i < json_array_size(instructions); i++) {
        const char *name = json_string_value(json_array_get(instructions, i));
        if (name == NULL || contains(text, bytes, name))
            continue;
        json_object_set_new(proof, "ptx", json_false());
        clab_error_set(error, CLAB_COMPILE, "the image has no '%s' instruction, which this variant is about",
                       name);
        return missing(image, error);
    }
    if (text != NULL)
        json_object_set_new(proof, "ptx", json_true());
    return CLAB_OK;
}

/* A disassembler that fails leaves the SASS unjudged: the claim is about the kernel, not about the tool. */
static clab_status check_sass(const struct clab_image *image, const json_t *instructions,
                              const struct clab_toolkit *toolkit, const char *cache_dir, json_t *proof,
                              struct clab_error *error)
{
    struct clab_listing listing;
    char *text = NULL;
    clab_status status = CLAB_OK;
    if (image->kind != CLAB_IMAGE_CUBIN || image->lowered == NULL || toolkit == NULL ||
        clab_sass_lines(toolkit, cache_dir, image, &text, NULL) != CLAB_OK)
        return CLAB_OK;
    if (clab_sass_listing(text, image->lowered, NULL, &listing, NULL) != CLAB_OK) {
        free(text);
        return CLAB_OK;
    }
    for (size_t i = 0; i < json_array_size(instructions) && status == CLAB_OK; i++) {
        const char *name = json_string_value(json_array_get(instructions, i)), *patterns;
        const enum clab_found found =
            name != NULL ? clab_lowered_find(&listing, name, &patterns) : CLAB_NOT_JUDGED;
        if (found == CLAB_FOUND)
            json_object_set_new(proof, "sass", json_true());
        if (found != CLAB_NOT_THERE)
            continue;
        json_object_set_new(proof, "sass", json_false());
        clab_error_set(
            error, CLAB_COMPILE,
            "the SASS of the image has nothing that a '%s' instruction becomes (%s), which this variant is "
            "about",
            name, patterns);
        status = missing(image, error);
    }
    clab_listing_free(&listing);
    free(text);
    return status;
}

clab_status clab_proof_check(const struct clab_image *image, const json_t *instructions,
                             const struct clab_toolkit *toolkit, const char *cache_dir, json_t **out_proof,
                             struct clab_error *error)
{
    const bool any = json_array_size(instructions) > 0;
    json_t *proof = any ? json_pack("{s:n,s:n}", "ptx", "sass") : NULL;
    clab_status status = any ? check_ptx(image, instructions, proof, error) : CLAB_OK;
    if (any && status == CLAB_OK)
        status = check_sass(image, instructions, toolkit, cache_dir, proof, error);
    if (out_proof != NULL)
        *out_proof = proof;
    else
        json_decref(proof);
    return status;
}
