/* Loading an image and launching a kernel of it, in a worker. */
#ifndef CLAB_LAB_LAUNCH_H
#define CLAB_LAB_LAUNCH_H

#include <jansson.h>

#include "base/error.h"
#include "lab/device.h"

/* What the stand-in driver calls PTX that came without a file name (cuModuleLoadData). */
#define CLAB_UNNAMED_SOURCE "ptx input"
/* Puts the name of the file that the user knows, `source`, in its place in the error and its log. */
void clab_error_name_source(struct clab_error *error, const char *source);

struct clab_loaded {
    CUmodule module;
    CUfunction function;
    char entry[256];
    char source[512]; /* for messages */
    int registers, static_shared_bytes, local_bytes, max_threads;
    size_t n_params; /* SIZE_MAX: the driver cannot say */
    size_t param_bytes[256];
};

/* Loads the image file at `path` (PTX or cubin), fetches `entry`, reads its resources. `source` is the name
   for messages. The driver's JIT log goes into the error. On failure nothing stays loaded. Errors: LOAD,
   PTX_*, NOT_FOUND (an entry that does not exist; those that do are listed where the driver can tell),
   UNSUPPORTED, OUTPUT (file). */
clab_status clab_load(const struct clab_device *device, const char *path, const char *source,
                      const char *entry, struct clab_loaded *out_loaded, struct clab_error *error);
void clab_unload(const struct clab_device *device, struct clab_loaded *loaded);

/* A launch ready to be submitted any number of times. */
struct clab_launch {
    CUlaunchConfig config;
    CUlaunchAttribute attributes[4];
    const struct clab_loaded *loaded;
    unsigned cluster[3];
    bool has_cluster;
    int active_clusters; /* the occupancy query's answer, with a cluster */
    void *params[256];
    unsigned char values[256][128]; /* storage of the arguments, each at most 128 bytes (a tensor map) */
};

/* The grid of a plan row, in CTAs: the one that it names, or what its "fit" comes to on this device with this
   kernel. Errors: as clab_launch_prepare. */
clab_status clab_launch_grid(const struct clab_device *device, const struct clab_loaded *loaded,
                             const json_t *row, unsigned out_grid[3], struct clab_error *error);
/* Names the kernel's source in an error about it; returns the error's status. */
clab_status clab_launch_blame(struct clab_error *error, const struct clab_loaded *loaded);

/* Fills *launch from a plan row's {"launch":{…},"args":[…]}. buffer_address(name, context) gives the device
   address of a buffer, 0 for an unknown name. Resolves "fit", opts in to large dynamic shared memory and
   non-portable cluster sizes, and asks the occupancy query whether the shape fits at all. Errors: WAIVED (the
   device cannot hold it, with the query's answer), EXPERIMENT (arguments that do not match the kernel's
   parameters; grid that does not divide), LAUNCH, DRIVER. */
clab_status clab_launch_prepare(const struct clab_device *device, const struct clab_loaded *loaded,
                                const json_t *row,
                                CUdeviceptr (*buffer_address)(const char *name, void *context), void *context,
                                struct clab_launch *launch, struct clab_error *error);
/* Queues the launch on the device's stream. */
clab_status clab_launch_submit(const struct clab_device *device, struct clab_launch *launch,
                               struct clab_error *error);
/* Waits for the stream; kernel faults surface here. */
clab_status clab_device_wait(const struct clab_device *device, struct clab_error *error);
/* The launch as recorded: {"grid":[…],"block":[…],"cluster":[…]|null,"smem_bytes":n}. */
json_t *clab_launch_to_json(const struct clab_launch *launch);

#endif
