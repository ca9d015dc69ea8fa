/* SHA-256 (FIPS 180-4), for cache keys and checksums. */
#ifndef CLAB_COMPILE_SHA256_H
#define CLAB_COMPILE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct clab_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
};

void clab_sha256_init(struct clab_sha256 *hash);
void clab_sha256_add(struct clab_sha256 *hash, const void *data, size_t bytes);
/* A length-prefixed field, so that ("ab", "c") and ("a", "bc") differ. NULL is not the same as "". */
void clab_sha256_field(struct clab_sha256 *hash, const char *text);
/* 64 lower-case hex digits and a NUL. */
void clab_sha256_hex(struct clab_sha256 *hash, char hex[65]);
/* Of one piece of memory. */
void clab_sha256_of(const void *data, size_t bytes, char hex[65]);

#endif
