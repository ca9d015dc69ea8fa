/* The architecture table and the rules between its rows (PTX ISA 9.0, ".target" and "Release Notes"; each
   rule and least .version was tried with ptxas 13.0.88 on every pair of targets). Chips before CC 9.0 are
   known so that they can be named in messages; they have no clusters. */
#include "compile/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const struct clab_target targets[] = {
    {"sm_90", 90, 9, 0, 90, CLAB_REACH_FORWARD, 78, true},
    {"sm_90a", 90, 9, 0, 90, CLAB_REACH_EXACT, 80, true},
    {"sm_100", 100, 10, 0, 100, CLAB_REACH_FORWARD, 86, true},
    {"sm_100f", 100, 10, 0, 100, CLAB_REACH_FAMILY, 88, true},
    {"sm_100a", 100, 10, 0, 100, CLAB_REACH_EXACT, 86, true},
    {"sm_103", 103, 10, 3, 100, CLAB_REACH_FORWARD, 88, true},
    {"sm_103f", 103, 10, 3, 100, CLAB_REACH_FAMILY, 88, true},
    {"sm_103a", 103, 10, 3, 100, CLAB_REACH_EXACT, 88, true},
    {"sm_110", 110, 11, 0, 110, CLAB_REACH_FORWARD, 90, true},
    {"sm_110f", 110, 11, 0, 110, CLAB_REACH_FAMILY, 90, true},
    {"sm_110a", 110, 11, 0, 110, CLAB_REACH_EXACT, 90, true},
    {"sm_120", 120, 12, 0, 120, CLAB_REACH_FORWARD, 87, true},
    {"sm_120f", 120, 12, 0, 120, CLAB_REACH_FAMILY, 88, true},
    {"sm_120a", 120, 12, 0, 120, CLAB_REACH_EXACT, 87, true},
    {"sm_121", 121, 12, 1, 120, CLAB_REACH_FORWARD, 88, true},
    {"sm_121f", 121, 12, 1, 120, CLAB_REACH_FAMILY, 88, true},
    {"sm_121a", 121, 12, 1, 120, CLAB_REACH_EXACT, 88, true},
    {"sm_89", 89, 8, 9, 80, CLAB_REACH_FORWARD, 78, false},
    {"sm_88", 88, 8, 8, 80, CLAB_REACH_FORWARD, 90, false},
    {"sm_87", 87, 8, 7, 80, CLAB_REACH_FORWARD, 74, false},
    {"sm_86", 86, 8, 6, 80, CLAB_REACH_FORWARD, 71, false},
    {"sm_80", 80, 8, 0, 80, CLAB_REACH_FORWARD, 70, false},
    {"sm_75", 75, 7, 5, 70, CLAB_REACH_FORWARD, 63, false},
    {"sm_72", 72, 7, 2, 70, CLAB_REACH_FORWARD, 61, false},
    {"sm_70", 70, 7, 0, 70, CLAB_REACH_FORWARD, 60, false},
    {"sm_62", 62, 6, 2, 60, CLAB_REACH_FORWARD, 50, false},
    {"sm_61", 61, 6, 1, 60, CLAB_REACH_FORWARD, 50, false},
    {"sm_60", 60, 6, 0, 60, CLAB_REACH_FORWARD, 50, false},
    {"sm_53", 53, 5, 3, 50, CLAB_REACH_FORWARD, 42, false},
    {"sm_52", 52, 5, 2, 50, CLAB_REACH_FORWARD, 41, false},
    {"sm_50", 50, 5, 0, 50, CLAB_REACH_FORWARD, 40, false},
};
enum { TARGET_COUNT = sizeof targets / sizeof targets[0], CLUSTER_TARGET_COUNT = 17 };

const struct clab_target *clab_target_find(const char *text)
{
    static const char *const prefixes[] = {"sm_", "compute_", "lto_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
            text += strlen(prefixes[i]);
            break;
        }
    char name[16];
    /* Thor was CC 10.1 until CUDA 13.0 renamed it; ptxas still takes the old names. */
    if (strncmp(text, "101", 3) == 0)
        snprintf(name, sizeof name, "sm_110%s", text + 3);
    else
        snprintf(name, sizeof name, "sm_%s", text);
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

clab_status clab_target_parse(const char *text, const struct clab_target **out_target,
                              struct clab_error *error)
{
    *out_target = clab_target_find(text);
    if (*out_target != NULL)
        return CLAB_OK;
    const char *names[CLUSTER_TARGET_COUNT];
    struct clab_str list = {0};
    for (size_t i = 0; i < CLUSTER_TARGET_COUNT; i++) {
        names[i] = targets[i].name;
        clab_str_addf(&list, "%s%s", i > 0 ? " " : "", names[i]);
    }
    const char *near = clab_nearest_name(text, names, CLUSTER_TARGET_COUNT);
    clab_error_set(error, CLAB_USAGE, "no architecture is called '%s'%s%s%s", text,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    clab_error_remedy(error, "one of: %s", list.text != NULL ? list.text : "");
    clab_str_free(&list);
    return CLAB_USAGE;
}

const struct clab_target *clab_target_at(size_t index)
{
    return index < CLUSTER_TARGET_COUNT ? &targets[index] : NULL;
}

const struct clab_target *clab_target_of_device(int major, int minor)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (targets[i].major == major && targets[i].minor == minor && targets[i].reach == CLAB_REACH_FORWARD)
            return &targets[i];
    return NULL;
}

const struct clab_target *clab_target_exact(const struct clab_target *target)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (targets[i].number == target->number && targets[i].reach == CLAB_REACH_EXACT)
            return &targets[i];
    return target;
}

bool clab_target_ptx_runs(const struct clab_target *image, const struct clab_target *chip)
{
    switch (image->reach) {
    case CLAB_REACH_FORWARD:
        return chip->number >= image->number;
    case CLAB_REACH_FAMILY:
        return chip->family == image->family && chip->number >= image->number;
    case CLAB_REACH_EXACT:
        return image == chip;
    }
    return false;
}

bool clab_target_cubin_runs(const struct clab_target *image, const struct clab_target *device)
{
    if (image->reach == CLAB_REACH_EXACT)
        return image->number == device->number;
    if (image->reach == CLAB_REACH_FAMILY)
        return image->family == device->family && device->number >= image->number;
    return image->major == device->major && device->minor >= image->minor;
}

clab_status clab_target_check(const struct clab_target *image, bool is_ptx, const struct clab_target *chip,
                              struct clab_error *error)
{
    if (is_ptx ? clab_target_ptx_runs(image, chip) : clab_target_cubin_runs(image, chip))
        return CLAB_OK;
    clab_status status = is_ptx ? CLAB_PTX_TARGET : CLAB_LOAD;
    const char *what = is_ptx ? "PTX" : "a cubin";
    const char *why;
    if (image->number > chip->number)
        why = "it is for a later chip";
    else if (image->reach == CLAB_REACH_EXACT)
        why = "an architecture with the suffix a runs on exactly that chip";
    else if (image->reach == CLAB_REACH_FAMILY)
        why = "an architecture with the suffix f runs on chips of its own family only";
    else
        why = "a cubin runs on chips of its own major version only";
    clab_error_set(error, status, "%s for %s does not run on %s: %s", what, image->name, chip->name, why);
    /* The chip's plain form is always right; the suffixed one is needed where the source uses suffixed
     * features. */
    if (image->reach == CLAB_REACH_EXACT && image->number == chip->number)
        return clab_error_remedy(error, "assemble it for %s", image->name);
    if (chip->has_clusters)
        return clab_error_remedy(error, "compile it for %s%s%s (--arch)", chip->name,
                                 image->reach != CLAB_REACH_FORWARD ? " or " : "",
                                 image->reach != CLAB_REACH_FORWARD ? clab_target_exact(chip)->name : "");
    return clab_error_remedy(error, "clusters need compute capability 9.0 or later");
}
