/* "Stream Management", stream capture (CUDA Programming Guide 13.0, "Creating a Graph Using Stream Capture").
   A stream that captures turns what is submitted to it into graph nodes; another stream joins the capture by
   waiting for an event that was recorded in it. Which misuse gives which error is what an H200's driver
   answers (tests/api/data/h200.txt). Leaves out: allocation and free nodes. */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

static cuuint64_t next_capture_id = 1;
static unsigned n_captures; /* in progress */

static void leave(struct api_stream *stream)
{
    stream->capture = NULL;
    free(stream->capture_nodes);
    stream->capture_nodes = NULL;
    stream->n_capture_nodes = 0;
}

/* Ends a capture: every stream leaves it, and its graph goes if nobody took it. */
static void leave_all(struct api_capture *capture)
{
    struct api_context *context = capture->origin->context;
    for (struct api_stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (stream->capture == capture)
            leave(stream);
    size_t cursor = 0;
    for (struct api_event *event; (event = emu_handle_next(EMU_HANDLE_EVENT, &cursor)) != NULL;)
        if (event->capture == capture) {
            event->capture = NULL;
            event->was_captured = true;
            free(event->nodes);
            event->nodes = NULL;
            event->n_nodes = 0;
        }
    if (capture->graph != NULL) {
        capture->graph->capture = NULL;
        if (capture->own_graph)
            api_graph_free(capture->graph);
    }
    free(capture);
    n_captures--;
}

void api_capture_invalidate(struct api_capture *capture)
{
    capture->invalid = true;
}

bool api_capture_invalid(const struct api_capture *capture)
{
    return capture->invalid;
}

void api_capture_drop(struct api_stream *stream)
{
    if (stream->capture != NULL)
        leave_all(stream->capture);
}

static bool set_nodes(struct api_edge **nodes, size_t *count, const struct api_edge *from, size_t n_from)
{
    struct api_edge *copy = calloc(n_from > 0 ? n_from : 1, sizeof *copy);
    if (copy == NULL)
        return false;
    if (n_from > 0)
        memcpy(copy, from, n_from * sizeof *copy);
    free(*nodes);
    *nodes = copy;
    *count = n_from;
    return true;
}

static CUgraphNodeType node_type(enum api_work_kind kind)
{
    switch (kind) {
    case API_WORK_KERNEL:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case API_WORK_COPY:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case API_WORK_SET:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case API_WORK_HOST:
        return CU_GRAPH_NODE_TYPE_HOST;
    case API_WORK_RECORD:
        return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case API_WORK_WAIT:
        return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case API_WORK_ALLOC:
        return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case API_WORK_FREE:
        return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case API_WORK_WRITE_VALUE:
    case API_WORK_WAIT_VALUE:
    case API_WORK_BATCH:
        return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

/* What a captured piece of work depends on (heap): a kernel that may start early does so where the one before
   it is a kernel too (CUDA Programming Guide 13.0, "Programmatic Dependent Launch in CUDA Graphs"). */
static struct api_edge *dependencies_of(const struct api_stream *stream, const struct api_work *work)
{
    struct api_edge *edges = calloc(stream->n_capture_nodes + 1, sizeof *edges);
    const bool early = work->kind == API_WORK_KERNEL && work->launch.programmatic;
    for (size_t i = 0; edges != NULL && i < stream->n_capture_nodes; i++) {
        edges[i] = stream->capture_nodes[i];
        if (early && edges[i].node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            edges[i].data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            edges[i].data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
    }
    return edges;
}

CUresult api_capture_add(struct api_stream *stream, struct api_work *work)
{
    struct api_capture *capture = stream->capture;
    struct api_node *node = NULL;
    if (capture->invalid) {
        api_work_fini(work);
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                             "the capture was invalidated by an earlier call");
    }
    CUresult result = CUDA_SUCCESS;
    struct api_edge *edges = dependencies_of(stream, work);
    if (edges != NULL) {
        result =
            api_node_add(capture->graph, node_type(work->kind), work, edges, stream->n_capture_nodes, &node);
    } else {
        api_work_fini(work);
        result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");
    }
    free(edges);
    const struct api_edge next = {.node = node};
    if (result == CUDA_SUCCESS && !set_nodes(&stream->capture_nodes, &stream->n_capture_nodes, &next, 1))
        result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");
    if (result != CUDA_SUCCESS)
        api_capture_invalidate(capture);
    return result;
}

CUresult api_capture_record(struct api_stream *stream, struct api_event *event)
{
    if (stream->capture->invalid)
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                             "the capture was invalidated by an earlier call");
    if (!set_nodes(&event->nodes, &event->n_nodes, stream->capture_nodes, stream->n_capture_nodes))
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");
    event->capture = stream->capture;
    event->was_captured = false;
    return CUDA_SUCCESS;
}

CUresult api_capture_record_early(struct api_stream *stream, struct api_event *event, unsigned char port)
{
    CUresult result = api_capture_record(stream, event);
    for (size_t i = 0; result == CUDA_SUCCESS && i < event->n_nodes; i++) {
        event->nodes[i].data.from_port = port;
        event->nodes[i].data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    return result;
}

CUresult api_capture_join(struct api_stream *stream, struct api_event *event)
{
    struct api_capture *capture = event->capture;
    if (capture->invalid)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the event's capture was invalidated");
    if (stream->capture != NULL && stream->capture != capture) {
        api_capture_invalidate(stream->capture);
        api_capture_invalidate(capture);
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the stream is captured elsewhere");
    }
    if (stream->legacy) {
        api_capture_invalidate(capture);
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                             "the legacy default stream cannot be captured");
    }
    stream->capture = capture;
    struct api_edge *all = calloc(stream->n_capture_nodes + event->n_nodes + 1, sizeof *all);
    if (all == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");
    size_t count = stream->n_capture_nodes;
    if (count > 0)
        memcpy(all, stream->capture_nodes, count * sizeof *all);
    for (size_t i = 0; i < event->n_nodes; i++) {
        bool known = false;
        for (size_t j = 0; j < count; j++)
            known = known || all[j].node == event->nodes[i].node;
        if (!known)
            all[count++] = event->nodes[i];
    }
    free(stream->capture_nodes);
    stream->capture_nodes = all;
    stream->n_capture_nodes = count;
    return CUDA_SUCCESS;
}

static bool is_unsafe(const char *call)
{
    static const char *const names[] = {
#define UNSAFE(name) #name,
#include "emu/api_unsafe.def"
    };
    const char *version = strstr(call, "_v");
    const size_t length = version != NULL ? (size_t)(version - call) : strlen(call);
    for (size_t i = 0; i < API_COUNT_OF(names); i++)
        if (strlen(names[i]) == length && strncmp(names[i], call, length) == 0)
            return true;
    return false;
}

/* cuMemAlloc and the like: forbidden while a capture in global mode is in progress anywhere, or one in
   thread-local mode that this thread began; such a call invalidates it. A thread in relaxed mode is exempt.
 */
bool api_capture_permits(const char *call)
{
    const struct api_thread *thread = api_thread();
    bool permitted = true;
    if (n_captures == 0 || thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        (call != NULL && !is_unsafe(call)))
        return true;
    struct api_context *context;
    for (size_t cursor = 0; (context = emu_handle_next(EMU_HANDLE_CONTEXT, &cursor)) != NULL;)
        for (struct api_stream *stream = context->streams; stream != NULL; stream = stream->next) {
            struct api_capture *capture = stream->capture;
            if (capture == NULL || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
                continue;
            const bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
            if (global || capture->thread == thread) {
                api_capture_invalidate(capture);
                permitted = false;
            }
        }
    return permitted;
}

CUresult api_capture_refuse(struct api_stream *stream)
{
    if (stream->capture == NULL)
        return CUDA_SUCCESS;
    api_capture_invalidate(stream->capture);
    return api_set_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                         "the stream is capturing: this call is not allowed");
}

bool api_capture_blocks_wait(struct api_context *context)
{
    bool any = false;
    for (struct api_stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (stream->capture != NULL) {
            api_capture_invalidate(stream->capture);
            any = true;
        }
    return any;
}

/* ---- calls ---- */

static CUresult enter_stream(const char *call, CUstream handle, struct api_stream **out_stream)
{
    struct api_context *context;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    /* Not api_stream_get for stream 0: asking about the legacy stream must not invalidate a capture. */
    if (handle == CU_STREAM_LEGACY || (handle == NULL && !api_thread()->per_thread_default)) {
        *out_stream = context->legacy;
        return CUDA_SUCCESS;
    }
    result = api_stream_get(context, handle, out_stream);
    return result == CUDA_SUCCESS ? CUDA_SUCCESS : api_result(result);
}

static CUresult begin(const char *call, CUstream hStream, CUstreamCaptureMode mode, CUgraph into,
                      const CUgraphNode *from, const CUgraphEdgeData *data, size_t n_from)
{
    struct api_stream *stream;
    struct api_edge *nodes = NULL;
    CUresult result = enter_stream(call, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->legacy)
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                        "the legacy default stream cannot be captured");
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "capture mode %d", (int)mode);
    if (stream->capture != NULL)
        return api_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is capturing already");
    struct api_graph *graph = into != NULL ? emu_handle_get(EMU_HANDLE_GRAPH, into) : api_graph_new();
    if (graph == NULL)
        return api_fail(into != NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY,
                        "no graph to capture into");
    struct api_capture *capture = NULL;
    if (graph->capture != NULL)
        result = api_set_error(CUDA_ERROR_INVALID_VALUE, "the graph is being captured into already");
    if (result == CUDA_SUCCESS)
        result = api_edges_get(graph, from, data, n_from, &nodes);
    if (result == CUDA_SUCCESS) {
        capture = calloc(1, sizeof *capture);
        if (capture == NULL || !set_nodes(&stream->capture_nodes, &stream->n_capture_nodes, nodes, n_from))
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");
    }
    free(nodes);
    if (result != CUDA_SUCCESS) {
        free(capture);
        if (into == NULL)
            api_graph_free(graph);
        return api_result(result);
    }
    capture->graph = graph;
    capture->own_graph = into == NULL;
    capture->mode = mode;
    capture->id = next_capture_id++;
    capture->origin = stream;
    capture->thread = api_thread();
    graph->capture = capture;
    stream->capture = capture;
    n_captures++;
    return api_leave();
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
    return begin(__func__, hStream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, NULL, 0);
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(__func__, hStream, mode, NULL, NULL, NULL, 0);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                             const CUgraphNode *dependencies,
                                             const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                             CUstreamCaptureMode mode)
{
    if (hGraph == NULL) {
        API_ENTER();
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the graph is NULL");
    }
    return begin(__func__, hStream, mode, hGraph, dependencies, dependencyData, numDependencies);
}

/* Marks a node and puts it on top of those whose dependencies are still to be looked at. */
static void visit(struct api_node *node, struct api_node **stack)
{
    if (node->mark != 0)
        return;
    node->mark = 1;
    node->waiting = *stack;
    *stack = node;
}

/* Is every node that another stream ended on one that the origin's last nodes depend on? */
static bool all_joined(const struct api_capture *capture)
{
    const struct api_stream *origin = capture->origin;
    struct api_node *stack = NULL;
    for (struct api_node *node = capture->graph->nodes; node != NULL; node = node->next)
        node->mark = 0;
    for (size_t i = 0; i < origin->n_capture_nodes; i++)
        visit(origin->capture_nodes[i].node, &stack);
    while (stack != NULL) {
        const struct api_node *node = stack;
        stack = node->waiting;
        for (size_t i = 0; i < node->n_from; i++)
            visit(node->from[i].node, &stack);
    }
    for (const struct api_stream *stream = origin->context->streams; stream != NULL; stream = stream->next)
        for (size_t i = 0; stream->capture == capture && i < stream->n_capture_nodes; i++)
            if (stream->capture_nodes[i].node->mark == 0)
                return false;
    return true;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct api_stream *stream;
    CUresult result = enter_stream(__func__, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_capture *capture = stream->capture;
    if (capture == NULL)
        return api_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
    CUgraph unwanted; /* NULL is no error, on the H200 */
    if (phGraph == NULL)
        phGraph = &unwanted;
    *phGraph = NULL;
    if (capture->origin != stream) {
        api_capture_invalidate(capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began in another stream");
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != api_thread())
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture was begun by another thread");
    if (capture->invalid) {
        leave_all(capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                        "the capture was invalidated by an earlier call");
    }
    if (!all_joined(capture)) {
        leave_all(capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                        "a stream that joined the capture has work that its origin "
                        "does not wait for");
    }
    *phGraph = capture->graph->handle;
    capture->graph->capture = NULL;
    capture->graph = NULL; /* the caller's */
    leave_all(capture);
    return api_leave();
}

static CUstreamCaptureStatus status_of(const struct api_stream *stream)
{
    return stream->capture == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
           : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Is a stream captured that synchronises with the legacy one? */
static bool blocking_captured(const struct api_context *context)
{
    for (const struct api_stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (stream->capture != NULL && (stream->flags & CU_STREAM_NON_BLOCKING) == 0)
            return true;
    return false;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    struct api_stream *stream;
    CUresult result = enter_stream(__func__, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(captureStatus != NULL);
    if (stream->legacy && blocking_captured(stream->context))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                        "a stream that the legacy one waits for is capturing");
    *captureStatus = status_of(stream);
    return api_leave();
}

static CUresult info(const char *call, CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id,
                     CUgraph *graph, const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count)
{
    struct api_stream *stream;
    CUresult result = enter_stream(call, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(status != NULL);
    if (stream->legacy && blocking_captured(stream->context))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                        "a stream that the legacy one waits for is capturing");
    *status = status_of(stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return api_leave();
    if (id != NULL)
        *id = stream->capture->id;
    if (graph != NULL)
        *graph = stream->capture->graph->handle;
    bool plain = true;
    for (size_t i = 0; i < stream->n_capture_nodes; i++)
        plain = plain && api_edge_is_plain(&stream->capture_nodes[i].data);
    if (nodes != NULL && data == NULL && !plain)
        return api_fail(CUDA_ERROR_LOSSY_QUERY, "dependencies have data that the call has no room for");
    if (count != NULL)
        *count = stream->n_capture_nodes;
    /* Lent until the next call on the stream. */
    if (nodes != NULL) {
        CUgraphNode *lent = realloc(stream->lent_nodes, (stream->n_capture_nodes + 1) * sizeof(CUgraphNode));
        if (lent == NULL)
            return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the dependencies");
        stream->lent_nodes = lent;
        for (size_t i = 0; i < stream->n_capture_nodes; i++)
            lent[i] = stream->capture_nodes[i].node->handle;
        *nodes = lent;
    }
    if (data != NULL) {
        CUgraphEdgeData *lent =
            realloc(stream->lent_data, (stream->n_capture_nodes + 1) * sizeof(CUgraphEdgeData));
        if (lent == NULL)
            return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the dependencies");
        stream->lent_data = lent;
        for (size_t i = 0; i < stream->n_capture_nodes; i++)
            lent[i] = stream->capture_nodes[i].data;
        *data = lent;
    }
    return api_leave();
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                        cuuint64_t *id_out)
{
    return info(__func__, hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                           cuuint64_t *id_out, CUgraph *graph_out,
                                           const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
    return info(__func__, hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL,
                numDependencies_out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                           cuuint64_t *id_out, CUgraph *graph_out,
                                           const CUgraphNode **dependencies_out,
                                           const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    return info(__func__, hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                numDependencies_out);
}

static CUresult update_dependencies(const char *call, CUstream hStream, CUgraphNode *handles,
                                    const CUgraphEdgeData *data, size_t count, unsigned flags)
{
    struct api_stream *stream;
    struct api_edge *nodes = NULL;
    CUresult result = enter_stream(call, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture == NULL)
        return api_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
    API_REQUIRE(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    result = api_edges_get(stream->capture->graph, handles, data, count, &nodes);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) {
        struct api_event joined = {.capture = stream->capture, .nodes = nodes, .n_nodes = count};
        result = api_capture_join(stream, &joined);
    } else if (!set_nodes(&stream->capture_nodes, &stream->n_capture_nodes, nodes, count)) {
        result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");
    }
    free(nodes);
    return api_result(result);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                                   size_t numDependencies, unsigned int flags)
{
    return update_dependencies(__func__, hStream, dependencies, NULL, numDependencies, flags);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                      const CUgraphEdgeData *dependencyData,
                                                      size_t numDependencies, unsigned int flags)
{
    return update_dependencies(__func__, hStream, dependencies, dependencyData, numDependencies, flags);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    API_ENTER();
    struct api_thread *thread = api_thread();
    API_REQUIRE(mode != NULL); /* which mode is not looked at, on the H200 */
    CUstreamCaptureMode before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
    return api_leave();
}
