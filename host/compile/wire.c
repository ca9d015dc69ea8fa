/* The worker protocol's encoding. Both ends are the same program, so that structs without pointers travel as
   they are (the head's `layout` catches two builds that meet); texts and images travel as length and bytes.
   Lengths are checked against what is left, so that a broken peer gives an error, never a wild read. */
#include "compile/wire.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t absent = UINT64_MAX; /* the length of a NULL */

static void put_u64(struct clab_str *out, uint64_t value)
{
    clab_str_add_bytes(out, (const char *)&value, sizeof value);
}

static void put_bytes(struct clab_str *out, const void *data, size_t bytes)
{
    put_u64(out, data != NULL ? bytes : absent);
    if (data != NULL)
        clab_str_add_bytes(out, data, bytes);
}

static void put_text(struct clab_str *out, const char *text)
{
    put_bytes(out, text, text != NULL ? strlen(text) : 0);
}

static void put_list(struct clab_str *out, const char *const *texts, size_t count)
{
    put_u64(out, count);
    for (size_t i = 0; i < count; i++)
        put_text(out, texts[i]);
}

struct reader {
    const char *at;
    size_t left;
    bool bad;
};

static void get_raw(struct reader *in, void *to, size_t bytes)
{
    if (in->bad || in->left < bytes) {
        in->bad = true;
        memset(to, 0, bytes);
        return;
    }
    memcpy(to, in->at, bytes);
    in->at += bytes;
    in->left -= bytes;
}

static uint64_t get_u64(struct reader *in)
{
    uint64_t value;
    get_raw(in, &value, sizeof value);
    return value;
}

/* A field's bytes, borrowed from the payload; NULL for an absent one or a bad message. */
static const char *get_field(struct reader *in, size_t *out_bytes)
{
    uint64_t bytes = get_u64(in);
    *out_bytes = 0;
    if (in->bad || bytes == absent)
        return NULL;
    if (bytes > in->left) {
        in->bad = true;
        return NULL;
    }
    const char *field = in->at;
    in->at += bytes;
    in->left -= (size_t)bytes;
    *out_bytes = (size_t)bytes;
    return field;
}

static char *get_heap(struct reader *in, size_t *out_bytes)
{
    const char *field = get_field(in, out_bytes);
    char *copy = field != NULL ? malloc(*out_bytes + 1) : NULL;
    if (field != NULL && copy == NULL)
        in->bad = true;
    if (copy != NULL) {
        memcpy(copy, field, *out_bytes);
        copy[*out_bytes] = '\0';
    }
    return copy;
}

static const char *get_text(struct reader *in, struct clab_arena *arena)
{
    size_t bytes;
    const char *field = get_field(in, &bytes);
    char *copy = field != NULL ? clab_arena_strndup(arena, field, bytes) : NULL;
    if (field != NULL && copy == NULL)
        in->bad = true;
    return copy;
}

static const char *const *get_list(struct reader *in, struct clab_arena *arena, size_t *out_count)
{
    uint64_t count = get_u64(in);
    *out_count = 0;
    if (in->bad || count > in->left / sizeof(uint64_t)) {
        in->bad = true;
        return NULL;
    }
    const char **texts = clab_arena_array(arena, (size_t)count + 1, sizeof *texts);
    if (texts == NULL) {
        in->bad = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        texts[i] = get_text(in, arena);
    *out_count = (size_t)count;
    return texts;
}

static uint32_t layout(void)
{
    return (uint32_t)(sizeof(struct clab_error) ^ sizeof(struct clab_image) << 16);
}

/* The head is written first with no length, and completed when the payload is there. */
static size_t begin(struct clab_str *out)
{
    struct clab_wire_head head = {CLAB_WIRE_MARK, layout(), 0};
    clab_str_add_bytes(out, (const char *)&head, sizeof head);
    return out->bytes;
}

static void end(struct clab_str *out, size_t start)
{
    struct clab_wire_head head = {CLAB_WIRE_MARK, layout(), out->bytes - start};
    if (!out->failed)
        memcpy(out->text + start - sizeof head, &head, sizeof head);
}

bool clab_wire_head_good(const struct clab_wire_head *head)
{
    return head->mark == CLAB_WIRE_MARK && head->layout == layout() && head->bytes < CLAB_WIRE_LIMIT;
}

void clab_wire_put_job(struct clab_str *out, const struct clab_wire_job *job)
{
    const struct clab_compile_request *request = &job->request;
    size_t start = begin(out);
    put_text(out, request->source_path);
    put_text(out, request->source_text);
    put_text(out, request->arch);
    put_text(out, request->entry);
    put_u64(out, (uint64_t)request->want);
    put_u64(out, (uint64_t)request->line_info | (uint64_t)request->no_pch << 1 |
                     (uint64_t)request->adopt_suffix << 2 | (uint64_t)request->per_chip << 3 |
                     (uint64_t)job->assemble << 4);
    put_list(out, request->include_dirs, request->include_dir_count);
    put_list(out, request->defines, request->define_count);
    put_list(out, request->options, request->option_count);
    for (int i = 0; i < CLAB_PART_COUNT; i++)
        put_text(out, job->toolkit.parts[i].found ? job->toolkit.parts[i].path : NULL);
    put_text(out, job->pch.key);
    put_text(out, job->pch.kept_dir);
    put_text(out, job->pch.scratch_dir);
    put_u64(out, job->pch.make);
    end(out, start);
}

bool clab_wire_get_job(const char *payload, size_t bytes, struct clab_arena *arena, struct clab_wire_job *out)
{
    struct reader in = {payload, bytes, false};
    struct clab_compile_request *request = &out->request;
    memset(out, 0, sizeof *out);
    request->source_path = get_text(&in, arena);
    request->source_text = get_text(&in, arena);
    request->arch = get_text(&in, arena);
    request->entry = get_text(&in, arena);
    request->want = (enum clab_image_kind)get_u64(&in);
    uint64_t flags = get_u64(&in);
    request->line_info = (flags & 1) != 0;
    request->no_pch = (flags & 2) != 0;
    request->adopt_suffix = (flags & 4) != 0;
    request->per_chip = (flags & 8) != 0;
    out->assemble = (flags & 16) != 0;
    request->include_dirs = get_list(&in, arena, &request->include_dir_count);
    request->defines = get_list(&in, arena, &request->define_count);
    request->options = get_list(&in, arena, &request->option_count);
    for (int i = 0; i < CLAB_PART_COUNT; i++) {
        struct clab_part *part = &out->toolkit.parts[i];
        const char *path = get_text(&in, arena);
        part->name = part->use = part->remedy = "";
        part->found = path != NULL;
        if (path != NULL && strlen(path) < sizeof part->path)
            strcpy(part->path, path);
    }
    out->pch.key = get_text(&in, arena);
    out->pch.kept_dir = get_text(&in, arena);
    out->pch.scratch_dir = get_text(&in, arena);
    out->pch.make = get_u64(&in) != 0;
    return !in.bad && in.left == 0 && request->source_path != NULL;
}

void clab_wire_put_result(struct clab_str *out, const struct clab_compile_result *result)
{
    size_t start = begin(out);
    put_u64(out, (uint64_t)result->status);
    struct clab_error error = result->error;
    error.log = NULL;
    clab_str_add_bytes(out, (const char *)&error, sizeof error);
    put_text(out, result->error.log);
    const struct clab_image *image = &result->image;
    struct clab_image flat = *image;
    flat.data = flat.ptx = flat.source_path = flat.entry = flat.lowered = flat.log = NULL;
    clab_str_add_bytes(out, (const char *)&flat, sizeof flat);
    put_bytes(out, image->data, image->bytes);
    put_bytes(out, image->ptx, image->ptx_bytes);
    put_text(out, image->source_path);
    put_text(out, image->entry);
    put_text(out, image->lowered);
    put_text(out, image->log);
    end(out, start);
}

bool clab_wire_get_result(const char *payload, size_t bytes, struct clab_compile_result *out)
{
    struct reader in = {payload, bytes, false};
    size_t ignored;
    memset(out, 0, sizeof *out);
    uint64_t status = get_u64(&in);
    get_raw(&in, &out->error, sizeof out->error);
    out->error.log = get_heap(&in, &ignored);
    get_raw(&in, &out->image, sizeof out->image);
    struct clab_image *image = &out->image;
    image->data = get_heap(&in, &image->bytes);
    image->ptx = get_heap(&in, &image->ptx_bytes);
    image->source_path = get_heap(&in, &ignored);
    image->entry = get_heap(&in, &ignored);
    image->lowered = get_heap(&in, &ignored);
    image->log = get_heap(&in, &ignored);
    if (!in.bad && in.left == 0 && status < CLAB_STATUS_COUNT) {
        out->status = (clab_status)status;
        return true;
    }
    clab_compile_result_free(out);
    return false;
}
