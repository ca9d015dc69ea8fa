/* SM groups by asking. A cluster lies in one group, so with one CTA an SM the number of resident clusters of
   each size is a sum over groups (an H200's answers of 2026-11-30 follow that formula for every size). The
   query knows no limit of the cluster size, so that sizes above 16 tell groups of 17 and 18 SMs apart. Leaves
   out: which SM is in which group. */
#include "lab/groups.h"

#include <stdlib.h>

#include "lab/helpers.h"

size_t clab_groups_solve(const int active[CLAB_GROUPS_MOST_SMS + 1], int sms, int *out_groups)
{
    int groups[CLAB_GROUPS_MOST_SMS + 2] = {0}; /* by size */
    int larger = 0, total = 0;
    size_t n = 0;
    for (int size = CLAB_GROUPS_MOST_SMS; size >= 1; size--) {
        int at_least =
            active[size]; /* groups of `size` SMs or more, once those that hold several are counted once */
        for (int other = 2 * size; other <= CLAB_GROUPS_MOST_SMS; other++)
            at_least -= groups[other] * (other / size - 1);
        groups[size] = at_least - larger;
        if (groups[size] < 0 || total + groups[size] * size > sms)
            return 0;
        for (int i = 0; i < groups[size]; i++)
            out_groups[n++] = size;
        total += groups[size] * size;
        larger = at_least;
    }
    return total == sms ? n : 0;
}

/* The queries, with a kernel that fills an SM's shared memory. False when one is refused. */
static bool ask(const struct clab_device *device, CUfunction function, int active[CLAB_GROUPS_MOST_SMS + 1])
{
    const struct clab_driver *driver = device->driver;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    CUlaunchConfig config = {.gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    config.sharedMemBytes = (unsigned)device->max_shared_optin_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    for (unsigned size = 1; size <= CLAB_GROUPS_MOST_SMS; size++) {
        attribute.value.clusterDim.x = config.gridDimX = size;
        if (driver->cuOccupancyMaxActiveClusters(&active[size], function, &config) != CUDA_SUCCESS)
            return false;
    }
    return true;
}

json_t *clab_groups_ask(const struct clab_device *device)
{
    const struct clab_driver *driver = device->driver;
    const CUfunction function = device->helpers->blocker;
    const CUfunction_attribute large = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                               shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int active[CLAB_GROUPS_MOST_SMS + 1] = {0}, most = 0;
    if (device->sms < 1 || driver->cuFuncGetAttribute(&most, shared, function) != CUDA_SUCCESS)
        return json_null();
    int *groups = calloc((size_t)device->sms, sizeof *groups);
    size_t n = 0;
    if (groups != NULL && driver->cuFuncSetAttribute(function, large, 1) == CUDA_SUCCESS &&
        driver->cuFuncSetAttribute(function, shared, device->max_shared_optin_bytes) == CUDA_SUCCESS &&
        ask(device, function, active))
        n = clab_groups_solve(active, device->sms, groups);
    (void)driver->cuFuncSetAttribute(function, large, 0);
    (void)driver->cuFuncSetAttribute(function, shared, most);
    json_t *list = n != 0 ? json_array() : json_null();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(groups[i]));
    free(groups);
    return list;
}
