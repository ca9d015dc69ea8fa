/* Which rows a plan has: the request's --set and --cluster applied to the file's parameters, then the product
   of all swept lists for each chosen variant. A variant with `cluster = false` takes no part in the cluster
   sweep. */
#include "lab/plan.h"

#include "base/str.h"
#include "lab/wire.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIMENSIONS 16
#define MAX_NAMES      128

/* -- values typed at the command line ------------------------------------------------------------------ */

/* "4096", "0x1000", "2^12", "1e6": a whole number. */
static bool parse_integer(const char *text, long long *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (end == text || errno != 0)
        return false;
    if (*end == '^') {
        const char *exponent_text = end + 1;
        long long exponent = strtoll(exponent_text, &end, 10), power = 1;
        if (end == exponent_text || exponent < 0 || exponent > 62 || value < 0)
            return false;
        for (long long i = 0; i < exponent; i++)
            if (__builtin_mul_overflow(power, value, &power))
                return false;
        value = power;
    } else if (*end == 'e' || *end == 'E' || *end == '.') {
        double real = strtod(text, &end);
        if (!(real >= -9e15 && real <= 9e15) || real != floor(real))
            return false;
        value = (long long)real;
    }
    *out = value;
    return *end == '\0';
}

/* One to three sides joined by x, whose product is a cluster's size; NULL otherwise. */
static json_t *parse_cluster(const char *text)
{
    long long sides[3] = {1, 1, 1}, product = 1;
    int n = 0;
    const char *at = text;
    for (;; at++) {
        char *end;
        if (n == 3 || !isdigit((unsigned char)*at))
            return NULL;
        errno = 0;
        sides[n] = strtoll(at, &end, 10);
        if (errno != 0 || sides[n] < 1 || sides[n] > CLAB_PLAN_MAX_CTAS)
            return NULL;
        product *= sides[n++];
        at = end;
        if (*at != 'x')
            break;
    }
    if (*at != '\0' || product > CLAB_PLAN_MAX_CTAS)
        return NULL;
    while (n > 1 && sides[n - 1] == 1)
        n--;
    if (n == 1)
        return json_integer(sides[0]);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(sides[i]));
    return list;
}

bool clab_cluster_sides(const json_t *value, long long out_sides[3])
{
    out_sides[0] = out_sides[1] = out_sides[2] = 1;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    long long product = 1;
    if (n < 1 || n > 3)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *side = json_is_array(value) ? json_array_get(value, i) : value;
        bool whole = json_is_integer(side) ||
                     (json_is_real(side) && json_real_value(side) == floor(json_real_value(side)));
        double number = json_number_value(side);
        if (!whole || number < 1 || number > CLAB_PLAN_MAX_CTAS)
            return false;
        out_sides[i] = (long long)number;
        product *= out_sides[i];
    }
    return product <= CLAB_PLAN_MAX_CTAS;
}

/* One value of NAME=VALUE, of the same type as the parameter's present value. */
static json_t *parse_value(struct clab_plan *plan, const char *name, const json_t *like, const char *text)
{
    struct clab_eval *eval = plan->eval;
    long long whole;
    if (strcmp(name, "cluster") == 0) {
        json_t *cluster = parse_cluster(text);
        if (cluster == NULL)
            clab_eval_refuse(eval, CLAB_USAGE,
                             "cluster '%s': wanted a size such as 4 or a shape such as 4x2, of 1 to %d CTAs",
                             text, CLAB_PLAN_MAX_CTAS);
        return cluster;
    }
    if (json_is_string(like)) {
        json_t *string = json_string(text);
        if (string == NULL)
            clab_eval_refuse(eval, CLAB_USAGE, "--set %s: wanted a UTF-8 text", name);
        return string;
    }
    if (json_is_boolean(like)) {
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            clab_eval_refuse(eval, CLAB_USAGE, "--set %s=%s: wanted true or false", name, text);
        return json_boolean(text[0] == 't');
    }
    if (json_is_integer(like)) {
        if (!parse_integer(text, &whole))
            clab_eval_refuse(eval, CLAB_USAGE, "--set %s=%s: wanted a whole number, such as 4096 or 2^12",
                             name, text);
        return clab_eval_json(eval, json_integer(whole));
    }
    char *end;
    double real = parse_integer(text, &whole) ? (double)whole : strtod(text, &end);
    if (!parse_integer(text, &whole) && (end == text || *end != '\0' || !isfinite(real)))
        clab_eval_refuse(eval, CLAB_USAGE, "--set %s=%s: wanted a number", name, text);
    return clab_eval_json(eval, json_real(real));
}

/* Splits at commas and gives each part to parse_value; a list without duplicates. */
static json_t *parse_list(struct clab_plan *plan, const char *name, const json_t *like, const char *text)
{
    json_t *list = clab_eval_json(plan->eval, json_array());
    for (const char *at = text;; at++) {
        char part[256];
        size_t bytes = strcspn(at, ",");
        if (bytes >= sizeof part)
            clab_eval_refuse(plan->eval, CLAB_USAGE, "--set %s: the value is too long", name);
        memcpy(part, at, bytes);
        part[bytes] = '\0';
        json_t *value = parse_value(plan, name, like, part);
        bool twin = false;
        for (size_t i = 0; i < json_array_size(list); i++)
            twin = twin || json_equal(json_array_get(list, i), value) != 0;
        if (twin)
            json_decref(value);
        else
            clab_eval_append(plan->eval, list, value);
        at += bytes;
        if (*at == '\0')
            return list;
    }
}

/* Makes a parameter's values `list` (taken): one value is a parameter's, several are a sweep. */
static void set_parameter(struct clab_plan *plan, const char *name, json_t *list)
{
    if (json_array_size(list) == 1 && json_object_get(plan->sweep, name) == NULL) {
        clab_eval_set(plan->eval, plan->params, name, json_incref(json_array_get(list, 0)));
        json_decref(list);
        return;
    }
    json_object_del(plan->params, name);
    clab_eval_set(plan->eval, plan->sweep, name, list);
}

static size_t parameter_names(const struct clab_plan *plan, const char *names[MAX_NAMES])
{
    size_t n = 0;
    const char *name;
    json_t *value;
    json_object_foreach(plan->params, name, value) if (n < MAX_NAMES) names[n++] = name;
    json_object_foreach(plan->sweep, name, value) if (n < MAX_NAMES) names[n++] = name;
    return n;
}

_Noreturn static void unknown_name(struct clab_plan *plan, const char *what, const char *name,
                                   const char *const *names, size_t n)
{
    struct clab_str known = {0};
    const char *near = clab_nearest_name(name, names, n);
    for (size_t i = 0; i < n; i++)
        clab_str_addf(&known, "%s%s", i > 0 ? ", " : "", names[i]);
    clab_eval_refuse(plan->eval, CLAB_USAGE, "unknown %s '%s'%s%s%s; %s%s", what, name,
                     near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                     near != NULL ? "'?" : "", n > 0 ? "there are: " : "there are none",
                     n > 0 ? known.text : "");
}

void clab_plan_requested(struct clab_plan *plan)
{
    const struct clab_lab_request *request = plan->request;
    struct clab_eval *eval = plan->eval;
    const char *names[MAX_NAMES];
    if (request->check) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(plan->result, "check"), name, value)
            set_parameter(plan, name, clab_eval_json(eval, json_pack("[O]", value)));
    }
    for (size_t i = 0; i < request->n_sets; i++) {
        const char *set = request->sets[i], *equals = strchr(set, '=');
        char name[64];
        if (equals == NULL || equals == set || (size_t)(equals - set) >= sizeof name)
            clab_eval_refuse(eval, CLAB_USAGE, "--set %s: wanted NAME=VALUE", set);
        snprintf(name, sizeof name, "%.*s", (int)(equals - set), set);
        const json_t *like = json_object_get(plan->params, name);
        if (like == NULL)
            like = json_array_get(json_object_get(plan->sweep, name), 0);
        if (like == NULL)
            unknown_name(plan, "parameter", name, names, parameter_names(plan, names));
        set_parameter(plan, name, parse_list(plan, name, like, equals + 1));
    }
    if (request->clusters != NULL) {
        if (json_object_get(plan->params, "cluster") == NULL &&
            json_object_get(plan->sweep, "cluster") == NULL)
            clab_eval_refuse(eval, CLAB_USAGE, "--cluster: this experiment has no `cluster` parameter");
        set_parameter(plan, "cluster", parse_list(plan, "cluster", NULL, request->clusters));
    }
    clab_eval_set(eval, plan->result, "params", json_incref(plan->params));
    clab_eval_set(eval, plan->result, "sweep", json_incref(plan->sweep));
}

/* -- rows ---------------------------------------------------------------------------------------------- */

/* Whether a name is in a filter list, whose items may hold several names joined by commas. */
static bool filter_has(const struct clab_lab_request *request, const char *name)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < request->n_variants; i++)
        for (const char *at = request->variants[i];; at++) {
            size_t part = strcspn(at, ",");
            if (part == bytes && memcmp(at, name, part) == 0)
                return true;
            at += part;
            if (*at == '\0')
                break;
        }
    return false;
}

static void check_filters(struct clab_plan *plan)
{
    const char *names[MAX_NAMES];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(plan->variants) && n < MAX_NAMES; i++)
        names[n++] = clab_json_text(json_array_get(plan->variants, i), "name", "");
    for (size_t i = 0; i < plan->request->n_variants; i++)
        for (const char *at = plan->request->variants[i];; at++) {
            char part[128];
            size_t bytes = strcspn(at, ",");
            snprintf(part, sizeof part, "%.*s", (int)bytes, at);
            bool known = false;
            for (size_t j = 0; j < n; j++)
                known = known || strcmp(names[j], part) == 0;
            if (!known)
                unknown_name(plan, "variant", part, names, n);
            at += bytes;
            if (*at == '\0')
                break;
        }
}

static int by_name_cluster_last(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    bool left_cluster = strcmp(left, "cluster") == 0, right_cluster = strcmp(right, "cluster") == 0;
    if (left_cluster != right_cluster)
        return left_cluster ? 1 : -1;
    return strcmp(left, right);
}

static void add_row(struct clab_plan *plan, size_t variant, json_t *params)
{
    json_t *row = clab_plan_row(plan, variant, params, NULL);
    json_t *buffers = json_object_get(row, "buffer_list");
    json_int_t set = -1;
    if (json_is_array(buffers)) {
        for (size_t i = 0; i < json_array_size(plan->buffer_sets) && set < 0; i++)
            if (json_equal(json_array_get(plan->buffer_sets, i), buffers) != 0)
                set = (json_int_t)i;
        if (set < 0) {
            set = (json_int_t)json_array_size(plan->buffer_sets);
            clab_eval_append(plan->eval, plan->buffer_sets, json_incref(buffers));
        }
    }
    json_object_del(row, "buffer_list");
    clab_eval_set(plan->eval, row, "buffers", set < 0 ? json_null() : json_integer(set));
    clab_eval_append(plan->eval, plan->rows, row);
    lua_settop(plan->eval->L, plan->root);
}

void clab_plan_rows(struct clab_plan *plan)
{
    struct clab_eval *eval = plan->eval;
    const char *names[MAX_DIMENSIONS];
    size_t n_names = 0, first_with = 0;
    const char *name;
    json_t *list;
    check_filters(plan);
    json_object_foreach(plan->sweep, name, list)
    {
        if (n_names == MAX_DIMENSIONS)
            clab_eval_refuse(eval, CLAB_EXPERIMENT, "at most %d parameters can be swept", MAX_DIMENSIONS);
        names[n_names++] = name;
    }
    qsort(names, n_names, sizeof *names, by_name_cluster_last);
    while (first_with < json_array_size(plan->variants) &&
           clab_json_int(json_array_get(plan->variants, first_with), "index", 0) != 0)
        first_with++;

    for (size_t v = 0; v < json_array_size(plan->variants); v++) {
        const json_t *variant = json_array_get(plan->variants, v);
        if (plan->request->n_variants > 0 && v < first_with &&
            !filter_has(plan->request, clab_json_text(variant, "name", "")))
            continue;
        size_t n = n_names, at[MAX_DIMENSIONS] = {0};
        size_t rows = 1; /* of this variant; the limit is kept before any row is evaluated */
        if (!clab_json_bool(variant, "cluster", true) && n > 0 && strcmp(names[n - 1], "cluster") == 0)
            n--;
        for (size_t d = 0; d < n && rows <= CLAB_PLAN_MAX_ROWS; d++)
            rows *= json_array_size(json_object_get(plan->sweep, names[d]));
        if (json_array_size(plan->rows) + rows > CLAB_PLAN_MAX_ROWS)
            clab_eval_refuse(eval, CLAB_EXPERIMENT, "the sweep has more than %d rows", CLAB_PLAN_MAX_ROWS);
        while (rows > 0) {
            json_t *params = clab_eval_json(eval, json_copy(plan->params));
            for (size_t d = 0; d < n; d++)
                clab_eval_set(eval, params, names[d],
                              json_incref(json_array_get(json_object_get(plan->sweep, names[d]), at[d])));
            if (!clab_json_bool(variant, "cluster", true))
                json_object_del(params, "cluster");
            add_row(plan, v, params);
            json_decref(params);
            size_t d = n;
            while (d > 0 && ++at[d - 1] == json_array_size(json_object_get(plan->sweep, names[d - 1])))
                at[--d] = 0;
            if (d == 0)
                break;
        }
    }
}
