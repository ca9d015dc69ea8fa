/* Looks for instructions in PTX text: a name counts at the start of a statement (after a guard), followed by
   a dot, a space or a semicolon. The SASS half of must_contain belongs to the inspector. */
#include "lab/proof.h"

#include <ctype.h>
#include <string.h>

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

clab_status clab_proof_check(const struct clab_image *image, const json_t *instructions,
                             struct clab_error *error)
{
    const char *text = image->kind == CLAB_IMAGE_PTX ? image->data : image->ptx;
    size_t bytes = image->kind == CLAB_IMAGE_PTX ? image->bytes : image->ptx_bytes;
    for (size_t i = 0; text != NULL && i < json_array_size(instructions); i++) {
        const char *name = json_string_value(json_array_get(instructions, i));
        if (name == NULL || contains(text, bytes, name))
            continue;
        clab_error_set(error, CLAB_COMPILE, "the image has no '%s' instruction, which this variant is about",
                       name);
        clab_error_at(error, image->source_path != NULL ? image->source_path : "", 0, 0);
        return CLAB_COMPILE;
    }
    return CLAB_OK;
}
