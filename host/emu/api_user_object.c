/* "Graph Management", user objects: memory of the program that lives as long as a graph, a copy or an
   instance of it needs it. When the last reference goes, the program's function is called on a thread of the
   library, as documented (cuUserObjectCreate): it may come at any time afterwards, and may make no driver
   call. */
#include "emu/api_graph.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

struct api_user_object {
    CUuserObject handle;
    unsigned refs, own; /* all of them; those of the program itself, which graphs do not hold */
    CUhostFn destroy;
    void *data;
};

static void *destroy_main(void *argument)
{
    struct api_user_object *object = argument;
    api_thread()->in_callback = true;
    object->destroy(object->data);
    free(object);
    return NULL;
}

static void release(struct api_user_object *object, unsigned count)
{
    pthread_t thread;
    pthread_attr_t attributes;
    object->refs -= count;
    if (object->refs > 0)
        return;
    emu_handle_free(object->handle);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, destroy_main, object) != 0)
        free(object); /* no thread: the program's memory is lost, nothing worse */
    pthread_attr_destroy(&attributes);
}

static struct api_retained *find(struct api_retainer *retainer, const struct api_user_object *object)
{
    for (size_t i = 0; i < retainer->count; i++)
        if (retainer->items[i].object == object)
            return &retainer->items[i];
    return NULL;
}

static bool retain(struct api_retainer *retainer, struct api_user_object *object, unsigned count)
{
    struct api_retained *item = find(retainer, object);
    if (item == NULL) {
        struct api_retained *grown = realloc(retainer->items, (retainer->count + 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        retainer->items = grown;
        item = &grown[retainer->count++];
        *item = (struct api_retained){.object = object};
    }
    item->refs += count;
    object->refs += count;
    return true;
}

bool api_retainer_copy(struct api_retainer *to, const struct api_retainer *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (!retain(to, from->items[i].object, 1))
            return false;
    return true;
}

void api_retainer_fini(struct api_retainer *retainer)
{
    for (size_t i = 0; i < retainer->count; i++)
        release(retainer->items[i].object, retainer->items[i].refs);
    free(retainer->items);
    *retainer = (struct api_retainer){0};
}

/* ---- calls ---- */

CUresult CUDAAPI cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                                    unsigned int initialRefcount, unsigned int flags)
{
    CUresult entered = api_enter_early(__func__); /* before cuInit too, on the H200 */
    if (entered != CUDA_SUCCESS)
        return entered;
    API_REQUIRE(object_out != NULL && destroy != NULL && initialRefcount > 0 &&
                flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    struct api_user_object *object = calloc(1, sizeof *object);
    if (object != NULL)
        object->handle = emu_handle_new(EMU_HANDLE_USER_OBJECT, object);
    if (object == NULL || object->handle == NULL) {
        free(object);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a user object");
    }
    object->refs = object->own = initialRefcount;
    object->destroy = destroy;
    object->data = ptr;
    *object_out = object->handle;
    return api_leave();
}

static CUresult enter_object(const char *call, CUuserObject handle, unsigned count,
                             struct api_user_object **out_object)
{
    CUresult result = api_enter_early(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_object = emu_handle_get(EMU_HANDLE_USER_OBJECT, handle);
    if (*out_object == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live user object");
    API_REQUIRE(count > 0 && count <= INT_MAX && (*out_object)->refs <= UINT_MAX - count);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    struct api_user_object *found;
    CUresult result = enter_object(__func__, object, count, &found);
    if (result != CUDA_SUCCESS)
        return result;
    found->refs += count;
    found->own += count;
    return api_leave();
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    struct api_user_object *found;
    CUresult result = enter_object(__func__, object, count, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count <= found->own); /* one more would take a graph's away */
    found->own -= count;
    release(found, count);
    return api_leave();
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                         unsigned int flags)
{
    struct api_user_object *found;
    CUresult result = enter_object(__func__, object, count, &found);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *of = emu_handle_get(EMU_HANDLE_GRAPH, graph);
    const bool moves = flags == CU_GRAPH_USER_OBJECT_MOVE;
    API_REQUIRE(of != NULL && (flags == 0 || moves));
    API_REQUIRE(!moves || count <= found->own);
    if (!retain(&of->retained, found, count))
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a reference");
    if (moves) {
        found->own -= count;
        found->refs -= count; /* the graph's keep it alive */
    }
    return api_leave();
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    struct api_user_object *found;
    CUresult result = enter_object(__func__, object, count, &found);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *of = emu_handle_get(EMU_HANDLE_GRAPH, graph);
    API_REQUIRE(of != NULL);
    struct api_retained *item = find(&of->retained, found);
    API_REQUIRE(item != NULL && count <= item->refs);
    item->refs -= count;
    if (item->refs == 0)
        *item = of->retained.items[--of->retained.count];
    release(found, count);
    return api_leave();
}
