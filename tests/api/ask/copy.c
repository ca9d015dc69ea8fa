/* Copies of every shape, sets, arrays and texture objects: what they refuse. */
#include "ask.h"

static CUdeviceptr of(const void *host)
{
    return (CUdeviceptr)(uintptr_t)host;
}

static unsigned char pageable[DEVICE_BYTES];

/* One side of a copy and the memory around it. */
struct side {
    const char *name;
    CUdeviceptr address;
};

static void linear(void)
{
    const struct side sides[] = {{"device", o.device},
                                 {"pinned", of(o.pinned)},
                                 {"managed", o.managed},
                                 {"pooled", o.pooled},
                                 {"pageable", of(pageable)}};
    for (size_t i = 0; i < COUNT(sides); i++)
        for (size_t j = 0; j < COUNT(sides); j++) {
            const CUdeviceptr to = sides[i].address, from = sides[j].address + 2048;
            const char *const pair = ask_name("%s <- %s", sides[i].name, sides[j].name);
            ASK(ask_name("cuMemcpy %s", pair), cuMemcpy(to, from, 64));
            ASK(ask_name("cuMemcpyAsync %s", pair), cuMemcpyAsync(to, from, 64, o.stream));
            ASK(ask_name("cuMemcpyDtoD %s", pair), cuMemcpyDtoD(to, from, 64));
            ASK(ask_name("cuMemcpyHtoD %s", pair), cuMemcpyHtoD(to, (void *)(uintptr_t)from, 64));
            ASK(ask_name("cuMemcpyDtoH %s", pair), cuMemcpyDtoH((void *)(uintptr_t)to, from, 64));
            ASK(ask_name("cuMemcpyDtoDAsync %s", pair), cuMemcpyDtoDAsync(to, from, 64, o.stream));
            ASK(ask_name("cuMemcpyHtoDAsync %s", pair),
                cuMemcpyHtoDAsync(to, (void *)(uintptr_t)from, 64, o.stream));
            ASK(ask_name("cuMemcpyDtoHAsync %s", pair),
                cuMemcpyDtoHAsync((void *)(uintptr_t)to, from, 64, o.stream));
            ASK(ask_name("finish %s", pair), cuStreamSynchronize(o.stream));
        }
}

static const CUmemorytype types[] = {(CUmemorytype)0,     CU_MEMORYTYPE_HOST,    CU_MEMORYTYPE_DEVICE,
                                     CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_UNIFIED, (CUmemorytype)5};

static CUDA_MEMCPY2D flat(CUmemorytype from, CUmemorytype to)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = from,
                           .srcHost = o.pinned,
                           .srcDevice = o.device,
                           .srcArray = o.array,
                           .srcPitch = 128,
                           .dstMemoryType = to,
                           .dstHost = (char *)o.pinned + 8192,
                           .dstDevice = o.device + 8192,
                           .dstArray = o.array,
                           .dstPitch = 256,
                           .WidthInBytes = 64,
                           .Height = 8};
}

static CUDA_MEMCPY3D solid(CUmemorytype from, CUmemorytype to)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = from,
                           .srcHost = o.pinned,
                           .srcDevice = o.device,
                           .srcArray = o.array,
                           .srcPitch = 128,
                           .srcHeight = 8,
                           .dstMemoryType = to,
                           .dstHost = (char *)o.pinned + 8192,
                           .dstDevice = o.device + 8192,
                           .dstArray = o.array,
                           .dstPitch = 256,
                           .dstHeight = 8,
                           .WidthInBytes = 64,
                           .Height = 8,
                           .Depth = 1};
}

static const struct {
    const char *name;
    size_t src_pitch, dst_pitch, width, height, src_x, src_y, dst_x, dst_y;
} pitched[] = {
    {"plain", 128, 256, 64, 8, 0, 0, 0, 0},
    {"width 0", 128, 256, 0, 8, 0, 0, 0, 0},
    {"height 0", 128, 256, 64, 0, 0, 0, 0, 0},
    {"source pitch below width", 63, 256, 64, 8, 0, 0, 0, 0},
    {"source pitch below width, one row", 63, 256, 64, 1, 0, 0, 0, 0},
    {"source pitch 0", 0, 256, 64, 8, 0, 0, 0, 0},
    {"source pitch 0, one row", 0, 256, 64, 1, 0, 0, 0, 0},
    {"target pitch below width", 128, 63, 64, 8, 0, 0, 0, 0},
    {"target pitch 0", 128, 0, 64, 8, 0, 0, 0, 0},
    {"source pitch below x + width", 64, 256, 64, 8, 1, 0, 0, 0},
    {"source x", 128, 256, 64, 8, 3, 0, 0, 0},
    {"target x", 128, 256, 64, 8, 0, 0, 5, 0},
    {"source y", 128, 256, 64, 8, 0, 7, 0, 0},
    {"odd pitch", 65, 67, 64, 8, 0, 0, 0, 0},
    {"pitch beyond the limit", (size_t)1 << 31, 256, 64, 1, 0, 0, 0, 0},
    {"pitch at the limit", ((size_t)1 << 31) - 1, 256, 64, 1, 0, 0, 0, 0},
    {"target pitch beyond the limit", 128, (size_t)1 << 31, 64, 1, 0, 0, 0, 0},
    {"beyond the source", 128, 256, 64, 513, 0, 0, 0, 0},
    {"just inside the source", 1024, 512, 64, 64, 0, 0, 0, 0},
    {"source y beyond", 128, 256, 64, 1, 0, 512, 0, 0},
    {"huge height", 128, 256, 64, (size_t)1 << 40, 0, 0, 0, 0},
    {"huge width", (size_t)1 << 50, (size_t)1 << 50, (size_t)1 << 50, 1, 0, 0, 0, 0},
    {"overflow", ~(size_t)0, ~(size_t)0, 64, 8, 0, 0, 0, 0},
};

/* `large`: those which reach far, and only those. */
static void pitches(bool large)
{
    for (size_t i = 0; i < COUNT(pitched); i++)
        for (int to = 1; to < 3; to++) {
            if (large != (pitched[i].height > 1000 || pitched[i].width > 1000))
                continue;
            CUDA_MEMCPY2D copy = flat(CU_MEMORYTYPE_DEVICE, (CUmemorytype)to);
            copy.srcPitch = pitched[i].src_pitch, copy.dstPitch = pitched[i].dst_pitch;
            copy.WidthInBytes = pitched[i].width, copy.Height = pitched[i].height;
            copy.srcXInBytes = pitched[i].src_x, copy.srcY = pitched[i].src_y;
            copy.dstXInBytes = pitched[i].dst_x, copy.dstY = pitched[i].dst_y;
            /* what reaches beyond host memory is not asked */
            if (to == 1 && pitched[i].height * (pitched[i].dst_pitch > pitched[i].width ? pitched[i].dst_pitch
                                                                                        : pitched[i].width) >
                               DEVICE_BYTES / 2)
                continue;
            ASK(ask_name("2D to %d, %s", to, pitched[i].name), cuMemcpy2D(&copy));
            ASK(ask_name("2D unaligned to %d, %s", to, pitched[i].name), cuMemcpy2DUnaligned(&copy));
            ASK(ask_name("2D async to %d, %s", to, pitched[i].name), cuMemcpy2DAsync(&copy, o.stream));
            ASK(ask_name("finish 2D to %d, %s", to, pitched[i].name), cuStreamSynchronize(o.stream));
        }
}

static void two_dimensions(void)
{
    for (size_t i = 0; i < COUNT(types); i++)
        for (size_t j = 0; j < COUNT(types); j++) {
            CUDA_MEMCPY2D copy = flat(types[i], types[j]);
            ASK(ask_name("2D %d -> %d", (int)types[i], (int)types[j]), cuMemcpy2D(&copy));
            ASK(ask_name("2D unaligned %d -> %d", (int)types[i], (int)types[j]), cuMemcpy2DUnaligned(&copy));
            ASK(ask_name("2D async %d -> %d", (int)types[i], (int)types[j]),
                cuMemcpy2DAsync(&copy, o.stream));
            CUDA_MEMCPY3D deep = solid(types[i], types[j]);
            ASK(ask_name("3D %d -> %d", (int)types[i], (int)types[j]), cuMemcpy3D(&deep));
        }
    pitches(false);
    ASK("2D NULL", cuMemcpy2D(NULL));
    ASK("2D async NULL", cuMemcpy2DAsync(NULL, o.stream));
    /* arrays of 64 x 32 floats */
    static const struct {
        const char *name;
        size_t x, y, width, height;
    } boxes[] = {{"whole", 0, 0, 256, 32},       {"one too wide", 0, 0, 257, 32},
                 {"4 too wide", 0, 0, 260, 32},  {"one too high", 0, 0, 256, 33},
                 {"x of 2", 2, 0, 4, 1},         {"width of 2", 0, 0, 2, 1},
                 {"x at the end", 256, 0, 4, 1}, {"x beyond", 252, 0, 8, 1},
                 {"y beyond", 0, 32, 4, 1},      {"last", 252, 31, 4, 1}};
    for (size_t i = 0; i < COUNT(boxes); i++) {
        CUDA_MEMCPY2D copy = flat(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY);
        copy.srcPitch = 512;
        copy.dstXInBytes = boxes[i].x, copy.dstY = boxes[i].y;
        copy.WidthInBytes = boxes[i].width, copy.Height = boxes[i].height;
        ASK(ask_name("2D to the array, %s", boxes[i].name), cuMemcpy2D(&copy));
        copy = flat(CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_DEVICE);
        copy.dstPitch = 512;
        copy.srcXInBytes = boxes[i].x, copy.srcY = boxes[i].y;
        copy.WidthInBytes = boxes[i].width, copy.Height = boxes[i].height;
        ASK(ask_name("2D from the array, %s", boxes[i].name), cuMemcpy2D(&copy));
        ASK(ask_name("to the array at, %s", boxes[i].name),
            cuMemcpyHtoA(o.array, boxes[i].x + boxes[i].y * 256, pageable, boxes[i].width));
    }
    ASK("array NULL", cuMemcpyHtoA(NULL, 0, pageable, 4));
    ASK("array from NULL", cuMemcpyHtoA(o.array, 0, NULL, 4));
    ASK("array from the array", cuMemcpyAtoA(o.array, 0, o.array, 1024, 256));
    ASK("array, 0 bytes", cuMemcpyHtoA(o.array, 0, pageable, 0));
    ASK("array over several rows", cuMemcpyHtoA(o.array, 0, pageable, 512));
    ASK("array beyond", cuMemcpyAtoH(pageable, o.array, 256 * 32, 4));
}

static void three_dimensions(void)
{
    static const struct {
        const char *name;
        size_t pitch, slice_rows, width, height, depth, lod;
    } cases[] = {
        {"plain", 128, 8, 64, 8, 4, 0},
        {"depth 0", 128, 8, 64, 8, 0, 0},
        {"height 0", 128, 8, 64, 0, 1, 0},
        {"width 0", 128, 8, 0, 8, 1, 0},
        {"rows below height", 128, 7, 64, 8, 4, 0},
        {"rows below height, one slice", 128, 7, 64, 8, 1, 0},
        {"rows 0", 128, 0, 64, 8, 4, 0},
        {"rows 0, one slice", 128, 0, 64, 8, 1, 0},
        {"pitch below width", 63, 8, 64, 8, 1, 0},
        {"pitch 0, one row", 0, 0, 64, 1, 1, 0},
        {"level 1", 128, 8, 64, 8, 1, 1},
        {"beyond", 128, 8, 64, 8, 1000, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        CUDA_MEMCPY3D copy = solid(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
        copy.srcPitch = cases[i].pitch, copy.srcHeight = cases[i].slice_rows;
        copy.WidthInBytes = cases[i].width, copy.Height = cases[i].height, copy.Depth = cases[i].depth;
        copy.srcLOD = cases[i].lod;
        ASK(ask_name("3D %s", cases[i].name), cuMemcpy3D(&copy));
        ASK(ask_name("3D async %s", cases[i].name), cuMemcpy3DAsync(&copy, o.stream));
        copy = solid(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
        copy.dstPitch = cases[i].pitch, copy.dstHeight = cases[i].slice_rows;
        copy.WidthInBytes = cases[i].width, copy.Height = cases[i].height, copy.Depth = cases[i].depth;
        copy.dstLOD = cases[i].lod;
        ASK(ask_name("3D target %s", cases[i].name), cuMemcpy3D(&copy));
    }
    ASK("3D NULL", cuMemcpy3D(NULL));
    CUDA_MEMCPY3D reserved = solid(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
    reserved.reserved0 = (void *)(uintptr_t)1;
    ASK("3D reserved0", cuMemcpy3D(&reserved));
    ASK("finish 3D", cuStreamSynchronize(o.stream));
    CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = o.device,
                               .srcContext = o.context,
                               .srcPitch = 128,
                               .srcHeight = 8,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = o.device + 8192,
                               .dstContext = o.context,
                               .dstPitch = 128,
                               .dstHeight = 8,
                               .WidthInBytes = 64,
                               .Height = 8,
                               .Depth = 2};
    ASK("3D peer", cuMemcpy3DPeer(&peer));
    ASK("3D peer async", cuMemcpy3DPeerAsync(&peer, o.stream));
    peer.srcContext = NULL;
    ASK("3D peer without context", cuMemcpy3DPeer(&peer));
    ASK("peer without context", cuMemcpyPeer(o.device, NULL, o.device + 64, o.context, 64));
    ASK("3D peer NULL", cuMemcpy3DPeer(NULL));
}

void section_copy(void)
{
    if (!ask_setup())
        return;
    linear();
    ASK("overlapping", cuMemcpyDtoD(o.device, o.device + 16, 64));
    ASK("onto itself", cuMemcpyDtoD(o.device, o.device, 64));
    ASK("over the end of the pinned memory", cuMemcpyDtoH((char *)o.pinned + DEVICE_BYTES - 8, o.device, 8));
    two_dimensions();
    three_dimensions();
    CUdeviceptr to[2] = {o.device, o.device + 4096}, from[2] = {o.device + 8192, of(o.pinned)};
    size_t bytes[2] = {64, 64}, indices[2] = {0, 1};
    CUmemcpyAttributes attributes[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
                                        {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY}};
    ASK("batch", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, o.stream));
    ASK("batch of none", cuMemcpyBatchAsync(to, from, bytes, 0, attributes, indices, 1, o.stream));
    ASK("batch without attributes", cuMemcpyBatchAsync(to, from, bytes, 2, NULL, NULL, 0, o.stream));
    ASK("batch on legacy", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, NULL));
    ASK("batch NULL", cuMemcpyBatchAsync(NULL, from, bytes, 2, attributes, indices, 2, o.stream));
    indices[0] = 1;
    ASK("batch, first index 1", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 1, o.stream));
    indices[0] = 0, indices[1] = 0;
    ASK("batch, equal indices", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, o.stream));
    indices[1] = 2;
    ASK("batch, index too large", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, o.stream));
    indices[1] = 1, bytes[1] = 0;
    ASK("batch, 0 bytes", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, o.stream));
    bytes[1] = 64;
    for (int order = 0; order < 6; order++) {
        attributes[0].srcAccessOrder = (CUmemcpySrcAccessOrder)order;
        ASK(ask_name("batch, order %d", order),
            cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 1, o.stream));
    }
    attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    attributes[0].flags = 2;
    ASK("batch, flags 2", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 1, o.stream));
    attributes[0].flags = 0;
    to[0] = 0;
    ASK("batch to NULL", cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 1, o.stream));
    ASK("batch finish", cuStreamSynchronize(o.stream));
}

static CUresult set(unsigned size, CUdeviceptr to, size_t count, int how)
{
    switch (size * 2 + (unsigned)how) {
    case 2:
        return cuMemsetD8(to, 1, count);
    case 3:
        return cuMemsetD8Async(to, 1, count, o.stream);
    case 4:
        return cuMemsetD16(to, 1, count);
    case 5:
        return cuMemsetD16Async(to, 1, count, o.stream);
    case 8:
        return cuMemsetD32(to, 1, count);
    default:
        return cuMemsetD32Async(to, 1, count, o.stream);
    }
}

void section_bad_copy(void)
{
    if (!ask_setup())
        return;
    const struct {
        const char *name;
        CUdeviceptr address;
        size_t bytes;
    } bad[] = {{"NULL", 0, 16},
               {"NULL, 0 bytes", 0, 0},
               {"beyond", o.device + DEVICE_BYTES - 8, 16},
               {"far beyond", o.device + ((CUdeviceptr)1 << 45), 16},
               {"before", o.device - ((CUdeviceptr)1 << 30), 16},
               {"too many", o.device, ~(size_t)0},
               {"more than there is", o.device, (size_t)1 << 42},
               {"wild", (CUdeviceptr)0xdead00000000beef, 16}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        ASK(ask_name("cuMemcpyHtoD to %s", bad[i].name),
            cuMemcpyHtoD(bad[i].address, o.pinned, bad[i].bytes < 65536 ? bad[i].bytes : 65536));
        ASK(ask_name("cuMemcpyDtoH from %s", bad[i].name),
            cuMemcpyDtoH(o.pinned, bad[i].address, bad[i].bytes < 65536 ? bad[i].bytes : 65536));
        ASK(ask_name("cuMemcpyDtoD to %s", bad[i].name),
            cuMemcpyDtoD(bad[i].address, o.device, bad[i].bytes));
        ASK(ask_name("cuMemcpyDtoD from %s", bad[i].name),
            cuMemcpyDtoD(o.device, bad[i].address, bad[i].bytes));
        ASK(ask_name("cuMemcpyDtoDAsync to %s", bad[i].name),
            cuMemcpyDtoDAsync(bad[i].address, o.device, bad[i].bytes, o.stream));
        ASK(ask_name("cuMemcpyHtoDAsync to %s", bad[i].name),
            cuMemcpyHtoDAsync(bad[i].address, o.pinned, bad[i].bytes < 65536 ? bad[i].bytes : 65536,
                              o.stream));
        ASK(ask_name("finish %s", bad[i].name), cuCtxSynchronize());
    }
    pitches(true);
    ASK("D8 overflow", set(1, o.device, ~(size_t)0, 0));
    ASK("finish D8 overflow", cuCtxSynchronize());
}

/* ---- sets ---- */

static CUresult set_2d(unsigned size, CUdeviceptr to, size_t pitch, size_t width, size_t height, int how)
{
    switch (size * 2 + (unsigned)how) {
    case 2:
        return cuMemsetD2D8(to, pitch, 1, width, height);
    case 3:
        return cuMemsetD2D8Async(to, pitch, 1, width, height, o.stream);
    case 4:
        return cuMemsetD2D16(to, pitch, 1, width, height);
    case 5:
        return cuMemsetD2D16Async(to, pitch, 1, width, height, o.stream);
    case 8:
        return cuMemsetD2D32(to, pitch, 1, width, height);
    default:
        return cuMemsetD2D32Async(to, pitch, 1, width, height, o.stream);
    }
}

void section_set(void)
{
    if (!ask_setup())
        return;
    for (unsigned size = 1; size <= 4; size *= 2)
        for (int how = 0; how < 2; how++) {
            const char *const kind = how == 0 ? "" : "async ";
            for (unsigned offset = 0; offset < 4; offset++)
                ASK(ask_name("D%u %sat %u", 8 * size, kind, offset), set(size, o.device + offset, 4, how));
            const struct side places[] = {{"pinned", of(o.pinned)},
                                          {"managed", o.managed},
                                          {"pooled", o.pooled},
                                          {"pageable", of(pageable)},
                                          {"NULL", 0},
                                          {"the end", o.device + DEVICE_BYTES},
                                          {"the last", o.device + DEVICE_BYTES - size}};
            for (size_t i = 0; i < COUNT(places); i++) {
                ASK(ask_name("D%u %sof one at %s", 8 * size, kind, places[i].name),
                    set(size, places[i].address, 1, how));
                ASK(ask_name("D%u %sof none at %s", 8 * size, kind, places[i].name),
                    set(size, places[i].address, 0, how));
            }
            ASK(ask_name("D%u %swhole", 8 * size, kind), set(size, o.device, DEVICE_BYTES / size, how));
            ASK(ask_name("D%u %sbeyond", 8 * size, kind), set(size, o.device, (size_t)1 << 40, how));
            static const struct {
                size_t pitch, width, height;
            } shapes[] = {{64, 8, 4},
                          {64, 0, 4},
                          {64, 8, 0},
                          {8, 16, 2},
                          {8, 16, 1},
                          {0, 8, 1},
                          {0, 8, 2},
                          {65, 8, 2},
                          {66, 8, 2},
                          {4096, 8, 17},
                          {65536, 8, 1},
                          {65536, 8, 2},
                          {(size_t)1 << 31, 8, 1},
                          {16, 16, 1},
                          {(size_t)1 << 40, 8, 1}};
            for (size_t i = 0; i < COUNT(shapes); i++)
                ASK(ask_name("D2D%u %s%zu %zu x %zu", 8 * size, kind, shapes[i].pitch, shapes[i].width,
                             shapes[i].height),
                    set_2d(size, o.device, shapes[i].pitch, shapes[i].width, shapes[i].height, how));
            ASK(ask_name("D2D%u %sat 1", 8 * size, kind), set_2d(size, o.device + 1, 64, 8, 4, how));
        }
    ASK("finish", cuCtxSynchronize());
}

/* ---- arrays ---- */

void section_array(void)
{
    CUarray made = NULL;
    CUDA_ARRAY_DESCRIPTOR plain = {64, 32, CU_AD_FORMAT_FLOAT, 1};
    if (!ask_setup())
        return;
    ASK("create NULL", cuArrayCreate(NULL, &plain));
    ASK("create NULL descriptor", cuArrayCreate(&made, NULL));
    ASK("3D create NULL", cuArray3DCreate(NULL, NULL));
    static const size_t sizes[][2] = {{0, 0},      {0, 1},     {1, 0},     {131072, 0}, {131073, 0},
                                      {131072, 1}, {1, 65536}, {1, 65537}, {131073, 1}, {1, 1}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const CUDA_ARRAY_DESCRIPTOR sized = {sizes[i][0], sizes[i][1], CU_AD_FORMAT_UNSIGNED_INT8, 1};
        made = NULL;
        ASK(ask_name("create %zu x %zu", sizes[i][0], sizes[i][1]), cuArrayCreate(&made, &sized));
        if (made != NULL)
            cuArrayDestroy(made);
    }
    static const int formats[] = {0,    1,    2,    3,    4,    8,    9,    10,  11,
                                  0x10, 0x20, 0x30, 0x91, 0xb0, 0xc0, 0xc3, 0xff};
    for (size_t i = 0; i < COUNT(formats); i++)
        for (unsigned channels = 0; channels < 6; channels++) {
            const CUDA_ARRAY_DESCRIPTOR formed = {64, 32, (CUarray_format)formats[i], channels};
            made = NULL;
            ASK(ask_name("create format %#x x %u", (unsigned)formats[i], channels),
                cuArrayCreate(&made, &formed));
            if (made != NULL)
                cuArrayDestroy(made);
        }
    static const size_t solids[][3] = {{64, 32, 0},   {64, 32, 8},   {64, 0, 8},
                                       {0, 32, 8},    {16384, 1, 1}, {16385, 1, 1},
                                       {1, 1, 16384}, {1, 1, 16385}, {1, 16385, 1}};
    for (unsigned flags = 0; flags < 256; flags = flags == 0 ? 1 : 2 * flags)
        for (size_t i = 0; i < (flags < 16 ? COUNT(solids) : 2); i++) {
            const CUDA_ARRAY3D_DESCRIPTOR sized = {
                solids[i][0], solids[i][1], solids[i][2], CU_AD_FORMAT_UNSIGNED_INT8, 1, flags};
            made = NULL;
            ASK(ask_name("3D create %zu x %zu x %zu flags %#x", solids[i][0], solids[i][1], solids[i][2],
                         flags),
                cuArray3DCreate(&made, &sized));
            if (made != NULL)
                cuArrayDestroy(made);
        }
    static const size_t layers[][4] = {{64, 32, 6, CUDA_ARRAY3D_CUBEMAP},
                                       {32, 32, 6, CUDA_ARRAY3D_CUBEMAP},
                                       {32, 32, 7, CUDA_ARRAY3D_CUBEMAP},
                                       {32, 32, 12, CUDA_ARRAY3D_CUBEMAP},
                                       {32, 32, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
                                       {32, 32, 13, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
                                       {32, 32, 2048, CUDA_ARRAY3D_LAYERED},
                                       {32, 32, 2049, CUDA_ARRAY3D_LAYERED},
                                       {32, 0, 4, CUDA_ARRAY3D_LAYERED}};
    for (size_t i = 0; i < COUNT(layers); i++) {
        const CUDA_ARRAY3D_DESCRIPTOR sized = {
            layers[i][0], layers[i][1], layers[i][2], CU_AD_FORMAT_FLOAT, 1, (unsigned)layers[i][3]};
        made = NULL;
        ASK(ask_name("layers %zu x %zu x %zu flags %#zx", layers[i][0], layers[i][1], layers[i][2],
                     layers[i][3]),
            cuArray3DCreate(&made, &sized));
        if (made != NULL)
            cuArrayDestroy(made);
    }
    CUDA_ARRAY_DESCRIPTOR read = {0};
    CUDA_ARRAY3D_DESCRIPTOR read_3d = {0};
    ASKF("descriptor", cuArrayGetDescriptor(&read, o.array), " %zu %zu %d %u", read.Width, read.Height,
         (int)read.Format, read.NumChannels);
    ASKF("3D descriptor", cuArray3DGetDescriptor(&read_3d, o.array), " %zu %zu %zu %d %u %u", read_3d.Width,
         read_3d.Height, read_3d.Depth, (int)read_3d.Format, read_3d.NumChannels, read_3d.Flags);
    ASK("descriptor NULL", cuArrayGetDescriptor(NULL, o.array));
    ASK("descriptor of NULL", cuArrayGetDescriptor(&read, NULL));
    ASK("3D descriptor of NULL", cuArray3DGetDescriptor(&read_3d, NULL));
    ASK("destroy NULL", cuArrayDestroy(NULL));
    ASK("plane 0", cuArrayGetPlane(&made, o.array, 0));
    ASK("plane 1", cuArrayGetPlane(&made, o.array, 1));
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    ASK("sparse properties", cuArrayGetSparseProperties(&sparse, o.array));
    ASK("sparse properties of NULL", cuArrayGetSparseProperties(&sparse, NULL));
    CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
    ASK("memory requirements", cuArrayGetMemoryRequirements(&requirements, o.array, 0));
    CUmipmappedArray mipmap = NULL;
    const CUDA_ARRAY3D_DESCRIPTOR levels = {
        .Width = 64, .Height = 32, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    for (unsigned count = 0; count < 10; count++) {
        mipmap = NULL;
        ASK(ask_name("mipmap of %u", count), cuMipmappedArrayCreate(&mipmap, &levels, count));
        for (unsigned level = 0; level < 8 && mipmap != NULL; level++)
            if (level == 0 || level + 1 >= count) {
                read_3d = (CUDA_ARRAY3D_DESCRIPTOR){0};
                made = NULL;
                const CUresult got = cuMipmappedArrayGetLevel(&made, mipmap, level);
                if (got == CUDA_SUCCESS)
                    cuArray3DGetDescriptor(&read_3d, made);
                ASKF(ask_name("mipmap of %u level %u", count, level), got, " %zu x %zu x %zu", read_3d.Width,
                     read_3d.Height, read_3d.Depth);
            }
        if (mipmap != NULL)
            cuMipmappedArrayDestroy(mipmap);
    }
    ASK("mipmap NULL", cuMipmappedArrayCreate(NULL, &levels, 1));
    ASK("mipmap NULL descriptor", cuMipmappedArrayCreate(&mipmap, NULL, 1));
    ASK("mipmap level NULL", cuMipmappedArrayGetLevel(NULL, o.mipmap, 0));
    ASK("mipmap level of NULL", cuMipmappedArrayGetLevel(&made, NULL, 0));
    ASK("mipmap destroy NULL", cuMipmappedArrayDestroy(NULL));
    cuMipmappedArrayGetLevel(&made, o.mipmap, 0);
    ASK("destroy a level", cuArrayDestroy(made));
    ASK("destroy", cuArrayDestroy(o.array));
}

/* ---- texture objects ---- */

void section_texture(void)
{
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    if (!ask_setup())
        return;
    const CUDA_RESOURCE_DESC array = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = o.array};
    const CUDA_RESOURCE_DESC row = {.resType = CU_RESOURCE_TYPE_LINEAR,
                                    .res.linear = {o.device, CU_AD_FORMAT_FLOAT, 1, 4096}};
    const CUDA_RESOURCE_DESC rows = {.resType = CU_RESOURCE_TYPE_PITCH2D,
                                     .res.pitch2D = {o.device, CU_AD_FORMAT_FLOAT, 1, 64, 8, 256}};
    const CUDA_RESOURCE_DESC mips = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                     .res.mipmap.hMipmappedArray = o.mipmap};
    const CUDA_RESOURCE_DESC *const resources[] = {&array, &mips, &row, &rows};
    for (size_t r = 0; r < COUNT(resources); r++) {
        for (int mode = 0; mode < 5; mode++)
            for (unsigned normalized = 0; normalized < 3; normalized += 2) {
                const CUDA_TEXTURE_DESC sampler = {
                    .addressMode = {(CUaddress_mode)mode, (CUaddress_mode)mode, (CUaddress_mode)mode},
                    .flags = normalized};
                ASK(ask_name("texture %zu address mode %d flags %u", r, mode, normalized),
                    cuTexObjectCreate(&texture, resources[r], &sampler, NULL));
            }
        for (int filter = 0; filter < 3; filter++) {
            const CUDA_TEXTURE_DESC sampler = {
                .addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                .filterMode = (CUfilter_mode)filter};
            ASK(ask_name("texture %zu filter %d", r, filter),
                cuTexObjectCreate(&texture, resources[r], &sampler, NULL));
        }
        for (unsigned flags = 1; flags < 256; flags *= 2) {
            const CUDA_TEXTURE_DESC sampler = {
                .addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}, .flags = flags};
            ASK(ask_name("texture %zu flags %#x", r, flags),
                cuTexObjectCreate(&texture, resources[r], &sampler, NULL));
        }
        const CUDA_TEXTURE_DESC sampler = {
            .addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
        ASK(ask_name("texture %zu", r), cuTexObjectCreate(&texture, resources[r], &sampler, NULL));
        CUDA_RESOURCE_DESC resource;
        CUDA_TEXTURE_DESC read;
        CUDA_RESOURCE_VIEW_DESC view;
        memset(&resource, 0, sizeof resource);
        ASKF(ask_name("texture %zu resource", r), cuTexObjectGetResourceDesc(&resource, texture), " %d",
             (int)resource.resType);
        ASKF(ask_name("texture %zu sampler", r), cuTexObjectGetTextureDesc(&read, texture), " %d %d %u %u",
             (int)read.addressMode[0], (int)read.filterMode, read.flags, read.maxAnisotropy);
        ASK(ask_name("texture %zu view", r), cuTexObjectGetResourceViewDesc(&view, texture));
        ASK(ask_name("surface %zu", r), cuSurfObjectCreate(&surface, resources[r]));
        for (int format = 0; format < 36; format += 5) {
            const CUDA_RESOURCE_VIEW_DESC seen = {
                .format = (CUresourceViewFormat)format, .width = 64, .height = 32};
            ASK(ask_name("texture %zu view format %d", r, format),
                cuTexObjectCreate(&texture, resources[r], &sampler, &seen));
        }
        ASK(ask_name("texture %zu destroyed", r), cuTexObjectDestroy(texture));
    }
    const CUDA_TEXTURE_DESC sampler = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
    ASK("texture NULL", cuTexObjectCreate(NULL, &array, &sampler, NULL));
    ASK("texture NULL resource", cuTexObjectCreate(&texture, NULL, &sampler, NULL));
    ASK("texture NULL sampler", cuTexObjectCreate(&texture, &array, NULL, NULL));
    ASK("texture destroy 0", cuTexObjectDestroy(0));
    ASK("texture resource NULL", cuTexObjectGetResourceDesc(NULL, o.texture));
    ASK("surface NULL", cuSurfObjectCreate(NULL, &array));
    ASK("surface destroy 0", cuSurfObjectDestroy(0));
    for (int i = 0; i < 9; i++) {
        CUDA_RESOURCE_DESC changed = i < 5 ? row : rows;
        static const char *const names[] = {"at 16",         "at 4",          "of 0 bytes",
                                            "of 2^40 bytes", "of 3 channels", "pitch 260",
                                            "pitch 252",     "at 256",        "width 131073"};
        if (i == 0)
            changed.res.linear.devPtr += 16;
        else if (i == 1)
            changed.res.linear.devPtr += 4;
        else if (i == 2)
            changed.res.linear.sizeInBytes = 0;
        else if (i == 3)
            changed.res.linear.sizeInBytes = (size_t)1 << 40;
        else if (i == 4)
            changed.res.linear.numChannels = 3;
        else if (i == 5)
            changed.res.pitch2D.pitchInBytes = 260;
        else if (i == 6)
            changed.res.pitch2D.pitchInBytes = 252;
        else if (i == 7)
            changed.res.pitch2D.devPtr += 256;
        else
            changed.res.pitch2D.width = 131073;
        ASK(ask_name("texture of memory %s", names[i]),
            cuTexObjectCreate(&texture, &changed, &sampler, NULL));
    }
    CUDA_RESOURCE_DESC flagged = array;
    flagged.flags = 1;
    ASK("texture resource flags", cuTexObjectCreate(&texture, &flagged, &sampler, NULL));
    flagged.flags = 0, flagged.resType = (CUresourcetype)9;
    ASK("texture resource type 9", cuTexObjectCreate(&texture, &flagged, &sampler, NULL));
    flagged = row;
    flagged.res.linear.devPtr = 0;
    ASK("texture of memory at 0", cuTexObjectCreate(&texture, &flagged, &sampler, NULL));
}
