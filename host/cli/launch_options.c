/* One launch as the command line describes it: --grid, --block, --cluster, --smem, --cooperative and --arg,
   of `launch` and of `check` for a bare file, as the plan row and the buffer list that an experiment would
   have given. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "lab/fill.h"
#include "lab/read.h"
#include "lab/wire.h"

/* "8", "8,4" or "8x4x2" as an array of three. */
static clab_status parse_shape(const char *option, const char *text, json_t **out_shape,
                               struct clab_error *error)
{
    json_t *shape = json_array();
    const char *p = text;
    for (int i = 0; i < 3; i++) {
        long long value = 1;
        if (*p != '\0') {
            char *end;
            errno = 0;
            value = strtoll(p, &end, 10);
            if (end == p || errno != 0 || value < 0 || value > UINT32_MAX ||
                (*end != '\0' && *end != ',' && *end != 'x'))
                break;
            p = *end != '\0' ? end + 1 : end;
        }
        json_array_append_new(shape, json_integer(value));
    }
    if (text[0] == '\0' || *p != '\0' || json_array_size(shape) != 3) {
        json_decref(shape);
        return clab_error_set(error, CLAB_USAGE, "%s wants X, X,Y or X,Y,Z, got '%s'", option, text);
    }
    *out_shape = shape;
    return CLAB_OK;
}

/* What no device of compute capability 9.0 or later launches (CUDA Programming Guide 13.0, "Compute
   Capabilities", technical specifications), told before anything is compiled. */
static clab_status check_limits(const char *option, const json_t *shape, const char *text,
                                struct clab_error *error)
{
    static const json_int_t grid[3] = {INT32_MAX, 65535, 65535}, block[3] = {1024, 1024, 64};
    const bool is_block = strcmp(option, "--block") == 0;
    const json_int_t *most = is_block ? block : grid;
    json_int_t threads = 1;
    for (size_t i = 0; i < 3; i++) {
        const json_int_t side = json_integer_value(json_array_get(shape, i));
        if (side < 1 || side > most[i])
            return clab_error_set(error, CLAB_USAGE, "%s wants %c from 1 to %lld, got %lld in '%s'", option,
                                  "xyz"[i], (long long)most[i], (long long)side, text);
        threads *= is_block ? side : 1;
    }
    if (threads > 1024)
        return clab_error_set(error, CLAB_USAGE, "%s wants at most 1024 threads, got %lld in '%s'", option,
                              (long long)threads, text);
    return CLAB_OK;
}

/* Clusters have 1 to 16 CTAs; whether the device holds them is its own answer. */
static clab_status check_cluster(const json_t *shape, const char *text, struct clab_error *error)
{
    json_int_t ctas = 1;
    for (size_t i = 0; i < 3 && ctas >= 1 && ctas <= 16; i++) {
        const json_int_t side = json_integer_value(json_array_get(shape, i));
        ctas = side <= 16 ? ctas * side : 17;
    }
    if (ctas < 1 || ctas > 16)
        return clab_error_set(error, CLAB_USAGE, "--cluster wants 1 to 16 CTAs, got '%s'", text);
    return CLAB_OK;
}

/* A number of a float type, rounded as the type rounds. One that only rounds to infinity is refused; nan and
   inf go as text, since JSON has no numbers for them. */
static json_t *parse_float(enum clab_element element, const char *text)
{
    char *end;
    double stored = 0;
    const double real = strtod(text, &end);
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]))
        return NULL;
    if (!isfinite(real)) /* "1e999" is finite as it is written */
        return strpbrk(text, "nN") == NULL ? NULL
                                           : json_string(isnan(real) ? "nan"
                                                         : real > 0  ? "inf"
                                                                     : "-inf");
    clab_element_store(element, real, &stored, 0);
    return isinf(clab_element_load(element, &stored, 0)) ? NULL : json_real(real);
}

/* A value of `type`, exactly: decimal or 0x for integers. NULL when the type does not hold it (new
 * reference). */
static json_t *parse_scalar(const char *type, const char *text)
{
    const enum clab_element element = clab_element_get(type);
    const bool is_signed = type[0] == 's', negative = text[0] == '-';
    const unsigned bits = (unsigned)(clab_element_bytes(element) * 8);
    const char *digits = text + negative;
    char *end;
    if (element >= CLAB_F16)
        return parse_float(element, text);
    const unsigned long long limit =
        (is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits)) + (negative ? 1 : 0);
    errno = 0;
    const unsigned long long size = strtoull(digits, &end, strncasecmp(digits, "0x", 2) == 0 ? 16 : 10);
    if (!isdigit((unsigned char)digits[0]) || *end != '\0' || errno != 0 || size > limit ||
        (negative && !is_signed))
        return NULL;
    return json_integer((json_int_t)(negative ? 0 - size : size));
}

/* NULL, with the error, for what is no fill of `type`. `text` is the whole argument, `fill` its part. */
static json_t *parse_fill(const char *text, const char *type, const char *fill, struct clab_error *error)
{
    static const char *const names[] = {"zero", "ones", "iota", "bits", "random"};
    const size_t n = strcspn(fill, "(");
    char *end;
    if (fill[0] == '@') {
        json_t *file = json_pack("{s:s,s:s}", "kind", "file", "path", fill + 1);
        if (file == NULL)
            clab_error_set(error, CLAB_USAGE, "--arg '%s': the file's name is not UTF-8", text);
        return file;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != n || memcmp(names[i], fill, n) != 0 || (fill[n] == '(') != (i >= 3))
            continue;
        if (i < 3)
            return json_pack("{s:s}", "kind", names[i]);
        errno = 0;
        const unsigned long long seed = strtoull(fill + n + 1, &end, 10);
        if (isdigit((unsigned char)fill[n + 1]) && errno == 0 && seed <= INT64_MAX && strcmp(end, ")") == 0)
            return json_pack("{s:s,s:I}", "kind", names[i], "seed", (json_int_t)seed);
    }
    json_t *value = parse_scalar(type, fill);
    if (json_is_number(value) && json_number_value(value) == 0 && !signbit(json_real_value(value))) {
        json_decref(value);
        return json_pack("{s:s}", "kind", "zero");
    }
    if (value != NULL)
        return json_pack("{s:s,s:o}", "kind", "value", "value", value);
    clab_error_set(error, CLAB_USAGE, "--arg '%s': '%s' is neither a %s value nor a fill", text, fill, type);
    clab_error_remedy(error, "fills: zero, ones, iota, random(SEED), bits(SEED), a number, @FILE");
    return NULL;
}

/* The name of a buffer, NAME= in front of its type or "arg" and the argument's number: one that no other has.
 */
static clab_status name_buffer(const char *text, size_t length, bool is_named, size_t index,
                               const json_t *buffers, char name[CLAB_NAME_BYTES], struct clab_error *error)
{
    if (!is_named) {
        snprintf(name, CLAB_NAME_BYTES, "arg%zu", index);
        return CLAB_OK; /* free: names of this form are refused below */
    }
    snprintf(name, CLAB_NAME_BYTES, "%.*s", (int)length, text);
    if (length >= CLAB_NAME_BYTES || !clab_is_name(name))
        return clab_error_set(
            error, CLAB_USAGE,
            "--arg '%s': a name is a letter or _, then letters, digits or _, at most %d in all; "
            "got '%.*s'",
            text, CLAB_NAME_BYTES - 1, (int)length, text);
    if (strncmp(name, "arg", 3) == 0 && name[3] != '\0' && name[3 + strspn(name + 3, "0123456789")] == '\0')
        return clab_error_set(error, CLAB_USAGE,
                              "--arg '%s': names such as '%s' are those of buffers without one", text, name);
    for (size_t i = 0; i < json_array_size(buffers); i++)
        if (strcmp(clab_json_text(json_array_get(buffers, i), "name", ""), name) == 0)
            return clab_error_set(error, CLAB_USAGE, "--arg '%s': another argument has the name '%s'", text,
                                  name);
    return CLAB_OK;
}

/* TYPE:VALUE, TYPE[COUNT]:FILL or NAME=TYPE[COUNT]:FILL. */
static clab_status parse_argument(const char *text, size_t index, json_t *arguments, json_t *buffers,
                                  struct clab_error *error)
{
    char name[CLAB_NAME_BYTES], type[16];
    const char *spec = text, *equals = strchr(text, '=');
    const bool is_named = equals != NULL && (size_t)(equals - text) < strcspn(text, "[:");
    if (is_named)
        spec = equals + 1;
    const size_t n = strcspn(spec, "[:");
    snprintf(type, sizeof type, "%.*s", (int)(n < sizeof type ? n : sizeof type - 1), spec);
    if (type[0] == 'i' && strchr("8136", type[1]) != NULL && type[1] != '\0') /* i32, as others call s32 */
        type[0] = 's';
    if (clab_element_get(type) == CLAB_ELEMENT_COUNT) {
        clab_error_set(error, CLAB_USAGE, "--arg '%s': unknown type '%s'", text, type);
        return clab_error_remedy(
            error, "types: u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64; u32:7, f32[1024]:ones");
    }
    if (spec[n] == ':') {
        json_t *value = parse_scalar(type, spec + n + 1);
        if (value == NULL)
            return clab_error_set(error, CLAB_USAGE, "--arg '%s': '%s' is not a %s value", text, spec + n + 1,
                                  type);
        if (is_named) {
            json_decref(value);
            return clab_error_set(error, CLAB_USAGE, "--arg '%s': only buffers have names, TYPE[COUNT]:FILL",
                                  text);
        }
        json_array_append_new(arguments, json_pack("{s:s,s:o}", "type", type, "value", value));
        return CLAB_OK;
    }
    const size_t inside = spec[n] == '[' ? strcspn(spec + n + 1, "]") : 0;
    const char *count_text = spec + n + 1, *after = spec[n] == '[' ? count_text + inside : "";
    if (after[0] != ']' || (after[1] != ':' && after[1] != '\0')) {
        clab_error_set(error, CLAB_USAGE, "--arg '%s' is neither TYPE:VALUE nor [NAME=]TYPE[COUNT]:FILL",
                       text);
        return clab_error_remedy(error, "fills: zero, ones, iota, random(SEED), bits(SEED), a number, @FILE");
    }
    errno = 0;
    const long long count = strtoll(count_text, NULL, 10);
    if (inside == 0 || strspn(count_text, "0123456789") != inside || errno != 0 || count < 1)
        return clab_error_set(error, CLAB_USAGE,
                              "--arg '%s': COUNT must be a whole number from 1, got '%.*s'", text,
                              (int)inside, count_text);
    clab_status status =
        name_buffer(text, is_named ? (size_t)(equals - text) : 0, is_named, index, buffers, name, error);
    json_t *fill =
        status == CLAB_OK ? parse_fill(text, type, after[1] == ':' ? after + 2 : "zero", error) : NULL;
    if (fill == NULL)
        return CLAB_USAGE;
    json_array_append_new(arguments, json_pack("{s:s}", "buffer", name));
    json_array_append_new(buffers, json_pack("{s:s,s:s,s:I,s:[o],s:b}", "name", name, "type", type, "count",
                                             (json_int_t)count, "fill", fill, "dump", (int)is_named));
    return CLAB_OK;
}

clab_status clab_cli_launch_row(const struct clab_option *options, json_t **out_row, json_t **out_buffers,
                                struct clab_error *error)
{
    static const char *const shapes[] = {"--grid", "--block", "--cluster"};
    json_t *shape = json_object(), *arguments = json_array(), *buffers = json_array(), *dimensions = NULL;
    const struct clab_option *list = clab_option_get(options, "--arg");
    long long shared = 0;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < 3 && status == CLAB_OK; i++) {
        const struct clab_option *option = clab_option_get(options, shapes[i]);
        if (!option->set)
            continue;
        status = parse_shape(option->name, option->text, &dimensions, error);
        if (status == CLAB_OK)
            json_object_set_new(shape, option->name + 2, dimensions);
        if (status == CLAB_OK)
            status = i < 2 ? check_limits(option->name, dimensions, option->text, error)
                           : check_cluster(dimensions, option->text, error);
    }
    if (status == CLAB_OK && clab_option_get(options, "--smem")->set)
        status = clab_option_number(clab_option_get(options, "--smem"), 0, INT32_MAX, &shared, error);
    for (size_t i = 0; i < list->count && status == CLAB_OK; i++)
        status = parse_argument(list->list[i], i, arguments, buffers, error);
    json_object_set_new(shape, "smem_bytes", json_integer(shared));
    json_object_set_new(shape, "cooperative", json_boolean(clab_option_get(options, "--cooperative")->set));
    *out_row = json_pack("{s:o,s:o}", "launch", shape, "args", arguments);
    *out_buffers = buffers;
    return status;
}
