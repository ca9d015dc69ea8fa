/* Graphs: nodes of work with edges (api_graph.c), made by calls (api_node.c) or by capturing streams
   (api_capture.c), and what they become when instantiated (api_exec.c). Guarded by the API's lock. */
#ifndef CLAB_EMU_API_GRAPH_H
#define CLAB_EMU_API_GRAPH_H

#include "emu/api.h"

/* What a node depends on, and how (CUgraphEdgeData: zero for an ordinary dependency). */
struct api_edge {
    struct api_node *node;
    CUgraphEdgeData data;
};

struct api_node {
    CUgraphNode handle;
    struct api_graph *graph;
    CUgraphNodeType type;
    struct api_work work;
    struct api_graph *child;             /* CHILD_GRAPH: owned */
    struct api_conditional *conditional; /* CONDITIONAL: owned */
    struct api_edge *from;               /* what it depends on */
    size_t n_from, from_capacity;
    unsigned long long id;     /* unique in the process */
    unsigned long long origin; /* of a clone: the id of the node that it was made from */
    void **param_pointers;     /* KERNEL: what cuGraphKernelNodeGetParams lends, made when asked for */
    size_t mark;               /* scratch of the topological order */
    bool is_exit;              /* likewise: nothing depends on it */
    struct api_node *waiting;  /* scratch of walks along the edges */
    struct api_node *next;
};

/* References to user objects (api_user_object.c): of a graph, or of what it was instantiated as. */
struct api_user_object;
struct api_retainer {
    struct api_retained {
        struct api_user_object *object;
        unsigned refs;
    } * items;
    size_t count;
};
/* Takes one reference to each object of `from`; false when memory is out. */
bool api_retainer_copy(struct api_retainer *to, const struct api_retainer *from);
/* Gives all of them back. */
void api_retainer_fini(struct api_retainer *retainer);

/* A condition (api_conditional.c): of the graph that it was made for and of that graph's instances. */
struct api_condition {
    uint64_t handle; /* the machine's */
    CUcontext context;
    uint32_t initial;
    bool assign;   /* `initial`, at each launch */
    bool used;     /* by a conditional node */
    unsigned refs; /* graphs, instances */
};
/* What a conditional node decides. */
struct api_conditional {
    struct api_condition *condition; /* a reference is held */
    CUgraphConditionalNodeType type;
    unsigned size;
    struct api_graph **bodies; /* size: owned */
    CUgraph *handles;          /* size: lent to the program */
};

struct api_graph {
    CUgraph handle;
    struct api_node *nodes, **tail; /* in the order in which they were added */
    size_t n_nodes;
    struct api_node *parent;     /* of a child graph */
    struct api_capture *capture; /* being captured into */
    struct api_retainer retained;
    CUgraphExec instance; /* the last that was made of it; not kept alive by it */
    struct api_condition **conditions;
    size_t n_conditions;
};

/* Its value starts as `initial` where `assign` says so, in each launch. NULL when memory is out. */
struct api_condition *api_condition_new(struct api_graph *graph, CUcontext context, uint32_t initial,
                                        bool assign);
void api_condition_release(struct api_condition *condition);
/* Of a graph that goes. */
void api_conditions_free(struct api_graph *graph);
void api_conditional_free(struct api_conditional *conditional);
/* Adds the node and tells the program of its bodies; ends the call that api_enter began. */
CUresult api_conditional_add(CUgraphNode *out_handle, CUgraph hGraph, const CUgraphNode *dependencies,
                             const CUgraphEdgeData *data, size_t count,
                             struct CUDA_CONDITIONAL_NODE_PARAMS *params);
/* Whether it, or a graph inside it, has a conditional node: such a graph is not cloned, nor a child, and has
   one instance at a time (CUDA Driver API 13.0, CU_GRAPH_NODE_TYPE_CONDITIONAL). */
bool api_graph_has_conditional(const struct api_graph *graph);
struct api_graph *api_graph_new(void);
void api_graph_free(struct api_graph *graph);
/* A deep copy with handles of its own; NULL when memory is out. */
struct api_graph *api_graph_clone(const struct api_graph *graph);
/* Whether it, or a child graph of it, allocates or frees memory: such a graph cannot be cloned or cut, and
   has one instance at a time (CUDA Driver API 13.0, cuGraphAddMemAllocNode). */
bool api_graph_has_memory(const struct api_graph *graph);
/* Takes over what `work` owns. INVALID_VALUE for a dependency twice or of another graph. What data edges may
   have is not looked at: a capture may give any node an edge that a program could not add. */
CUresult api_node_add(struct api_graph *graph, CUgraphNodeType type, struct api_work *work,
                      const struct api_edge *from, size_t n_from, struct api_node **out_node);
/* The handles as dependencies on nodes of `graph` (heap, NULL for none); `data` may be NULL. INVALID_VALUE
   when one is no such node. */
CUresult api_edges_get(struct api_graph *graph, const CUgraphNode *handles, const CUgraphEdgeData *data,
                       size_t count, struct api_edge **out_edges);
/* INVALID_VALUE when a program cannot add such an edge to a node of that type. */
CUresult api_edge_check(const struct api_edge *from, CUgraphNodeType to);
/* Is it an ordinary dependency? */
bool api_edge_is_plain(const CUgraphEdgeData *data);
/* The nodes in an order in which each comes after those that it depends on (heap). INVALID_VALUE for a cycle.
 */
CUresult api_graph_order(const struct api_graph *graph, struct api_node ***out_nodes);

/* A kernel node that gets other parameters keeps its attributes: those of `old`, checked for the new launch
   (api_node_attributes.c). */
CUresult api_attributes_keep(const struct api_launch *old, struct api_launch *fresh);

/* Parameters of a node as work, checked (api_node.c); what `out_work` owns is the caller's. */
CUresult api_kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, struct api_work *out_work);
CUresult api_copy_work(const CUDA_MEMCPY3D *params, struct api_work *out_work);
CUresult api_set_work(const CUDA_MEMSET_NODE_PARAMS *params, struct api_work *out_work);

/* One operation of a batch (api_stream_memory.c): EMPTY for those that have nothing to do here. */
CUresult api_memory_op_work(const CUstreamBatchMemOpParams *op, struct api_work *out_work);
/* Adds finished work (taken over) as a node; the lock is kept. */
CUresult api_node_add_to(CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                         size_t count, CUgraphNodeType type, struct api_work *work,
                         struct api_node **out_node);
/* Adds finished work (taken over, like `child`, NULL for none) as a node; ends the call that api_enter began.
 */
CUresult api_node_add_call(CUgraphNode *out_handle, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *data, size_t count, CUgraphNodeType type,
                           struct api_work *work, struct api_graph *child);
CUresult api_alloc_work(const CUmemPoolProps *props, size_t bytes, struct api_work *out_work);
CUresult api_host_work(const CUDA_HOST_NODE_PARAMS *params, struct api_work *out_work);
CUresult api_event_work(CUevent handle, enum api_work_kind kind, struct api_work *out_work);
/* Of a node whose parameters say its kind. NOT_SUPPORTED for kinds that are not emulated. Not for child
 * graphs. */
CUresult api_any_work(const CUgraphNodeParams *params, struct api_work *out_work);
/* Of nodes of external semaphores, of which there can be none: no work. INVALID_VALUE for any number of them.
 */
CUresult api_external_work(unsigned count);
CUresult api_batch_work(unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags,
                        struct api_work *out_work);

/* One capture in progress: the origin stream and those that joined it. */
struct api_capture {
    struct api_graph *graph;
    bool own_graph; /* made by this capture, not cuStreamBeginCaptureToGraph's */
    bool invalid;
    CUstreamCaptureMode mode;
    cuuint64_t id;
    struct api_stream *origin;
    const struct api_thread *thread;
};

#endif
