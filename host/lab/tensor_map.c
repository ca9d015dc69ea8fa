/* Tensor maps as an experiment file describes them, with every rule of cuTensorMapEncodeTiled and
   cuTensorMapEncodeIm2col (cuda.h of CUDA 13.0, comments of those functions) checked before the driver is
   asked, so that the message says which rule broke, with the value and the allowed ones. Left out: the
   im2col::w forms; the alignment of the buffer's address and the compute capability, which only the launch
   knows (arguments.c). */
#include "lab/plan.h"

#include "lab/wire.h"

#include <stdio.h>
#include <string.h>

#define MAX_RANK 5

/* Data types in the order of CUtensorMapDataType; `bits` of one element in memory. */
static const struct element {
    const char *name;
    int bits;
    bool is_float;
} element_types[] = {
    {"u8", 8, false},
    {"u16", 16, false},
    {"u32", 32, false},
    {"s32", 32, false},
    {"u64", 64, false},
    {"s64", 64, false},
    {"f16", 16, true},
    {"f32", 32, true},
    {"f64", 64, true},
    {"bf16", 16, true},
    {"f32_ftz", 32, true},
    {"tf32", 32, true},
    {"tf32_ftz", 32, true},
    {"16u4_align8b", 4, false},
    {"16u4_align16b", 4, false},
    {"16u6_align16b", 6, false},
};
#define U4_ALIGN8  13
#define U4_ALIGN16 14
#define U6_ALIGN16 15

static const char *const interleaves[] = {"none", "16B", "32B"};
static const char *const swizzles[] = {
    "none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"};
static const int swizzle_span[] = {0, 32, 64, 128, 128, 128, 128};
static const char *const promotions[] = {"none", "64B", "128B", "256B"};
static const char *const out_of_bounds[] = {"zeros", "nan"};

/* The field's position among the allowed names. */
static int read_choice(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                       const char *const *names, int n)
{
    struct clab_path at = {.up = path, .key = key};
    const char *text = clab_field_string(eval, path, index, key, names[0]);
    char allowed[256] = "";
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
        int wrote = snprintf(allowed + used, sizeof allowed - used, "%s%s", i > 0 ? ", " : "", names[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    clab_eval_fail(eval, &at, "wanted one of %s; got '%.40s'", allowed, text);
}

/* A list of n whole numbers in [low, high], a multiple of `unit` each. */
static void read_numbers(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                         long long n, long long low, long long high, long long unit, long long *out)
{
    lua_State *L = eval->L;
    struct clab_path at = {.up = path, .key = key};
    if (clab_push_field(eval, index, key) == LUA_TNIL)
        clab_eval_fail(eval, path, "a tensor map needs `%s` with %lld numbers", key, n);
    lua_Integer got = clab_read_list(eval, &at, -1);
    if (got != n)
        clab_eval_fail(eval, &at, "wanted %lld numbers (the rank is that of `dims`), got %lld", n,
                       (long long)got);
    for (lua_Integer i = 1; i <= n; i++) {
        struct clab_path item = {.up = &at, .index = i};
        lua_rawgeti(L, -1, i);
        out[i - 1] = clab_read_integer(eval, &item, -1, low, high);
        if (out[i - 1] % unit != 0)
            clab_eval_fail(eval, &item, "wanted a multiple of %lld, got %lld", unit, out[i - 1]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static json_t *numbers_to_json(struct clab_eval *eval, const long long *numbers, long long n)
{
    json_t *list = clab_eval_json(eval, json_array());
    for (long long i = 0; i < n; i++)
        clab_eval_append(eval, list, json_integer(numbers[i]));
    return list;
}

/* im2col = { lower, upper, channels, pixels }: the corners of the box of pixels, one number for each
   dimension between the first (channels) and the last (images), and the box's size. */
static json_t *read_im2col(struct clab_eval *eval, const struct clab_path *path, int index, long long rank,
                           const long long *dims, long long *out_width)
{
    static const char *const fields[] = {"lower", "upper", "channels", "pixels"};
    struct clab_path at = {.up = path, .key = "im2col"}, upper_path = {.up = &at, .key = "upper"};
    long long lower[MAX_RANK], upper[MAX_RANK];
    if (clab_push_field(eval, index, "im2col") == LUA_TNIL) {
        lua_pop(eval->L, 1);
        return NULL;
    }
    int table = lua_absindex(eval->L, -1);
    clab_read_table(eval, &at, table, fields, sizeof fields / sizeof *fields, false);
    if (rank < 3)
        clab_eval_fail(eval, &at, "an im2col tensor has a rank of 3 to %d, this one has %lld", MAX_RANK,
                       rank);
    const long long high = rank == 3 ? 32767 : rank == 4 ? 127 : 15;
    read_numbers(eval, &at, table, "lower", rank - 2, -high - 1, high, 1, lower);
    read_numbers(eval, &at, table, "upper", rank - 2, -high - 1, high, 1, upper);
    for (long long i = 0; i < rank - 2; i++) {
        struct clab_path item = {.up = &upper_path, .index = i + 1};
        if (dims[i + 1] + upper[i] <= lower[i])
            clab_eval_fail(eval, &item, "the box from %lld to %lld has no pixel of a dimension of %lld",
                           lower[i], upper[i], dims[i + 1]);
    }
    const long long channels = clab_field_integer(eval, &at, table, "channels", 1, 256, 0);
    const long long pixels = clab_field_integer(eval, &at, table, "pixels", 1, 1024, 0);
    if (channels == 0 || pixels == 0)
        clab_eval_fail(eval, &at, "im2col needs `channels` (1 to 256) and `pixels` (1 to 1024)");
    lua_pop(eval->L, 1);
    *out_width = channels;
    return clab_eval_json(eval,
                          json_pack("{s:o,s:o,s:I,s:I}", "lower", numbers_to_json(eval, lower, rank - 2),
                                    "upper", numbers_to_json(eval, upper, rank - 2), "channels",
                                    (json_int_t)channels, "pixels", (json_int_t)pixels));
}

json_t *clab_plan_tensor_map(struct clab_plan *plan, const struct clab_path *path, int index,
                             const json_t *buffers)
{
    static const char *const fields[] = {
        "buffer",     "type",    "dims", "strides",      "box",   "element_strides",
        "interleave", "swizzle", "fill", "l2_promotion", "im2col"};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    index = lua_absindex(L, index);
    clab_read_table(eval, path, index, fields, sizeof fields / sizeof *fields, false);
    struct clab_path buffer_path = {.up = path, .key = "buffer"}, type_path = {.up = path, .key = "type"},
                     dims_path = {.up = path, .key = "dims"}, box_path = {.up = path, .key = "box"},
                     strides_path = {.up = path, .key = "strides"},
                     swizzle_path = {.up = path, .key = "swizzle"},
                     interleave_path = {.up = path, .key = "interleave"},
                     fill_path = {.up = path, .key = "fill"};

    const char *buffer = clab_field_string(eval, path, index, "buffer", NULL), *buffer_type = "";
    if (buffer == NULL)
        clab_eval_fail(eval, path, "a tensor map needs a `buffer`");
    clab_plan_need_buffer(plan, &buffer_path, buffers, buffer);
    long long buffer_bytes = 0;
    for (size_t i = 0; i < json_array_size(buffers); i++) {
        const json_t *candidate = json_array_get(buffers, i);
        if (strcmp(clab_json_text(candidate, "name", ""), buffer) == 0) {
            buffer_type = clab_json_text(candidate, "type", "");
            for (size_t t = 0; t < sizeof element_types / sizeof *element_types; t++)
                if (strcmp(element_types[t].name, buffer_type) == 0)
                    buffer_bytes = clab_json_int(candidate, "count", 0) * element_types[t].bits / 8;
        }
    }
    const char *type = clab_field_string(eval, path, index, "type", buffer_type);
    size_t t = 0;
    while (t < sizeof element_types / sizeof *element_types && strcmp(element_types[t].name, type) != 0)
        t++;
    if (t == sizeof element_types / sizeof *element_types)
        clab_eval_fail(eval, &type_path,
                       "'%.40s' is no type of a tensor map (u8, u16, u32, s32, u64, s64, f16, bf16, "
                       "f32, f64, f32_ftz, tf32, tf32_ftz, 16u4_align8b, 16u4_align16b, 16u6_align16b)",
                       type);
    const bool wide = t == U4_ALIGN16 || t == U6_ALIGN16;

    int interleave = read_choice(eval, path, index, "interleave", interleaves, 3);
    int swizzle = read_choice(eval, path, index, "swizzle", swizzles, 7);
    int promotion = read_choice(eval, path, index, "l2_promotion", promotions, 4);
    int fill = read_choice(eval, path, index, "fill", out_of_bounds, 2);

    if (clab_push_field(eval, index, "dims") == LUA_TNIL)
        clab_eval_fail(eval, path, "a tensor map needs `dims`");
    long long rank = clab_read_list(eval, &dims_path, -1);
    lua_pop(L, 1);
    if (rank < 1 || rank > MAX_RANK)
        clab_eval_fail(eval, &dims_path, "the rank is 1 to %d, got %lld dimensions", MAX_RANK, rank);
    if (interleave != 0 && rank < 3)
        clab_eval_fail(eval, &interleave_path,
                       "an interleaved tensor has a rank of at least 3, this one has %lld", rank);
    if (interleave == 2 && swizzle != 1)
        clab_eval_fail(eval, &swizzle_path, "interleave 32B needs swizzle 32B, got %s", swizzles[swizzle]);

    if (interleave != 0 && t == U6_ALIGN16)
        clab_eval_fail(eval, &interleave_path, "a 16u6_align16b tensor takes interleave none, got %s",
                       interleaves[interleave]);

    long long dims[MAX_RANK], strides[MAX_RANK], box[MAX_RANK], steps[MAX_RANK] = {1, 1, 1, 1, 1};
    read_numbers(eval, path, index, "dims", rank, 1, (long long)1 << 32, 1, dims);
    if ((wide && dims[0] % 128 != 0) || (t == U4_ALIGN8 && dims[0] % 2 != 0))
        clab_eval_fail(eval, &dims_path, "the first dimension of a %s tensor is a multiple of %d, got %lld",
                       element_types[t].name, wide ? 128 : 2, dims[0]);
    const long long unit = interleave == 2 || wide ? 32 : 16;
    if (rank > 1)
        read_numbers(eval, path, index, "strides", rank - 1, unit, ((long long)1 << 40) - 1, unit, strides);
    long long row = dims[0] * element_types[t].bits / 8, last = row;
    for (long long i = 0; i + 1 < rank; i++) {
        struct clab_path item = {.up = &strides_path, .index = i + 1};
        if (strides[i] < row)
            clab_eval_fail(eval, &item, "the stride, %lld bytes, is less than what it steps over, %lld bytes",
                           strides[i], row);
        long long extent;
        if (__builtin_mul_overflow(strides[i], dims[i + 1], &row) ||
            __builtin_mul_overflow(strides[i], dims[i + 1] - 1, &extent) ||
            __builtin_add_overflow(last, extent, &last))
            clab_eval_fail(eval, &item, "the tensor is larger than memory");
    }
    if (buffer_bytes > 0 && last > buffer_bytes)
        clab_eval_fail(eval, path, "the tensor spans %lld bytes, buffer '%s' has %lld", last, buffer,
                       buffer_bytes);
    json_t *im2col = read_im2col(eval, path, index, rank, dims, &box[0]);
    if (im2col == NULL)
        read_numbers(eval, path, index, "box", rank, 1, 256, 1, box);
    else if (clab_push_field(eval, index, "box") != LUA_TNIL)
        clab_eval_fail(eval, &box_path, "an im2col tensor map has no box: channels and pixels are its size");
    else
        lua_pop(L, 1);
    const long long inner_bits = box[0] * element_types[t].bits;
    if (wide && box[0] != 128)
        clab_eval_fail(eval, &box_path, "the box of a %s tensor is 128 elements wide, got %lld",
                       element_types[t].name, box[0]);
    if (interleave == 0 && !wide && inner_bits % 128 != 0)
        clab_eval_fail(eval, &box_path,
                       "without interleave the box is a multiple of 16 bytes wide, got %lld bytes",
                       inner_bits / 8);
    if (interleave == 0 && swizzle != 0 && inner_bits / 8 > swizzle_span[swizzle])
        clab_eval_fail(eval, &swizzle_path,
                       "with swizzle %s the box is at most %d bytes wide, it is %lld bytes",
                       swizzles[swizzle], swizzle_span[swizzle], inner_bits / 8);
    if (t == U6_ALIGN16 && (swizzle == 1 || swizzle == 2 || swizzle == 5))
        clab_eval_fail(eval, &swizzle_path,
                       "16u6_align16b takes swizzle none, 128B or 128B_atom_32B (128B_atom_64B to "
                       "store only), got %s",
                       swizzles[swizzle]);
    if (t == U4_ALIGN16 && swizzle != 0 && swizzle != 3 && swizzle != 4)
        clab_eval_fail(eval, &swizzle_path, "16u4_align16b takes swizzle none, 128B or 128B_atom_32B, got %s",
                       swizzles[swizzle]);
    if (fill == 1 && (!element_types[t].is_float || t >= U4_ALIGN8))
        clab_eval_fail(eval, &fill_path, "nan fill is for floating point types, this tensor is %s",
                       element_types[t].name);
    if (clab_push_field(eval, index, "element_strides") != LUA_TNIL)
        read_numbers(eval, path, index, "element_strides", rank, 1, 8, 1, steps);
    lua_pop(L, 1);
    json_t *map = json_pack(
        "{s:s,s:s,s:i,s:i,s:o,s:o,s:o,s:i,s:i,s:i,s:i}", "buffer", buffer, "type", element_types[t].name,
        "type_code", (int)t, "rank", (int)rank, "dims", numbers_to_json(eval, dims, rank), "strides",
        numbers_to_json(eval, strides, rank - 1), "element_strides", numbers_to_json(eval, steps, rank),
        "interleave", interleave, "swizzle", swizzle, "l2_promotion", promotion, "fill", fill);
    clab_eval_json(eval, map);
    if (im2col != NULL)
        clab_eval_set(eval, map, "im2col", im2col);
    else
        clab_eval_set(eval, map, "box", numbers_to_json(eval, box, rank));
    return map;
}
