/* The SM clock over a sample, from our own stamps: NVML's clock is a snapshot at some other moment. Every SM
   that ran a thread of both stamps counts, so that a partition without SM 0 works too (a stale slot has
   another tag). */
#include "lab/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/call.h"
#include "lab/helpers.h"

#define SET_BYTES (CLAB_CLOCK_SLOTS * sizeof(struct clab_clock_slot))

clab_status clab_clock_init(struct clab_clock *clock, const struct clab_device *device,
                            struct clab_error *error)
{
    memset(clock, 0, sizeof *clock);
    clock->device = device;
    clock->reference_mhz = (double)NAN;
    clock->host = calloc(2, SET_BYTES);
    if (clock->host == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the clock stamps");
    clab_status status =
        CLAB_CALL(device->driver, error, cuMemAlloc_v2, (&clock->slots, 2 * SET_BYTES), "clock stamps");
    if (status == CLAB_OK)
        status =
            CLAB_CALL(device->driver, error, cuMemsetD8_v2, (clock->slots, 0, 2 * SET_BYTES), "clock stamps");
    return status;
}

void clab_clock_fini(struct clab_clock *clock)
{
    if (clock->slots != 0)
        (void)clock->device->driver->cuMemFree_v2(clock->slots);
    free(clock->host);
    clock->host = NULL;
    clock->slots = 0;
}

clab_status clab_clock_stamp(struct clab_clock *clock, bool after, struct clab_error *error)
{
    const struct clab_device *device = clock->device;
    CUdeviceptr slots = clock->slots + (after ? SET_BYTES : 0);
    uint32_t n_slots = CLAB_CLOCK_SLOTS;
    if (!after)
        clock->tag++;
    void *params[] = {&slots, &n_slots, &clock->tag};
    return CLAB_CALL(device->driver, error, cuLaunchKernel,
                     (device->helpers->stamp, device->sms > 0 ? (unsigned)device->sms : 1, 1, 1, 1, 1, 1, 0,
                      device->stream, params, NULL),
                     "the clock stamp");
}

clab_status clab_clock_read(struct clab_clock *clock, double *out_mhz, struct clab_error *error)
{
    *out_mhz = (double)NAN;
    clab_status status = CLAB_CALL(clock->device->driver, error, cuMemcpyDtoH_v2,
                                   (clock->host, clock->slots, 2 * SET_BYTES), "clock stamps");
    if (status != CLAB_OK)
        return status;
    double sum = 0;
    unsigned count = 0;
    for (size_t i = 0; i < CLAB_CLOCK_SLOTS; i++) {
        const struct clab_clock_slot *a = &clock->host[i], *b = &clock->host[CLAB_CLOCK_SLOTS + i];
        if (a->tag != clock->tag || b->tag != clock->tag || b->time_ns <= a->time_ns ||
            b->cycles <= a->cycles)
            continue;
        sum += (double)(b->cycles - a->cycles) / (double)(b->time_ns - a->time_ns) * 1000;
        count++;
    }
    if (count > 0)
        *out_mhz = sum / count;
    return CLAB_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 50 ms; from the third discard in a row on, 1.5 times the last, up to 0.5 s (nvbench's delays). */
static unsigned pause_ms(unsigned in_a_row)
{
    double pause = 50;
    for (unsigned i = 2; i < in_a_row && pause < 500; i++)
        pause *= 1.5;
    return pause < 500 ? (unsigned)pause : 500;
}

bool clab_clock_keep(const struct clab_clock *clock, struct clab_clock_row *row, double mhz,
                     const char *throttle, char *reason, size_t reason_bytes, unsigned *out_pause_ms)
{
    const double reference = row->settled_low ? row->reference_mhz : clock->reference_mhz;
    *out_pause_ms = 0;
    if (isnan(mhz) || isnan(reference) || mhz >= CLAB_CLOCK_LEAST * reference) {
        row->low_in_a_row = 0;
        return true;
    }
    snprintf(reason, reason_bytes, "SM clock %.0f MHz is under %.0f %% of %.0f MHz%s%s%s", mhz,
             CLAB_CLOCK_LEAST * 100, reference, throttle[0] != '\0' ? " (" : "", throttle,
             throttle[0] != '\0' ? ")" : "");
    row->low[row->low_in_a_row++] = mhz;
    *out_pause_ms = pause_ms(row->low_in_a_row);
    if (row->low_in_a_row == CLAB_CLOCK_PATIENCE) { /* no zero samples: take it as it is, and say so */
        qsort(row->low, CLAB_CLOCK_PATIENCE, sizeof *row->low, ascending);
        row->reference_mhz = (row->low[CLAB_CLOCK_PATIENCE / 2 - 1] + row->low[CLAB_CLOCK_PATIENCE / 2]) / 2;
        row->settled_low = true;
        row->low_in_a_row = 0;
    }
    return false;
}
