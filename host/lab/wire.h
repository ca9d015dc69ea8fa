/* JSON forms that cross the pipe between the parent and its workers. */
#ifndef CLAB_LAB_WIRE_H
#define CLAB_LAB_WIRE_H

#include <jansson.h>

#include "base/error.h"
#include "driver/channel.h"

/* Every known part of an error as an object, its "status" by the id in errors.def ("PTX_SYNTAX");
   clab_error_from_json is its inverse (unknown parts stay empty; a missing or malformed object gives
   CLAB_INTERNAL). The caller owns the result; NULL when memory is out. */
json_t *clab_error_to_json(const struct clab_error *error);
clab_status clab_error_from_json(const json_t *object, struct clab_error *out_error);

/* Counters as an object of named integers ("warp_instructions", "loads_global_bytes", …); zero fields are
 * kept. */
json_t *clab_counters_to_json(const struct clab_counters *counters);
/* One counter by the name it has in that object; false for an unknown name. */
bool clab_counter_get(const struct clab_counters *counters, const char *name, uint64_t *out_value);

/* Writes one JSON value as a line to a descriptor. CLAB_OK, CLAB_OUTPUT. */
clab_status clab_wire_send(int fd, const json_t *value, struct clab_error *error);

/* Object members with a default; NULL object is empty. Strings are borrowed from the object. */
const char *clab_json_text(const json_t *object, const char *key, const char *otherwise);
int64_t clab_json_int(const json_t *object, const char *key, int64_t otherwise);
bool clab_json_bool(const json_t *object, const char *key, bool otherwise);

#endif
