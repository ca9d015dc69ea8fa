/* The hazard checker as the stand-in driver sees it: hooks for launches, and the hazards found (hazard.h). */
#ifndef CLAB_CHECK_CHECK_H
#define CLAB_CHECK_CHECK_H

#include <stdbool.h>

#include "check/hazard.h"

struct emu_hooks;
struct check;

/* What channel->hazards points at. */
extern const struct clab_hazards check_channel;
/* Hooks for a launch, or NULL while the checks are off. */
const struct emu_hooks *check_hooks(void);
bool check_kind_enabled(unsigned kind);

/* report.c, for check.c. */
void check_sort(struct clab_hazard *hazards, size_t n);
/* Copies the launch's hazards to `out` (may be NULL); their number. */
size_t check_found_give(struct check *check, struct clab_hazard *out);

#endif
