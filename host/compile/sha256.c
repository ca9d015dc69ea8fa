/* SHA-256 as FIPS 180-4 section 6.2 gives it: plain C, some 250 MB/s, which is ample for sources and cubins.
 */
#include "compile/sha256.h"

#include <stdio.h>
#include <string.h>

/* FIPS 180-4 section 4.2.2. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, unsigned int by)
{
    return word >> by | word << (32 - by);
}

static void compress(uint32_t state[8], const unsigned char block[64])
{
    uint32_t schedule[64];
    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t w15 = schedule[i - 15], w2 = schedule[i - 2];
        schedule[i] = schedule[i - 16] + (rotate(w15, 7) ^ rotate(w15, 18) ^ w15 >> 3) + schedule[i - 7] +
                      (rotate(w2, 17) ^ rotate(w2, 19) ^ w2 >> 10);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                      round_constants[i] + schedule[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void clab_sha256_init(struct clab_sha256 *hash)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
}

void clab_sha256_add(struct clab_sha256 *hash, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    size_t filled = (size_t)(hash->bytes % 64);
    hash->bytes += bytes;
    while (bytes > 0) {
        size_t take = 64 - filled < bytes ? 64 - filled : bytes;
        memcpy(hash->block + filled, from, take);
        from += take, bytes -= take, filled += take;
        if (filled == 64) {
            compress(hash->state, hash->block);
            filled = 0;
        }
    }
}

void clab_sha256_field(struct clab_sha256 *hash, const char *text)
{
    uint64_t length = text != NULL ? strlen(text) : UINT64_MAX;
    clab_sha256_add(hash, &length, sizeof length);
    if (text != NULL)
        clab_sha256_add(hash, text, (size_t)length);
}

void clab_sha256_hex(struct clab_sha256 *hash, char hex[65])
{
    uint64_t bits = hash->bytes * 8;
    unsigned char pad[72] = {0x80}, length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    clab_sha256_add(hash, pad, 1 + (size_t)((119 - hash->bytes % 64) % 64));
    clab_sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", hash->state[i]);
}

void clab_sha256_of(const void *data, size_t bytes, char hex[65])
{
    struct clab_sha256 hash;
    clab_sha256_init(&hash);
    clab_sha256_add(&hash, data, bytes);
    clab_sha256_hex(&hash, hex);
}
