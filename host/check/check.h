/* The hazard checker as the stand-in driver sees it: hooks for launches, and the hazards found (hazard.h). */
#ifndef CLAB_CHECK_CHECK_H
#define CLAB_CHECK_CHECK_H

#include <stdbool.h>

#include "check/hazard.h"

struct emu_hooks;
struct check;

/* What the driver knows of a launch's place among others: it is task `number` of its stream, and what it
   knows to be done before it starts. Earlier tasks of the same stream are; so is what is in `known`. */
struct check_known {
    uint64_t stream, number; /* its tasks up to this one */
};
struct check_task {
    uint64_t stream, number;
    bool programmatic; /* may start before the task before it has ended (programmatic stream serialization) */
    bool everything;   /* nobody can say: all that came before counts as known */
    uint32_t node;     /* of a graph's launch: which of its nodes, from 1; 0: none, or they count as one */
    const uint64_t *before; /* a bit for each node that is done before this one; lives as long as the task */
    size_t n;
    struct check_known known[];
};
/* What a copy, a set or an allocation by the driver touches: rows of `width` bytes, `pitch` bytes apart. */
struct check_range {
    uint64_t address, pitch, width, rows;
    bool write, allocates;
};
/* A copy, set or allocation in stream order that has run as `task`: compared with what ran before, and kept
   for what comes later, like a launch. At most two ranges. */
void check_driver_access(const struct check_task *task, const struct check_range *ranges, unsigned n);
/* Memory that is freed in stream order, as `task`, just before it is: compared with what ran before. */
void check_driver_free(const struct check_task *task, uint64_t address, uint64_t bytes);
/* A copy or set by the driver that found its memory freed. */
void check_driver_gone(uint64_t address);
/* From now on every launch to come knows these. */
void check_launches_known(const struct check_known *known, size_t n);
/* From now on every launch to come knows all that came before. */
void check_launches_settled(void);
/* The memory is no longer what launches so far accessed there. */
void check_memory_freed(uint64_t address, uint64_t bytes);

/* What channel->hazards points at. */
extern const struct clab_hazards check_channel;
/* Hooks for a launch, or NULL while the checks are off. */
const struct emu_hooks *check_hooks(void);
bool check_kind_enabled(unsigned kind);
/* Checks all launches from now on, and appends what is found to a file (struct clab_check_log) instead of
   keeping it. False when it cannot be opened. */
bool check_log_to(const char *path);
/* Adds a hazard that no launch that runs has found. */
void check_add(const struct clab_hazard *hazard);

/* report.c, for check.c. */
void check_sort(struct clab_hazard *hazards, size_t n);
/* Copies the launch's hazards to `out` (may be NULL); their number. */
size_t check_found_give(struct check *check, struct clab_hazard *out);

#endif
