/* The Lua state that an experiment file runs in, inside the child process: capped memory, a deadline, and
   only the library functions that cannot reach out, run away or differ from run to run. */
#ifndef CLAB_LAB_SANDBOX_H
#define CLAB_LAB_SANDBOX_H

#include "base/error.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stddef.h>
#include <stdint.h>

/* Metatables of the values that the helper functions make; a file cannot forge them (it has no setmetatable).
 */
#define CLAB_META_SCALAR "clab.scalar" /* u32(7): { type = "u32", value = 7 } */
#define CLAB_META_FIT    "clab.fit"    /* fit { per = "cluster" }: the same table */
#define CLAB_META_VALUES "clab.values" /* values { 1, 2, 3 }: the same list */

/* One evaluation: everything that lives as long as the state. Borrowed text must outlive it. */
struct clab_eval {
    lua_State *L;
    const char *file; /* as shown in errors */
    const char *text; /* the file's content */
    size_t text_bytes;
    const char *folder;     /* of the file, absolute: sources are relative to it */
    struct clab_error fail; /* filled before a lua_error that comes from us */
    uint64_t deadline_ns;   /* clab_now_ns() after which the code is stopped */
    int timeout_ms;
    size_t used_bytes, max_bytes;
    uint32_t memory_line; /* where the limit was hit; 0: it was not */
};

/* Makes the state (eval->L) with the libraries and helpers in place. CLAB_OK or CLAB_NO_MEMORY. */
clab_status clab_sandbox_open(struct clab_eval *eval, struct clab_error *error);
void clab_sandbox_close(struct clab_eval *eval);
/* The evaluation that a state belongs to. */
struct clab_eval *clab_sandbox_eval(lua_State *L);
/* Runs `body` (a lua_CFunction that gets `argument` as light userdata) protected. Any Lua error becomes a
   CLAB_EXPERIMENT error with file and line; what clab_eval_fail raised is returned as it is. */
clab_status clab_sandbox_run(struct clab_eval *eval, lua_CFunction body, void *argument,
                             struct clab_error *error);
/* Turns the Lua error message on top of the stack (popped) into an error record: "experiment:12: text" gives
   the line. For callers that use lua_pcall themselves. */
clab_status clab_sandbox_error(struct clab_eval *eval, int lua_status, struct clab_error *error);
/* lua_pcall's message handler: adds the line to errors that have none. */
int clab_sandbox_handler(lua_State *L);
/* Loads and runs the file; its result is left on the stack (one value). Raises on error. */
void clab_sandbox_load(struct clab_eval *eval);

#endif
