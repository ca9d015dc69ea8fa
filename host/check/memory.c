/* Memory for the checker, and what happens when there is none. What needs memory is deep inside: it does not
   come back, but leaves for the place where the checker was entered (check_attempt), which gives up checking
   that launch. Shadows may be half changed then: nobody may look at them again, only free them. What a
   function held in its hands when it left is lost to the process; that is a few small pieces. */
#include <stdlib.h>

#include "check/state.h"

/* Not allocated when a thread first comes by, which LeakSanitizer takes for something else (gcc 12,
 * glibc 2.36). */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct check_attempt *current;

void check_attempt_begin(struct check_attempt *attempt)
{
    attempt->outer = current;
    current = attempt;
}

void check_attempt_end(const struct check_attempt *attempt)
{
    current = attempt->outer;
}

void check_give_up(void)
{
    longjmp(current->place, 1);
}

void *check_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) {
        check_give_up();
    }
    return memory;
}

void *check_grow(void *memory, size_t bytes)
{
    void *grown = realloc(memory, bytes ? bytes : 1);
    if (!grown) {
        check_give_up();
    }
    return grown;
}
