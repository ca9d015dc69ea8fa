/* The kernels of this folder by hand. Threads that do the same are 32 neighbours in an array, and the inner
   loop goes over them, so that the compiler makes vector instructions of it; state stays in the arrays from
   turn to turn. What has no such form (a loop of each thread's own length, random places) is a loop over
   threads. */
#include "plain.h"

#include <math.h>
#include <string.h>

#define LANES 32
#define CTA   256
#define EACH  for (uint32_t i = 0; i < LANES; i++)

static uint32_t bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

void plain_alu(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns)
{
    (void)table;
    for (uint32_t first = 0; first < threads; first += LANES) {
        uint32_t hash[LANES];
        float value[LANES];
        for (uint32_t i = 0; i < LANES; i++) {
            hash[i] = first + i;
            value[i] = 1;
        }
        for (uint32_t turn = 0; turn < turns; turn++) {
            EACH
            {
                const float scaled = fmaf(value[i], 0x1.fep-1f, 0x1.99999ap-4f);
                uint32_t h = hash[i] * 1664525u + 1013904223u;
                h ^= h >> 16;
                hash[i] = h;
                value[i] = scaled + (float)(int32_t)(h & 255);
            }
        }
        for (uint32_t i = 0; i < LANES; i++) {
            out[first + i] = bits(value[i]) ^ hash[i];
        }
    }
}

void plain_barrier(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns)
{
    (void)table;
    for (uint32_t first = 0; first < threads; first += CTA) {
        uint32_t tile[CTA + 1], sum[CTA];
        tile[CTA] = 0;
        for (uint32_t i = 0; i < CTA; i++) {
            sum[i] = first + i;
        }
        for (uint32_t turn = 0; turn < 8 * turns; turn++) {
            memcpy(tile, sum, sizeof sum);
            for (uint32_t i = 0; i < CTA; i++) {
                sum[i] += tile[i + 1];
            }
        }
        memcpy(out + first, sum, sizeof sum);
    }
}

void plain_divergent(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns)
{
    (void)table;
    for (uint32_t thread = 0; thread < threads; thread++) {
        uint32_t hash = thread;
        for (uint32_t turn = 0; turn < turns; turn++) {
            hash = hash * 1664525u + 1013904223u;
            const uint32_t trips = hash >> 26;
            for (uint32_t trip = 0; trip <= trips; trip++) {
                hash = (hash * 5 + 1) ^ trip;
            }
        }
        out[thread] = hash;
    }
}

void plain_gather(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns)
{
    for (uint32_t first = 0; first < threads; first += LANES) {
        uint32_t hash[LANES], sum[LANES];
        for (uint32_t i = 0; i < LANES; i++) {
            hash[i] = first + i;
            sum[i] = 0;
        }
        for (uint32_t turn = 0; turn < turns; turn++) {
            EACH
            {
                hash[i] = hash[i] * 1664525u + 1013904223u;
                sum[i] += table[hash[i] >> 10];
            }
        }
        memcpy(out + first, sum, sizeof sum);
    }
}

void plain_atomics(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns)
{
    (void)table;
    for (uint32_t first = 0; first < threads; first += CTA) {
        uint32_t *histogram = out + first;
        memset(histogram, 0, CTA * sizeof *histogram);
        for (uint32_t thread = first; thread < first + CTA; thread++) {
            uint32_t hash = thread;
            for (uint32_t turn = 0; turn < turns; turn++) {
                hash = hash * 1664525u + 1013904223u;
                histogram[hash >> 24]++;
            }
        }
    }
}

void plain_shuffles(uint32_t *out, const uint32_t *table, uint32_t threads, uint32_t turns)
{
    (void)table;
    for (uint32_t first = 0; first < threads; first += LANES) {
        uint32_t sum[LANES], other[LANES];
        for (uint32_t i = 0; i < LANES; i++) {
            sum[i] = first + i;
        }
        for (uint32_t turn = 0; turn < turns; turn++) {
            for (uint32_t distance = 16; distance > 0; distance /= 2) {
                for (uint32_t i = 0; i < LANES; i++) {
                    other[i] = sum[i ^ distance];
                }
                EACH
                {
                    sum[i] += other[i];
                }
            }
        }
        memcpy(out + first, sum, sizeof sum);
    }
}

float plain_sum(const float *input, uint64_t n)
{
    float part[16] = {0}, sum = 0;
    uint64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (unsigned k = 0; k < 16; k++) {
            part[k] += input[i + k];
        }
    }
    for (; i < n; i++) {
        sum += input[i];
    }
    for (unsigned k = 0; k < 16; k++) {
        sum += part[k];
    }
    return sum;
}
