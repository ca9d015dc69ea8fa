/* Names of C++ as people write them, for messages: Itanium C++ ABI, "5.1 External Names (a.k.a. Mangling)".
   Only what a name is: the parameters of a function and its result are left out, for they only make it
   longer. */
#ifndef CLAB_BASE_DEMANGLE_H
#define CLAB_BASE_DEMANGLE_H

#include <stddef.h>

/* Writes the readable form of a symbol to `out` (`bytes` of room, at least 32, the end included). What is no
   mangled name, or one with parts that are not read here (expressions, decltype), is taken as it is. A name
   that does not fit has its template arguments left out, those inside others first, as <...>; if it still
   does not fit, its middle is: both ends tell it from others. Returns `out`. */
const char *clab_demangle(const char *symbol, char *out, size_t bytes);

#endif
