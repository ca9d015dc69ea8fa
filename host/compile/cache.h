/* Compiled images, kept by content. Private to this room; the folder's layout is documented in cache.c. */
#ifndef CLAB_COMPILE_CACHE_H
#define CLAB_COMPILE_CACHE_H

#include "base/str.h"
#include "compile/compile.h"

struct clab_cache {
    char dir[4096];  /* "" : no cache */
    char note[5200]; /* why it could not be used; "" fine */
};

/* The folder from `dir` (NULL: environment, then home), created when it is first written to. */
void clab_cache_init(struct clab_cache *cache, const char *dir);
/* Content key of a request whose source_text is set, 64 hex digits; "" when it must not be cached (a computed
   #include, an option that names further files). */
void clab_cache_key(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                    char key[65]);
/* The image of a key, checked against its checksum; false when there is none or it is damaged. */
bool clab_cache_get(struct clab_cache *cache, const char *key, struct clab_image *out);
/* Keeps an image. A failure costs only speed: it is noted in cache->note. */
void clab_cache_put(struct clab_cache *cache, const char *key, const struct clab_image *image);

/* Every file that a recursive scan of the text for #include finds in `dirs` and beside the including file,
   each as a line "path sha256" in `out`. Conditionals are ignored, so this is a superset of what is read.
   False when a file is included by a macro's value, so that the list cannot be known. */
bool clab_scan_includes(const char *path, const char *text, const char *const *dirs, size_t dir_count,
                        struct clab_str *out);

#endif
