/* The device buffers of one plan buffer set: allocated, filled, reset and checked in a worker. */
#ifndef CLAB_LAB_BUFFERS_H
#define CLAB_LAB_BUFFERS_H

#include <jansson.h>

#include "base/error.h"
#include "lab/device.h"
#include "lab/fill.h"

#define CLAB_MAX_FILLS 8

struct clab_buffer {
    char name[64];
    enum clab_element element;
    uint64_t count, offset_bytes;
    CUdeviceptr allocation, address;     /* address = allocation + guard + offset_bytes */
    uint64_t before_bytes, after_bytes;  /* of guard pattern around the elements, 0 none */
    CUdeviceptr pristine;                /* the fill in force, to reset from what no memset makes; 0 none */
    CUdeviceptr shadows[CLAB_MAX_FILLS]; /* what the reference kernel left, by pass; 0 not run yet */
    struct clab_fill fills[CLAB_MAX_FILLS];
    unsigned n_fills;
    const char *file;       /* contents come from this file instead of a fill; borrowed from the set's JSON */
    bool reset_each_launch; /* before each launch, outside its time */
    bool reset_timed;   /* before each launch, as a part of it: the kernel's contract includes the reset */
    bool verified_only; /* its expectation holds for the verifying arguments, not for the timed ones */
    bool wanted_sum;
    const json_t *expect; /* NULL when nothing is checked; borrowed from the set's JSON */
    double tolerance_abs, tolerance_rel;
    long double
        sums[CLAB_MAX_FILLS]; /* of each fill, when some buffer expects sum_of this one; computed once */
    bool sum_known[CLAB_MAX_FILLS];
};

/* On a device that does not check accesses itself, CLAB_GUARD_BYTES of a pattern stand before each buffer
   with an expectation and after every buffer. They are written with each fill and read with each check. */
#define CLAB_GUARD_BYTES 4096u
#define CLAB_GUARD_BYTE  0xb6

/* Host memory that a buffer's contents pass through. */
#define CLAB_CHUNK_BYTES (UINT64_C(64) << 20)

struct clab_buffer_set {
    json_t *json; /* reference held */
    struct clab_buffer *buffers;
    size_t count;
    unsigned n_fills; /* passes of a verification: the longest fill list */
    bool as_timed;    /* what is checked was launched with the timed arguments */
};

/* Allocates the buffers of a plan's buffer set (array of buffer objects). On failure nothing stays allocated.
   Errors: EXPERIMENT (malformed), WAIVED (the set does not fit the device's memory), DRIVER. */
clab_status clab_buffers_new(const struct clab_device *device, json_t *set, struct clab_buffer_set *out_set,
                             struct clab_error *error);
void clab_buffers_free(const struct clab_device *device, struct clab_buffer_set *set);

/* Whether a buffer's expectation is a reference kernel whose result for this pass is not there yet. */
bool clab_buffer_needs_reference(const struct clab_buffer *buffer, unsigned pass);
/* Makes that result's place in device memory, with the buffer's present contents. Errors: WAIVED, DRIVER. */
clab_status clab_buffer_shadow(const struct clab_device *device, struct clab_buffer *buffer, unsigned pass,
                               struct clab_error *error);
/* Gives it up, when the reference kernel did not come to its end. */
void clab_buffer_drop_shadow(const struct clab_device *device, struct clab_buffer *buffer, unsigned pass);

/* Stores fill number `pass` (modulo each list's length) in every buffer, synchronously, and computes wanted
   sums. Where the device is timed, that is, fast, it fills by itself what it can. */
clab_status clab_buffers_fill(const struct clab_device *device, struct clab_buffer_set *set, unsigned pass,
                              struct clab_error *error);
/* Queues on the device's stream what is restored before each launch: the buffers with `reset = "launch"`, or,
   with `timed`, those with `reset = "timed"`. */
clab_status clab_buffers_reset(const struct clab_device *device, const struct clab_buffer_set *set,
                               unsigned pass, bool timed, struct clab_error *error);
/* Whether clab_buffers_reset has anything to do. */
bool clab_buffers_have_reset(const struct clab_buffer_set *set, bool timed);
/* Reads back every buffer with an expectation and compares, and the guards around the buffers where there are
   some. CLAB_OK, CLAB_WRONG with the first mismatch (index, got, wanted, fills) in `error`, or a driver
   error. The stream must be idle. */
clab_status clab_buffers_check(const struct clab_device *device, const struct clab_buffer_set *set,
                               unsigned pass, struct clab_error *error);
/* Elements of every buffer marked "dump" as {name: [numbers]}, at most CLAB_DUMP_LIMIT of each; non-finite
   floats as text. New reference in *out_dumps. The stream must be idle. */
#define CLAB_DUMP_LIMIT 65536
clab_status clab_buffers_dump(const struct clab_device *device, const struct clab_buffer_set *set,
                              json_t **out_dumps, struct clab_error *error);
/* The buffer of that name, or NULL; and the bytes of a buffer's elements. */
struct clab_buffer *clab_buffers_find(const struct clab_buffer_set *set, const char *name);
uint64_t clab_buffer_bytes(const struct clab_buffer *buffer);
/* Device address of a buffer by name, 0 when unknown; for clab_launch_prepare (context: the set). */
CUdeviceptr clab_buffers_address(const char *name, void *set);

#endif
