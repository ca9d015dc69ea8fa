/* Errors: one status list (errors.def), one record that says what failed, where, wanted and got, and the
   remedy. Library code fills a struct clab_error and returns its status; only host/main.c prints or exits. */
#ifndef CLAB_BASE_ERROR_H
#define CLAB_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum clab_status {
#define CLAB_STATUS(id, text, exit_status) CLAB_##id,
#include "base/errors.def"
#undef CLAB_STATUS
    CLAB_STATUS_COUNT
} clab_status;

/* Where in a running grid something happened. A member is meaningful only when its `has_` flag is set. */
struct clab_where {
    bool has_cta, has_warp, has_lane;
    uint32_t cluster[3]; /* %clusterid */
    uint32_t cta[3];     /* %ctaid */
    uint32_t cta_rank;   /* %cluster_ctarank */
    uint32_t warp, lane; /* warp index in its CTA, lane 0..31 */
};

/* One failure. Zero-initialise (or clab_error_clear) before use; fixed-size text is truncated, never overrun.
   `log` is heap memory that clab_error_clear frees. */
struct clab_error {
    clab_status status;
    char message[1024];    /* what failed, wanted and got; lower case, no full stop */
    char file[512];        /* "" when no file is involved */
    uint32_t line, column; /* 1-based; 0 unknown */
    char source_line[256]; /* the text of that line, for the caret */
    char kernel[256];
    char origin[512];      /* where it stands in the CUDA source: "k.cu:12, inlined at k.cu:40"; "" unknown */
    char instruction[256]; /* PTX text of the instruction */
    struct clab_where where;
    char space[24]; /* state space of a memory access, "" none */
    bool has_address;
    uint64_t address;
    char native_call[64]; /* driver or library call */
    int native_code;      /* its result; 0 when native_call is "" */
    char native_name[64]; /* its name, e.g. CUDA_ERROR_INVALID_PTX */
    char remedy[512];     /* "" when none is known */
    char *log;            /* compiler or driver log, or NULL */
};

#define CLAB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Text and process exit status of a status code. Never NULL. */
const char *clab_status_text(clab_status status);
int clab_status_exit(clab_status status);
/* The worse of two exit statuses in the order 130, 1, 6, 5, 4, 3, 2, 0. */
int clab_exit_worse(int a, int b);

/* The one function that builds an error (a breakpoint here finds all). Keeps no earlier content except
   nothing: the record is cleared first. `error` may be NULL. Returns `status`, so that callers can `return`
   it. */
clab_status clab_error_set(struct clab_error *error, clab_status status, const char *format, ...)
    CLAB_PRINTF(3, 4);
clab_status clab_error_vset(struct clab_error *error, clab_status status, const char *format, va_list args)
    CLAB_PRINTF(3, 0);
/* Additions to a record made by clab_error_set. All accept error == NULL. Each returns error->status. */
clab_status clab_error_at(struct clab_error *error, const char *file, uint32_t line, uint32_t column);
clab_status clab_error_remedy(struct clab_error *error, const char *format, ...) CLAB_PRINTF(2, 3);
clab_status clab_error_native(struct clab_error *error, const char *call, int code, const char *name);
/* Copies `bytes` of text (SIZE_MAX: up to the NUL) as the log; leading and trailing white space is dropped.
 */
clab_status clab_error_log(struct clab_error *error, const char *text, size_t bytes);
/* Puts "prefix: " before the message, for callers that add context. */
clab_status clab_error_context(struct clab_error *error, const char *format, ...) CLAB_PRINTF(2, 3);
/* Copies `from` (log duplicated) over `to`, freeing what `to` held. */
void clab_error_copy(struct clab_error *to, const struct clab_error *from);
/* Frees the log and zeroes the record. */
void clab_error_clear(struct clab_error *error);

/* The whole error as text for a person: "file:line:col: message", caret, place, native code, remedy, log; "?"
   for control characters. Heap memory that the caller frees; NULL only when memory is out. */
char *clab_error_format(const struct clab_error *error);

#endif
