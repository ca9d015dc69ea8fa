/* Requests and answers between the parent and a compile worker: length-prefixed fields in one length-prefixed
   message over a pipe, between two processes of the same program. Private to this room. */
#ifndef CLAB_COMPILE_WIRE_H
#define CLAB_COMPILE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "compile/compile.h"
#include "compile/pch.h"

/* Before each message: a mark that changes with the layout, and the payload's length. */
struct clab_wire_head {
    uint32_t mark;
    uint32_t layout; /* sizeof(struct clab_error) ^ sizeof(struct clab_image) << 16 */
    uint64_t bytes;
};
#define CLAB_WIRE_MARK  0x31434c43u /* "CLC1" */
#define CLAB_WIRE_LIMIT ((uint64_t)1 << 32)

/* What a worker is asked: a request with its source text, and where the compilers are. */
struct clab_wire_job {
    struct clab_compile_request request;
    struct clab_toolkit toolkit; /* only `found` and `path` of the parts */
    struct clab_pch_plan pch;
    bool assemble; /* source_text is PTX, whatever source_path ends in */
};

/* Appends a whole message, head and all. str->failed when memory ran out. */
void clab_wire_put_job(struct clab_str *out, const struct clab_wire_job *job);
void clab_wire_put_result(struct clab_str *out, const struct clab_compile_result *result);
/* Decodes a payload. Strings of a job live in the arena; a result owns its memory. False when it makes no
 * sense. */
bool clab_wire_get_job(const char *payload, size_t bytes, struct clab_arena *arena,
                       struct clab_wire_job *out);
bool clab_wire_get_result(const char *payload, size_t bytes, struct clab_compile_result *out);
/* Whether a head is one of ours, with a length that can be believed. */
bool clab_wire_head_good(const struct clab_wire_head *head);

#endif
