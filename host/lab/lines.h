/* Which line of an experiment file a field was written on, found by scanning the text for the keys of its
 * path. */
#ifndef CLAB_LAB_LINES_H
#define CLAB_LAB_LINES_H

#include <stddef.h>
#include <stdint.h>

/* One step of a field path: a key, or (key == NULL) a 1-based list position. */
struct clab_step {
    const char *key;
    long long index;
};

/* Line (1-based) of the deepest step that can be found, 0 when not even the start can. The path starts at the
   table that the file returns, or, with function_line != 0, at what the function defined on that line
   returns. Follows table constructors, helper calls such as fit { ... }, functions' return values and local
   variables; what is built by assignments is not followed, and the line of the last step found is the answer.
 */
uint32_t clab_line_find(const char *text, size_t bytes, uint32_t function_line, const struct clab_step *steps,
                        size_t n_steps);

#endif
