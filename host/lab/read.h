/* Reading an experiment's values off the Lua stack: every reader knows the field's path, so that every
   complaint names path, line, wanted and got. All of them raise (never return) on a mistake; run them inside
   clab_sandbox_run. */
#ifndef CLAB_LAB_READ_H
#define CLAB_LAB_READ_H

#include "lab/sandbox.h"

#include <jansson.h>
#include <stdbool.h>

/* A field's path as a chain towards the root, built on the C stack. A root has neither key nor index. */
struct clab_path {
    const struct clab_path *up;
    const char *key;
    long long index; /* 1-based, when key is NULL */
    uint32_t
        function_line;   /* below here, values come from the function defined on that line; 0: as `up` says */
    const char *context; /* root only: added to messages, e.g. "n=7, cluster=2"; or NULL */
};

/* Raises a CLAB_EXPERIMENT error "path: text", with the line of the field. */
_Noreturn void clab_eval_fail(struct clab_eval *eval, const struct clab_path *path, const char *format, ...)
    CLAB_PRINTF(3, 4);
/* The same with a status of the caller's, no path and no line: for requests that are wrong. */
_Noreturn void clab_eval_refuse(struct clab_eval *eval, clab_status status, const char *format, ...)
    CLAB_PRINTF(3, 4);
/* Raises CLAB_NO_MEMORY when value is NULL, else returns it. */
json_t *clab_eval_json(struct clab_eval *eval, json_t *value);
/* Sets a member, taking the reference; raises when memory is out. */
void clab_eval_set(struct clab_eval *eval, json_t *object, const char *key, json_t *value);
void clab_eval_append(struct clab_eval *eval, json_t *array, json_t *value);

/* "variants[2].source"; returns `text`. */
const char *clab_path_text(const struct clab_path *path, char *text, size_t bytes);
uint32_t clab_path_line(const struct clab_eval *eval, const struct clab_path *path);
/* "7 (a number)", "'abc'", "nothing", "a table": the value at a stack index. Returns `text`. */
const char *clab_value_text(lua_State *L, int index, char *text, size_t bytes);

/* Pushes field `key` of the table at `index`; returns its Lua type. */
int clab_push_field(struct clab_eval *eval, int index, const char *key);
/* The value must be a table that has no other fields than these (and list items only when `list`). */
void clab_read_table(struct clab_eval *eval, const struct clab_path *path, int index,
                     const char *const *fields, size_t n_fields, bool list);
/* The value must be a list; its length. */
lua_Integer clab_read_list(struct clab_eval *eval, const struct clab_path *path, int index);
/* A string, borrowed from the Lua value. */
const char *clab_read_string(struct clab_eval *eval, const struct clab_path *path, int index);
bool clab_read_bool(struct clab_eval *eval, const struct clab_path *path, int index);
/* A whole number in [low, high]; a float with a whole value is accepted. */
long long clab_read_integer(struct clab_eval *eval, const struct clab_path *path, int index, long long low,
                            long long high);
/* A finite number. */
double clab_read_number(struct clab_eval *eval, const struct clab_path *path, int index);

/* Optional fields of the table at `index`: `otherwise` when absent. */
const char *clab_field_string(struct clab_eval *eval, const struct clab_path *path, int index,
                              const char *key, const char *otherwise);
bool clab_field_bool(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                     bool otherwise);
long long clab_field_integer(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                             long long low, long long high, long long otherwise);
double clab_field_number(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                         double otherwise);
/* A list of strings (or one string) as a JSON array; empty when absent. */
json_t *clab_field_strings(struct clab_eval *eval, const struct clab_path *path, int index, const char *key);
/* One to three sides, as a number or a list; missing sides are 1. high: of each side. */
void clab_read_sides(struct clab_eval *eval, const struct clab_path *path, int index, const long long high[3],
                     long long out_sides[3]);

/* Calls the function at stack index `index` with the `n_arguments` values on top of the stack (popped),
   leaving one result. Errors in it are raised with the file's own line, "path: message". *out_line: where it
   is defined. */
void clab_call_function(struct clab_eval *eval, const struct clab_path *path, int index, int n_arguments,
                        uint32_t *out_line);

/* Parameters and buffers are called by names: a letter or _, then letters, digits or _, shorter than this. */
#define CLAB_NAME_BYTES 64
bool clab_is_name(const char *text);

/* Values across the border. Tables become arrays when their keys are 1..n (an empty one an object). Raises
   for functions, NaN, infinities and tables deeper than 16. */
json_t *clab_lua_to_json(struct clab_eval *eval, const struct clab_path *path, int index);
/* Pushes a JSON value; null becomes nil. */
void clab_json_to_lua(lua_State *L, const json_t *value);

#endif
