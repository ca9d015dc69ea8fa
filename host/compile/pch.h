/* Precompiled headers: which sources share one, when one is made, and where it is kept. Private to this room.
 */
#ifndef CLAB_COMPILE_PCH_H
#define CLAB_COMPILE_PCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "compile/compile.h"
#include "driver/nvrtc.h"

/* What the parent says of a request's precompiled header. Strings are borrowed. */
struct clab_pch_plan {
    const char *key;         /* 64 hex digits; "" or NULL: none is to be used */
    const char *kept_dir;    /* for files that outlive the worker; "" or NULL: none may */
    const char *scratch_dir; /* for files of this worker; "" or NULL: none */
    bool make;               /* make one where there is none */
};

/* --- the parent's side */

/* The key of what NVRTC reads before a source's first declaration: its leading directives, the user's headers
   that they name with their content, folders, options, architecture, toolkit. "" where a precompiled header
   would not pay: nothing of CCCL or cooperative groups is included there. source_text must be set. */
void clab_pch_key(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                  char key[65]);
/* Whether a key was asked for before `since` (as time() counts); notes that it is now. False where the folder
   cannot be written. */
bool clab_pch_seen(const char *kept_dir, const char *key, time_t since);
/* Removes every file of a key: a worker died over it. */
void clab_pch_forget(const char *kept_dir, const char *key);
/* How many bytes of them are kept at most: $CLUSTERLAB_PCH_LIMIT_MB, else 2 GiB; 0: none are kept. */
long long clab_pch_limit_bytes(void);

/* --- the worker's side */

/* One for the life of a worker, from before it loads NVRTC. */
struct clab_pch_store {
    bool fixed;   /* addresses are the same in every worker: files can be kept */
    bool refused; /* this process's addresses are other ones all the same */
    void *hole;   /* address space set aside for NVRTC's heap of precompiled headers */
};
void clab_pch_store_init(struct clab_pch_store *store);

enum clab_pch_use { CLAB_PCH_NONE, CLAB_PCH_USE, CLAB_PCH_MAKE };
/* What one compile does. Zero-initialised: nothing. */
struct clab_pch {
    enum clab_pch_use use;
    bool kept;
    char path[4400]; /* the file used, or to be made */
    char part[4440]; /* where NVRTC writes it first */
};
/* Chooses. NONE where NVRTC is too old (12.8 brought the calls), the file is not there and not to be made,
   the disk has less than 2 GiB left, or what is kept is damaged (then it is removed). Ways of compiling the
   same request that must not share one differ in `way`. */
void clab_pch_choose(struct clab_pch_store *store, const struct clab_pch_plan *plan,
                     const struct clab_nvrtc *nvrtc, uint64_t way, struct clab_pch *out);
/* After a compile that made one: `good` if NVRTC says so. Keeps it, with its sum, and makes room. */
void clab_pch_made(struct clab_pch_store *store, struct clab_pch *pch, bool good);
/* Whether NVRTC says in its log that it did not take the file. Then that file goes, unless only this
   process's addresses are to blame. */
bool clab_pch_refused(struct clab_pch_store *store, const struct clab_pch *pch, const char *log);

#endif
