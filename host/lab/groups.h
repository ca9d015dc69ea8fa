/* The groups of SMs (GPCs, or what is left of them) that clusters are confined to, from occupancy queries. */
#ifndef CLAB_LAB_GROUPS_H
#define CLAB_LAB_GROUPS_H

#include <jansson.h>

#include "lab/device.h"

#define CLAB_GROUPS_MOST_SMS 32 /* of one group: the largest cluster that is asked about */

/* Solves active[size] = sum over groups of floor(SMs / size) for the groups. active[1] to
   active[CLAB_GROUPS_MOST_SMS] are the clusters of that many CTAs that the device holds at one CTA an SM.
   Stores the groups' sizes, largest first, in out_groups (room for `sms`), and returns how many there are; 0
   when the answers fit no set of groups with `sms` SMs in all. */
size_t clab_groups_solve(const int active[CLAB_GROUPS_MOST_SMS + 1], int sms, int *out_groups);

/* The device's groups as an array of numbers, or null where they cannot be known. requires:
 * clab_helpers_load. */
json_t *clab_groups_ask(const struct clab_device *device);

#endif
