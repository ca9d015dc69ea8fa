/* "Green Contexts": the primary context with a part of the device's SMs. A green context has one handle,
   which is its CUcontext too, as on an H200; memory, modules and events are the primary context's. What its
   streams run sees a device with fewer SMs: fewer CTAs and clusters are resident; %nsmid stays the whole
   device's.

   Resources are sets of SMs. SMs are numbered group after group of the model (sm_groups). How an H200's
   driver 580.159.04 splits its 132 SMs is in tests/api/data/h200_resources.txt: sizes are multiples of eight
   that come from different groups, eight at a time; without regard to groups, multiples of two. UNVERIFIED:
   which groups a split for large clusters takes (whole ones here, as the counts for 64 SMs say), and all of
   it on other devices.
 */
#include "emu/api_context.h"

#include <stdlib.h>
#include <string.h>

#define LEAST         8u /* CC 9.0 and later (CUDA Driver API 13.0, "Green Contexts") */
#define LEAST_ANY     2u /* without regard to groups */
#define SETS          3u
#define MAX_RESOURCES 4096u

/* SMs, one bit each. */
struct sm_set {
    uint64_t bits[SETS];
};

/* What the padding of a CUdevResource holds. */
struct resource {
    uint64_t magic;
    struct sm_set sms;
    bool from_split; /* cannot be split again */
};
#define RESOURCE_MAGIC UINT64_C(0x636c6162736d7365)
_Static_assert(sizeof(struct resource) <= sizeof((CUdevResource *)0)->_internal_padding,
               "fits the API's struct");

/* What a descriptor stands for. */
struct resources {
    CUdevResourceDesc handle;
    struct sm_set sms;
};

/* ---- sets of SMs ---- */

static unsigned sm_count(const struct sm_set *set)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SETS; i++)
        count += (unsigned)__builtin_popcountll(set->bits[i]);
    return count;
}

static bool has(const struct sm_set *set, unsigned sm)
{
    return (set->bits[sm / 64] >> sm % 64 & 1) != 0;
}

static void move(struct sm_set *from, struct sm_set *to, unsigned sm)
{
    from->bits[sm / 64] &= ~(UINT64_C(1) << sm % 64);
    to->bits[sm / 64] |= UINT64_C(1) << sm % 64;
}

static struct sm_set all_sms(const struct emu_model *model)
{
    struct sm_set set = {{0}}, none = {{0}};
    for (unsigned sm = 0; sm < model->sms && sm < SETS * 64; sm++)
        move(&none, &set, sm);
    return set;
}

/* SMs of the set in each of the model's groups; returns the number of groups. */
static unsigned by_group(const struct emu_model *model, const struct sm_set *set, uint8_t out[32])
{
    unsigned sm = 0, groups = 0;
    for (; groups < sizeof model->sm_groups && model->sm_groups[groups] != 0; groups++) {
        out[groups] = 0;
        for (unsigned i = 0; i < model->sm_groups[groups]; i++, sm++)
            out[groups] = (uint8_t)(out[groups] + has(set, sm));
    }
    return groups;
}

/* Moves up to `count` SMs of that group. */
static unsigned take_from(const struct emu_model *model, struct sm_set *free_sms, struct sm_set *to,
                          unsigned group, unsigned count)
{
    unsigned sm = 0, taken = 0;
    for (unsigned i = 0; i < group; i++)
        sm += model->sm_groups[i];
    for (unsigned i = 0; i < model->sm_groups[group] && taken < count; i++, sm++)
        if (has(free_sms, sm)) {
            move(free_sms, to, sm);
            taken++;
        }
    return taken;
}

/* `size` SMs: rounds over the groups, `step` SMs from each that has as many (0: as many as there are); then
   whatever is left. */
static struct sm_set take(const struct emu_model *model, struct sm_set *free_sms, unsigned size,
                          unsigned step)
{
    struct sm_set set = {{0}};
    uint8_t left[32];
    unsigned taken = 0;
    for (bool progress = true; progress && taken < size;) {
        const unsigned groups = by_group(model, free_sms, left);
        progress = false;
        for (unsigned i = 0; i < groups && taken < size; i++)
            if (left[i] > 0 && left[i] >= step) {
                const unsigned wanted = step != 0 ? step : left[i];
                taken += take_from(model, free_sms, &set, i, size - taken < wanted ? size - taken : wanted);
                progress = true;
            }
    }
    const unsigned groups = by_group(model, free_sms, left);
    for (unsigned i = 0; i < groups && taken < size; i++)
        taken += take_from(model, free_sms, &set, i, size - taken);
    return set;
}

/* The device with these SMs only. */
static struct emu_model model_with(const struct emu_model *model, const struct sm_set *set)
{
    struct emu_model part = *model;
    uint8_t left[32];
    const unsigned groups = by_group(model, set, left);
    unsigned n = 0;
    memset(part.sm_groups, 0, sizeof part.sm_groups);
    for (unsigned i = 0; i < groups; i++)
        if (left[i] != 0)
            part.sm_groups[n++] = left[i];
    part.sms = sm_count(set);
    memcpy(part.sm_bits, set->bits, sizeof set->bits);
    return part;
}

/* ---- resources ---- */

/* `whole`: of the device or a green context, which says how it may be split. */
static void describe(CUdevResource *resource, const struct sm_set *set, bool whole)
{
    const struct resource inside = {.magic = RESOURCE_MAGIC, .sms = *set, .from_split = !whole};
    memset(resource, 0, sizeof *resource);
    if (sm_count(set) == 0)
        return; /* CU_DEV_RESOURCE_TYPE_INVALID */
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    memcpy(resource->_internal_padding, &inside, sizeof inside);
    resource->sm.smCount = sm_count(set);
    resource->sm.minSmPartitionSize = whole ? LEAST : 0;
    resource->sm.smCoscheduledAlignment = whole ? LEAST : 0;
}

static CUresult resource_get(const CUdevResource *resource, struct resource *out)
{
    if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
        return api_set_error(CUDA_ERROR_INVALID_RESOURCE_TYPE, "resource type %d", (int)resource->type);
    memcpy(out, resource->_internal_padding, sizeof *out);
    const struct sm_set all = all_sms(api_device()->model);
    bool inside = out->magic == RESOURCE_MAGIC;
    for (unsigned i = 0; i < SETS; i++)
        inside = inside && (out->sms.bits[i] & ~all.bits[i]) == 0;
    return inside ? CUDA_SUCCESS : api_set_error(CUDA_ERROR_INVALID_VALUE, "not a resource of this device");
}

/* Ends the call. */
static CUresult give(CUdevResource *resource, const struct sm_set *set, CUdevResourceType type)
{
    API_REQUIRE(resource != NULL);
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return api_fail(CUDA_ERROR_INVALID_RESOURCE_TYPE, "resource type %d", (int)type);
    describe(resource, set, true);
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    API_ENTER();
    if (device != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", device);
    const struct sm_set all = all_sms(api_device()->model);
    return give(resource, &all, type);
}

struct green {
    struct api_green green;
    struct sm_set sms;
};

static CUresult enter_green(const char *call, CUgreenCtx handle, struct green **out_green)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_green = emu_handle_get(EMU_HANDLE_GREEN, handle);
    return *out_green != NULL
               ? CUDA_SUCCESS
               : api_fail(emu_handle_was(EMU_HANDLE_GREEN, handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                   : CUDA_ERROR_INVALID_CONTEXT,
                          "not a live green context");
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct green *green;
    CUresult result = enter_green(__func__, hCtx, &green);
    return result == CUDA_SUCCESS ? give(resource, &green->sms, type) : result;
}

CUresult CUDAAPI cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    API_ENTER();
    const struct green *green = emu_handle_get(EMU_HANDLE_GREEN, hCtx);
    if (hCtx == NULL || api_context_get(hCtx) == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a live context");
    const struct sm_set all = all_sms(api_device()->model);
    return give(resource, green != NULL ? &green->sms : &all, type);
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                             const CUdevResource *input, CUdevResource *remaining,
                                             unsigned int useFlags, unsigned int minCount)
{
    const unsigned any = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING,
                   large = CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    API_ENTER();
    const struct emu_model *model = api_device()->model;
    struct resource from;
    API_REQUIRE(nbGroups != NULL && input != NULL);
    CUresult found = resource_get(input, &from);
    if (found != CUDA_SUCCESS)
        return api_result(found);
    API_REQUIRE((useFlags & (any | large)) != (any | large)); /* other bits are not looked at, on the H200 */
    const unsigned total = sm_count(&from.sms), unit = (useFlags & any) != 0 ? LEAST_ANY : LEAST;
    if (minCount > total || from.from_split)
        return api_fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                        from.from_split ? "what a split gave cannot be split again"
                                        : "more SMs than the resource has");
    unsigned size = (minCount + unit - 1) / unit * unit, groups = 0;
    size = size == 0 ? unit : size > total ? total : size;
    if (size == LEAST && unit == LEAST) { /* each inside one group of SMs */
        uint8_t left[32];
        for (unsigned i = by_group(model, &from.sms, left); i-- > 0;)
            groups += left[i] / LEAST;
    } else {
        groups = total / size;
    }
    if (result == NULL) {
        *nbGroups = groups;
        return api_leave();
    }
    API_REQUIRE(*nbGroups > 0);
    if (*nbGroups > groups)
        *nbGroups = groups;
    for (unsigned i = 0; i < *nbGroups; i++) {
        const struct sm_set set = take(model, &from.sms, size, (useFlags & large) != 0 ? 0 : unit);
        describe(&result[i], &set, false);
    }
    if (remaining != NULL)
        describe(remaining, &from.sms, false);
    return api_leave();
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                           unsigned int nbResources)
{
    API_ENTER();
    API_REQUIRE(phDesc != NULL && resources != NULL && nbResources > 0 && nbResources <= MAX_RESOURCES);
    struct sm_set set = {{0}};
    for (unsigned i = 0; i < nbResources; i++) {
        struct resource one;
        CUresult result = resource_get(&resources[i], &one);
        if (result != CUDA_SUCCESS)
            return api_result(result);
        for (unsigned j = 0; j < SETS; j++)
            set.bits[j] |= one.sms.bits[j];
    }
    struct resources *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->handle = emu_handle_new(EMU_HANDLE_RESOURCES, made); /* kept: no call gives it back */
    if (made == NULL || made->handle == NULL) {
        free(made);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a descriptor");
    }
    made->sms = set;
    *phDesc = made->handle;
    return api_leave();
}

/* ---- green contexts ---- */

void api_green_release(struct api_green *green)
{
    if (--green->refs == 0)
        free(green); /* the first member of a struct green */
}

struct api_green *api_green_of(CUcontext handle)
{
    struct green *green = emu_handle_get(EMU_HANDLE_GREEN, handle);
    return green != NULL ? &green->green : NULL;
}

struct api_green *api_green_current(void)
{
    const struct api_thread *thread = api_thread();
    return thread->depth > 0 ? api_green_of(thread->stack[thread->depth - 1]) : NULL;
}

const struct emu_model *api_model_of(const struct api_green *green)
{
    return green != NULL ? &green->model : api_device()->model;
}

/* Its streams can be used no more; what they were given is done first. */
static void end(struct api_green *green)
{
    emu_handle_free(green->handle);
    green->handle = NULL;
    for (struct api_stream *stream = green->primary->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->green == green)
            api_stream_destroy(stream);
    }
    api_green_release(green);
}

void api_greens_end(struct api_context *context)
{
    size_t cursor = 0;
    for (struct green *green; (green = emu_handle_next(EMU_HANDLE_GREEN, &cursor)) != NULL;)
        if (green->green.primary == context)
            end(&green->green);
}

static struct api_stream *stream_of(struct api_green *green, unsigned flags, int priority)
{
    struct api_stream *stream = api_stream_new(green->primary, flags, priority);
    if (stream != NULL) {
        stream->green = green;
        green->refs++;
    }
    return stream;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
    API_ENTER();
    API_REQUIRE(phCtx != NULL);
    if (dev != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", dev);
    API_REQUIRE(flags == CU_GREEN_CTX_DEFAULT_STREAM);
    const struct emu_model *model = api_device()->model;
    const struct resources *resources = emu_handle_get(EMU_HANDLE_RESOURCES, desc);
    API_REQUIRE(desc == NULL || resources != NULL); /* none: all of the device */
    struct api_context *primary;
    CUresult retained = api_primary_retain(&primary);
    if (retained != CUDA_SUCCESS)
        return api_result(retained);
    struct green *green = calloc(1, sizeof *green);
    if (green == NULL) {
        api_primary_release();
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a green context");
    }
    green->sms = resources != NULL ? resources->sms : all_sms(model);
    green->green.model = model_with(model, &green->sms);
    green->green.primary = primary;
    green->green.id = api_context_next_id();
    green->green.refs = 1;
    green->green.handle = emu_handle_new(EMU_HANDLE_GREEN, green);
    green->green.legacy =
        green->green.handle != NULL ? stream_of(&green->green, CU_STREAM_NON_BLOCKING, 0) : NULL;
    if (green->green.legacy == NULL) {
        emu_handle_free(green->green.handle);
        free(green);
        api_primary_release();
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a green context");
    }
    *phCtx = green->green.handle;
    return api_leave();
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct green *green;
    CUresult result = enter_green(__func__, hCtx, &green);
    if (result != CUDA_SUCCESS)
        return result;
    end(&green->green);
    api_primary_release();
    return api_leave();
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    struct green *green;
    CUresult result = enter_green(__func__, hCtx, &green);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pContext != NULL);
    *pContext = (CUcontext)hCtx;
    return api_leave();
}

CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    struct green *green;
    CUresult result;
    if (greenCtx != NULL) {
        result = enter_green(__func__, greenCtx, &green);
        if (result != CUDA_SUCCESS)
            return result;
        API_REQUIRE(greenCtxId != NULL);
        *greenCtxId = green->green.id;
        return api_leave();
    }
    API_ENTER();
    const struct api_green *current = api_green_current();
    if (current == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no green context is current to this thread");
    API_REQUIRE(greenCtxId != NULL);
    *greenCtxId = current->id;
    return api_leave();
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                        int priority)
{
    struct green *green;
    CUresult result = enter_green(__func__, greenCtx, &green);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(phStream != NULL && flags == CU_STREAM_NON_BLOCKING);
    if (priority > API_PRIORITY_LEAST) /* clamped, as documented */
        priority = API_PRIORITY_LEAST;
    if (priority < API_PRIORITY_GREATEST)
        priority = API_PRIORITY_GREATEST;
    struct api_stream *stream = stream_of(&green->green, flags, priority);
    if (stream == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a stream");
    *phStream = stream->handle;
    return api_leave();
}

/* ---- events ---- */

/* Enters; INVALID_HANDLE, and STREAM_CAPTURE_UNSUPPORTED while a stream of it is capturing. */
static CUresult enter_event(const char *call, CUgreenCtx handle, CUevent hEvent, struct green **out_green,
                            struct api_event **out_event)
{
    CUresult result = enter_green(call, handle, out_green);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_context *primary = (*out_green)->green.primary;
    bool capturing = false;
    *out_event = emu_handle_get(EMU_HANDLE_EVENT, hEvent);
    if (*out_event == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a live event");
    for (struct api_stream *stream = primary->streams; stream != NULL; stream = stream->next)
        if (stream->green == &(*out_green)->green && stream->capture != NULL) {
            api_capture_invalidate(stream->capture);
            capturing = true;
        }
    return capturing
               ? api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream of the green context is capturing")
               : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct green *green;
    struct api_event *event;
    CUresult result = enter_event(__func__, hCtx, hEvent, &green, &event);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_stream *legacy = green->green.legacy;
    for (struct api_stream *stream = green->green.primary->streams; stream != NULL && result == CUDA_SUCCESS;
         stream = stream->next)
        if (stream->green == &green->green && stream != legacy && !api_stream_idle(stream))
            result = api_stream_wait_task(legacy, stream, stream->issued, NULL);
    if (result == CUDA_SUCCESS)
        result = api_event_record(event, legacy, false);
    return api_result(result);
}

CUresult CUDAAPI cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct green *green;
    struct api_event *event;
    CUresult result = enter_event(__func__, hCtx, hEvent, &green, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->capture != NULL) {
        api_capture_invalidate(event->capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the event is part of a capture");
    }
    for (struct api_stream *stream = green->green.primary->streams; stream != NULL && result == CUDA_SUCCESS;
         stream = stream->next)
        if (stream->green == &green->green)
            result = api_stream_wait_event(stream, event);
    return api_result(result);
}
