/* Attributes of functions, launches and what they refuse, occupancy, tensor maps. */
#include "ask.h"

static const char *const names[] = {"plain", "two_params", "cluster", "small", "exact"};

void section_function(void)
{
    if (!ask_setup())
        return;
    const CUfunction functions[] = {o.plain, o.two_params, o.cluster, o.small, o.exact};
    static const int values[] = {-100, -1,  0,    1,     2,     3,      4,      8,      17,
                                 100,  101, 1024, 49152, 49153, 232448, 232449, 1 << 30};
    for (size_t f = 0; f < COUNT(functions); f++)
        for (int attribute = 0; attribute < 18; attribute++)
            for (size_t i = 0; i < COUNT(values); i++) {
                if (f > 0 && f != 2 && attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
                    continue;
                ASK(ask_name("%s attribute %d set to %d", names[f], attribute, values[i]),
                    cuFuncSetAttribute(functions[f], (CUfunction_attribute)attribute, values[i]));
                t.i = -9;
                ASKF(ask_name("%s attribute %d after %d", names[f], attribute, values[i]),
                     cuFuncGetAttribute(&t.i, (CUfunction_attribute)attribute, functions[f]), " %d",
                     attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 0 : t.i);
            }
    ASK("attribute NULL", cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, o.plain));
    ASK("attribute of NULL", cuFuncGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    ASK("attribute set of NULL",
        cuFuncSetAttribute(NULL, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0));
    for (int config = -1; config < 5; config++) {
        ASK(ask_name("cache config %d", config), cuFuncSetCacheConfig(o.plain, (CUfunc_cache)config));
        ASK(ask_name("shared config %d", config), cuFuncSetSharedMemConfig(o.plain, (CUsharedconfig)config));
    }
    ASK("cache config of NULL", cuFuncSetCacheConfig(NULL, CU_FUNC_CACHE_PREFER_L1));
    ASK("module NULL", cuFuncGetModule(NULL, o.plain));
    ASK("module of NULL", cuFuncGetModule(&t.module, NULL));
    ASKF("module", cuFuncGetModule(&t.module, o.plain), " %d", t.module == o.module);
    ASK("name NULL", cuFuncGetName(NULL, o.plain));
    ASK("name of NULL", cuFuncGetName((const char **)&t.host, NULL));
    ASK("parameter of NULL", cuFuncGetParamInfo(NULL, 0, &t.size, &t.size2));
    ASK("parameter NULL offset", cuFuncGetParamInfo(o.two_params, 0, NULL, &t.size2));
    ASKF("parameter NULL size", cuFuncGetParamInfo(o.two_params, 1, &t.size, NULL), " %zu", t.size);
    ASK("parameter 2", cuFuncGetParamInfo(o.two_params, 2, &t.size, NULL));
    ASK("loaded NULL", cuFuncIsLoaded(NULL, o.plain));
    ASK("loaded of NULL", cuFuncIsLoaded((CUfunctionLoadingState *)&t.i, NULL));
    ASK("load NULL", cuFuncLoad(NULL));
    ASK("load", cuFuncLoad(o.plain));
    ASKF("loaded", cuFuncIsLoaded((CUfunctionLoadingState *)&t.i, o.plain), " %d", t.i);
    ASK("block shape 0", cuFuncSetBlockShape(o.plain, 0, 1, 1));
    ASK("block shape 2048", cuFuncSetBlockShape(o.plain, 2048, 1, 1));
    ASK("block shape -1", cuFuncSetBlockShape(o.plain, -1, 1, 1));
    ASK("block shape z 65", cuFuncSetBlockShape(o.plain, 1, 1, 65));
    ASK("shared size", cuFuncSetSharedSize(o.plain, 1 << 20));
    ASK("launch with too much shared", cuLaunch(o.plain));
    ASK("shared size 0", cuFuncSetSharedSize(o.plain, 0));
    ASK("param size", cuParamSetSize(o.two_params, 12));
    ASK("param size 5000", cuParamSetSize(o.two_params, 5000));
    ASK("param at 0", cuParamSeti(o.two_params, 0, 1));
    ASK("param at 2", cuParamSeti(o.two_params, 2, 1));
    ASK("param at -4", cuParamSeti(o.two_params, -4, 1));
    ASK("param at 5000", cuParamSeti(o.two_params, 5000, 1));
    ASK("param float", cuParamSetf(o.two_params, 8, 1));
    ASK("param bytes NULL", cuParamSetv(o.two_params, 0, NULL, 8));
    ASK("grid 0", cuLaunchGrid(o.plain, 0, 1));
    ASK("grid without block shape", cuLaunchGrid(o.small, 1, 1));
    ASK("finish", cuCtxSynchronize());
}

/* ---- launches ---- */

static CUlaunchConfig shape(unsigned grid, unsigned block)
{
    return (CUlaunchConfig){.gridDimX = grid,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = block,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .hStream = o.stream};
}

static void launch_with(const char *name, CUlaunchConfig config, CUlaunchAttribute *attributes,
                        unsigned count)
{
    config.attrs = attributes;
    config.numAttrs = count;
    ASKF(name, cuLaunchKernelEx(&config, o.plain, NULL, NULL), " %d", (int)cuStreamSynchronize(o.stream));
}

static void attributes(void)
{
    for (int id = 0; id < 24; id++)
        for (int value = 0; value < 4; value++) {
            CUlaunchAttribute attribute;
            memset(&attribute, 0, sizeof attribute);
            attribute.id = (CUlaunchAttributeID)id;
            memcpy(&attribute.value, &value, sizeof value);
            if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
                id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
                attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
            launch_with(ask_name("attribute %d = %d", id, value), shape(4, 32), &attribute, 1);
        }
    CUlaunchAttribute two[2] = {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}},
                                {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}}};
    launch_with("cluster twice", shape(4, 32), two, 2);
    two[1] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                 .value.clusterDim = {4, 1, 1}};
    launch_with("cluster 2, preferred 4", shape(8, 32), two, 2);
    two[1].value.clusterDim.x = 3;
    launch_with("cluster 2, preferred 3", shape(12, 32), two, 2);
    two[1].value.clusterDim.x = 1;
    launch_with("cluster 2, preferred 1", shape(8, 32), two, 2);
    two[1].value.clusterDim.x = 4;
    launch_with("cluster 2, preferred 4, grid 6", shape(6, 32), two, 2);
    two[0] = two[1];
    launch_with("preferred 4 alone", shape(8, 32), two, 1);
    for (int priority = -7; priority < 3; priority++) {
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = priority};
        launch_with(ask_name("priority %d", priority), shape(1, 32), &attribute, 1);
    }
    CUlaunchAttribute event = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                               .value.launchCompletionEvent = {o.event, 0}};
    launch_with("completion event, timed", shape(1, 32), &event, 1);
    event.value.launchCompletionEvent.event = o.untimed;
    launch_with("completion event, untimed", shape(1, 32), &event, 1);
    event.value.launchCompletionEvent.flags = 1;
    launch_with("completion event, flags 1", shape(1, 32), &event, 1);
    event = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                                .value.programmaticEvent = {o.untimed, 0, 0}};
    launch_with("programmatic event", shape(1, 32), &event, 1);
    event.value.programmaticEvent.event = o.event;
    launch_with("programmatic event, timed", shape(1, 32), &event, 1);
    launch_with("attributes NULL", shape(1, 32), NULL, 1);
    CUlaunchAttribute ignored[40];
    memset(ignored, 0, sizeof ignored);
    launch_with("40 ignored attributes", shape(1, 32), ignored, 40);
}

void section_launch(void)
{
    if (!ask_setup())
        return;
    static const unsigned shapes[][7] = {
        {1, 1, 1, 1, 1, 1, 0},         {0, 1, 1, 1, 1, 1, 0},     {1, 0, 1, 1, 1, 1, 0},
        {1, 1, 0, 1, 1, 1, 0},         {1, 1, 1, 0, 1, 1, 0},     {1, 1, 1, 1, 0, 1, 0},
        {1, 1, 1, 1, 1, 0, 0},         {1, 65535, 1, 1, 1, 1, 0}, {1, 65536, 1, 1, 1, 1, 0},
        {1, 1, 65535, 1, 1, 1, 0},     {1, 1, 65536, 1, 1, 1, 0}, {0x80000000u, 1, 1, 1, 1, 1, 0},
        {~0u, 1, 1, 1, 1, 1, 0},       {1, 1, 1, 1024, 1, 1, 0},  {1, 1, 1, 1025, 1, 1, 0},
        {1, 1, 1, 1, 1024, 1, 0},      {1, 1, 1, 1, 1025, 1, 0},  {1, 1, 1, 1, 1, 64, 0},
        {1, 1, 1, 1, 1, 65, 0},        {1, 1, 1, 32, 32, 1, 0},   {1, 1, 1, 32, 33, 1, 0},
        {1, 1, 1, 65536, 65536, 1, 0}, {1, 1, 1, 16, 1, 64, 0},   {1, 1, 1, 17, 1, 64, 0},
        {1, 1, 1, 1, 1, 1, 49152},     {1, 1, 1, 1, 1, 1, 49153}, {1, 1, 1, 1, 1, 1, 232448},
        {1, 1, 1, 1, 1, 1, ~0u}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const unsigned *const s = shapes[i];
        const char *const name =
            ask_name("%u,%u,%u x %u,%u,%u + %u", s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
        const CUfunction functions[] = {o.plain, o.small, o.exact, o.cluster};
        static const char *const called[] = {"plain", "small", "exact", "cluster"};
        for (size_t f = 0; f < COUNT(functions); f++)
            ASK(ask_name("%s %s", called[f], name),
                cuLaunchKernel(functions[f], s[0], s[1], s[2], s[3], s[4], s[5], s[6], o.stream, NULL, NULL));
        ASK(ask_name("cooperative %s", name),
            cuLaunchCooperativeKernel(o.plain, s[0], s[1], s[2], s[3], s[4], s[5], s[6], o.stream, NULL));
        ASK(ask_name("finish %s", name), cuStreamSynchronize(o.stream));
    }
    ASK("NULL function", cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    ASK("cooperative NULL function", cuLaunchCooperativeKernel(NULL, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL));
    ASK("no params", cuLaunchKernel(o.two_params, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    ASK("cooperative, no params",
        cuLaunchCooperativeKernel(o.two_params, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL));
    ASK("params for none", cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, ask_params, NULL));
    CUlaunchConfig config = shape(1, 32);
    ASK("config NULL", cuLaunchKernelEx(NULL, o.plain, NULL, NULL));
    ASK("config, NULL function", cuLaunchKernelEx(&config, NULL, NULL, NULL));
    uint64_t buffer[1024] = {0};
    size_t size = 12;
    struct {
        const char *name;
        void *extra[8];
    } extras[] = {
        {"end", {CU_LAUNCH_PARAM_END}},
        {"pointer, size, end",
         {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END}},
        {"size, pointer, end",
         {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END}},
        {"pointer, end", {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END}},
        {"size, end", {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END}},
        {"NULL pointer, size, end",
         {CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END}},
        {"pointer, NULL size, end",
         {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, NULL, CU_LAUNCH_PARAM_END}},
        {"unknown", {(void *)(uintptr_t)7, buffer, CU_LAUNCH_PARAM_END}},
    };
    for (size_t i = 0; i < COUNT(extras); i++) {
        ASK(ask_name("extra %s", extras[i].name),
            cuLaunchKernel(o.two_params, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, extras[i].extra));
        ASK(ask_name("extra %s, of no params", extras[i].name),
            cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, extras[i].extra));
        ASK(ask_name("extra %s, and params", extras[i].name),
            cuLaunchKernel(o.two_params, 1, 1, 1, 1, 1, 1, 0, o.stream, ask_params, extras[i].extra));
    }
    static const size_t sizes[] = {0, 1, 8, 11, 12, 13, 16, 17, 24, 4096, 5000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size = sizes[i];
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                         CU_LAUNCH_PARAM_END};
        ASK(ask_name("extra of %zu bytes", size),
            cuLaunchKernel(o.two_params, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, extra));
        ASK(ask_name("extra of %zu bytes, of no params", size),
            cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, extra));
    }
    ASK("finish extras", cuStreamSynchronize(o.stream));
    static const char counting[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry count(.param .u64 p) .reqntid 32, 2, 1 { .reg .b64 a; .reg .b32 v; ld.param.u64 a, "
        "[p];\n"
        "  red.global.add.u32 [a], 1; mov.u32 v, %ntid.x; st.global.u32 [a+4], v; mov.u32 v, %ntid.y; "
        "st.global.u32 [a+8], v; ret; }\n";
    static const unsigned blocks[][3] = {{1, 1, 1}, {32, 2, 1}, {64, 1, 1},
                                         {1, 2, 1}, {32, 1, 1}, {2, 32, 1}};
    CUfunction count = NULL;
    MUST(cuModuleLoadData(&t.module, counting));
    MUST(cuModuleGetFunction(&count, t.module, "count"));
    for (size_t i = 0; i < COUNT(blocks); i++) {
        uint32_t found[3] = {0};
        void *params[] = {&o.device};
        MUST(cuMemsetD32(o.device, 0, 4));
        MUST(cuCtxSynchronize());
        ASK(ask_name("required block, given %u, %u, %u", blocks[i][0], blocks[i][1], blocks[i][2]),
            cuLaunchKernel(count, 1, 1, 1, blocks[i][0], blocks[i][1], blocks[i][2], 0, o.stream, params,
                           NULL));
        MUST(cuStreamSynchronize(o.stream));
        ASKF(ask_name("required block, ran with %u, %u, %u", blocks[i][0], blocks[i][1], blocks[i][2]),
             cuMemcpyDtoH(found, o.device, sizeof found), " %u of %u x %u", found[0], found[1], found[2]);
    }
    attributes();
}

/* ---- occupancy ---- */

static size_t CUDA_CB shared_bytes(int block)
{
    return (size_t)block * 64;
}

void section_occupancy(void)
{
    int blocks = -1, least = -1, most = -1;
    size_t bytes = 0;
    if (!ask_setup())
        return;
    const CUfunction functions[] = {o.plain, o.two_params, o.cluster, o.small, o.exact};
    for (size_t f = 0; f < COUNT(functions); f++) {
        static const int sizes[] = {-1, 0,   1,   31,  32,   33,   64,   65,
                                    96, 100, 128, 192, 1000, 1024, 1025, 1 << 20};
        for (size_t i = 0; i < COUNT(sizes); i++) {
            blocks = -1;
            ASKF(ask_name("blocks of %s, %d", names[f], sizes[i]),
                 cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions[f], sizes[i], 0), " %d",
                 blocks);
            bytes = 9;
            ASKF(ask_name("shared memory of %s, %d", names[f], sizes[i]),
                 cuOccupancyAvailableDynamicSMemPerBlock(&bytes, functions[f], 1, sizes[i]), " %zu", bytes);
        }
        static const int limits[] = {-1, 0, 1, 32, 100, 1024, 5000};
        for (size_t i = 0; i < COUNT(limits); i++) {
            least = most = -1;
            ASKF(ask_name("potential of %s, limit %d", names[f], limits[i]),
                 cuOccupancyMaxPotentialBlockSize(&least, &most, functions[f], NULL, 0, limits[i]), " %d %d",
                 least, most);
        }
        static const size_t shared[] = {1, 1024, 49152, 49153, 100000, 232448, 232449, (size_t)1 << 40};
        for (size_t i = 0; i < COUNT(shared); i++) {
            blocks = least = most = -1;
            ASKF(ask_name("blocks of %s with %zu", names[f], shared[i]),
                 cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions[f], 64, shared[i]), " %d",
                 blocks);
            ASKF(ask_name("potential of %s with %zu", names[f], shared[i]),
                 cuOccupancyMaxPotentialBlockSize(&least, &most, functions[f], NULL, shared[i], 0), " %d %d",
                 least, most);
        }
        least = most = -1;
        ASKF(ask_name("potential of %s with a function", names[f]),
             cuOccupancyMaxPotentialBlockSize(&least, &most, functions[f], shared_bytes, 0, 0), " %d %d",
             least, most);
    }
    for (int n = -1; n < 35; n += n < 4 ? 1 : 6) {
        bytes = 9;
        ASKF(ask_name("shared memory for %d blocks", n),
             cuOccupancyAvailableDynamicSMemPerBlock(&bytes, o.plain, n, 64), " %zu", bytes);
    }
    for (unsigned flags = 0; flags < 4; flags++) {
        ASKF(ask_name("blocks flags %u", flags),
             cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, o.plain, 128, 0, flags), " %d",
             blocks);
        ASKF(ask_name("potential flags %u", flags),
             cuOccupancyMaxPotentialBlockSizeWithFlags(&least, &most, o.plain, NULL, 0, 0, flags), " %d %d",
             least, most);
    }
    ASK("blocks NULL", cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, o.plain, 128, 0));
    ASK("blocks of NULL", cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 128, 0));
    ASK("potential NULL grid", cuOccupancyMaxPotentialBlockSize(NULL, &most, o.plain, NULL, 0, 0));
    ASK("potential NULL block", cuOccupancyMaxPotentialBlockSize(&least, NULL, o.plain, NULL, 0, 0));
    ASK("shared memory NULL", cuOccupancyAvailableDynamicSMemPerBlock(NULL, o.plain, 1, 128));
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {2, 1, 1}};
    CUlaunchConfig config = shape(8, 128);
    ASK("clusters NULL", cuOccupancyMaxActiveClusters(NULL, o.plain, &config));
    ASK("clusters NULL config", cuOccupancyMaxActiveClusters(&blocks, o.plain, NULL));
    ASK("clusters of NULL", cuOccupancyMaxActiveClusters(&blocks, NULL, &config));
    ASK("size NULL", cuOccupancyMaxPotentialClusterSize(NULL, o.plain, &config));
    ASK("size NULL config", cuOccupancyMaxPotentialClusterSize(&blocks, o.plain, NULL));
    for (int with = 0; with < 2; with++)
        for (unsigned block = 0; block <= 2048; block = block == 0 ? 32 : 4 * block)
            for (unsigned shared = 0; shared <= 250000; shared += 50000) {
                config = shape(8, block);
                config.sharedMemBytes = shared;
                config.attrs = with == 0 ? NULL : &attribute;
                config.numAttrs = (unsigned)with;
                blocks = most = -1;
                const CUresult asked = cuOccupancyMaxActiveClusters(&blocks, o.plain, &config);
                const CUresult potential = cuOccupancyMaxPotentialClusterSize(&most, o.plain, &config);
                ASKF(ask_name("clusters %d block %u shared %u", with, block, shared), asked, " %d, %d %d",
                     blocks, (int)potential, most);
            }
    config = shape(8, 128);
    config.attrs = NULL, config.numAttrs = 1;
    ASK("clusters attributes NULL", cuOccupancyMaxActiveClusters(&blocks, o.plain, &config));
    attribute.id = (CUlaunchAttributeID)77, config.attrs = &attribute;
    ASK("clusters attribute 77", cuOccupancyMaxActiveClusters(&blocks, o.plain, &config));
    config.gridDimX = 0, config.numAttrs = 0;
    ASKF("clusters grid 0", cuOccupancyMaxActiveClusters(&blocks, o.plain, &config), "%s", "");
    config.gridDimX = 1, config.blockDimX = 0;
    ASK("clusters block 0", cuOccupancyMaxActiveClusters(&blocks, o.plain, &config));
}

/* ---- tensor maps: what the first probe leaves out ---- */

struct tiled {
    CUtensorMap *map;
    int type;
    unsigned rank;
    uintptr_t address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *box, *steps;
    int interleave, swizzle, promotion, fill;
};

static CUresult encode(struct tiled m)
{
    return cuTensorMapEncodeTiled(m.map, (CUtensorMapDataType)m.type, m.rank, (void *)m.address, m.dims,
                                  m.strides, m.box, m.steps, (CUtensorMapInterleave)m.interleave,
                                  (CUtensorMapSwizzle)m.swizzle, (CUtensorMapL2promotion)m.promotion,
                                  (CUtensorMapFloatOOBfill)m.fill);
}

void section_tensor_map(void)
{
    static const cuuint64_t dims[] = {64, 32, 16, 8, 4}, strides[] = {256, 8192, 131072, 1048576};
    static const cuuint32_t box[] = {16, 8, 4, 2, 2}, steps[] = {1, 1, 1, 1, 1};
    const struct tiled good = {
        &t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, 0x7fa28bf01000, dims, strides, box, steps, 0, 0, 0, 0};
    if (!ask_context())
        return;
    struct tiled m = good;
    ASK("good", encode(m));
    m.map = NULL;
    ASK("NULL map", encode(m));
    m = good, m.map = (CUtensorMap *)(void *)((char *)&t.map + 8);
    ASK("map at 8", encode(m));
    m = good, m.map = (CUtensorMap *)(void *)((char *)&t.map + 64);
    m = good, m.dims = NULL;
    ASK("NULL dims", encode(m));
    m = good, m.strides = NULL;
    ASK("NULL strides", encode(m));
    m.rank = 1;
    ASK("NULL strides, rank 1", encode(m));
    m = good, m.box = NULL;
    ASK("NULL box", encode(m));
    m = good, m.steps = NULL;
    ASK("NULL steps", encode(m));
    m = good, m.rank = 6;
    ASK("rank 6", encode(m));
    m.rank = ~0u;
    ASK("rank ~0", encode(m));
    m = good, m.type = -1;
    ASK("type -1", encode(m));
    m = good, m.interleave = -1;
    ASK("interleave -1", encode(m));
    m = good, m.swizzle = -1;
    ASK("swizzle -1", encode(m));
    for (int type = 0; type < 17; type++)
        for (int fill = 0; fill < 2; fill++)
            for (int swizzle = 0; swizzle < 5; swizzle++) {
                const cuuint32_t wide[] = {type >= 13 ? 128 : type < 1 ? 32 : 16, 8};
                m = good, m.type = type, m.fill = fill, m.swizzle = swizzle, m.box = wide;
                ASK(ask_name("type %d fill %d swizzle %d", type, fill, swizzle), encode(m));
            }
    for (int interleave = 0; interleave < 3; interleave++)
        for (int swizzle = 0; swizzle < 5; swizzle++)
            for (unsigned width = 1; width <= 256; width *= 2) {
                const cuuint32_t wide[] = {width, 2, 2};
                m = good, m.type = CU_TENSOR_MAP_DATA_TYPE_UINT8, m.rank = 3, m.interleave = interleave,
                m.swizzle = swizzle, m.box = wide;
                ASK(ask_name("interleave %d swizzle %d width %u", interleave, swizzle, width), encode(m));
            }
    for (int interleave = 0; interleave < 3; interleave++)
        for (unsigned at = 1; at < 128; at *= 2) {
            const cuuint64_t odd[] = {256 + at, 8192 + at};
            const cuuint32_t wide[] = {32, 2, 2};
            m = good, m.type = CU_TENSOR_MAP_DATA_TYPE_UINT8, m.rank = 3, m.interleave = interleave,
            m.box = wide;
            m.swizzle = interleave == 2;
            m.address += at;
            ASK(ask_name("interleave %d address + %u", interleave, at), encode(m));
            m.address = good.address, m.strides = odd;
            ASK(ask_name("interleave %d stride + %u", interleave, at), encode(m));
        }
    for (unsigned step = 0; step < 11; step++) {
        const cuuint32_t stepped[] = {1, step}, first[] = {step, 1};
        m = good, m.steps = stepped;
        ASK(ask_name("step %u", step), encode(m));
        m.steps = first;
        ASK(ask_name("first step %u", step), encode(m));
    }
    MUST(cuTensorMapEncodeTiled(&t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)0x7fa28bf01000,
                                dims, strides, box, steps, 0, 0, 0, 0));
    ASK("replace NULL map", cuTensorMapReplaceAddress(NULL, (void *)(uintptr_t)0x7fa28bf02000));
    ASK("replace at 8", cuTensorMapReplaceAddress(&t.map, (void *)(uintptr_t)0x7fa28bf02008));
    ASK("replace at 0", cuTensorMapReplaceAddress(&t.map, NULL));
    uint64_t words[16];
    ASK("replace", cuTensorMapReplaceAddress(&t.map, (void *)(uintptr_t)0x7fa28bf02000));
    memcpy(words, &t.map, sizeof words);
    ASKF("replaced", CUDA_SUCCESS, " %llx %llx", (unsigned long long)words[0], (unsigned long long)words[1]);
    const int lower[] = {-1, -1, -1}, upper[] = {1, 1, 1};
    for (unsigned rank = 0; rank < 7; rank++)
        ASK(ask_name("im2col rank %u", rank),
            cuTensorMapEncodeIm2col(&t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank,
                                    (void *)(uintptr_t)0x7fa28bf01000, dims, strides, lower, upper, 32, 64,
                                    steps, 0, 0, 0, 0));
    ASK("im2col NULL lower",
        cuTensorMapEncodeIm2col(&t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)(uintptr_t)0x7fa28bf01000,
                                dims, strides, NULL, upper, 32, 64, steps, 0, 0, 0, 0));
    ASK("im2col NULL upper",
        cuTensorMapEncodeIm2col(&t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)(uintptr_t)0x7fa28bf01000,
                                dims, strides, lower, NULL, 32, 64, steps, 0, 0, 0, 0));
    for (int mode = 0; mode < 3; mode++)
        for (unsigned rank = 2; rank < 6; rank++) {
            ASK(ask_name("wide mode %d rank %u", mode, rank),
                cuTensorMapEncodeIm2colWide(&t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank,
                                            (void *)(uintptr_t)0x7fa28bf01000, dims, strides, -1, 1, 32, 64,
                                            steps, 0, (CUtensorMapIm2ColWideMode)mode,
                                            CU_TENSOR_MAP_SWIZZLE_128B, 0, 0));
        }
}
