/* Helper functions of experiment files that are themselves written in Lua. */
#ifndef CLAB_LAB_PRELUDE_H
#define CLAB_LAB_PRELUDE_H

#include <lua.h>

/* Lua's name of that chunk in messages, which are no places in the user's file. */
#define CLAB_PRELUDE_CHUNK "prelude"
/* Their names, ended by NULL. */
extern const char *const clab_prelude_names[];

/* Defines them as globals of a state whose own helpers are there already. Raises Lua's own errors (memory).
 */
void clab_prelude_load(lua_State *L);

#endif
