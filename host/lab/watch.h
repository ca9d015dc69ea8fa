/* What NVML says about the GPU while it is measured: throttle reasons, clock, other processes. Loading NVML
   takes tens of milliseconds, so it starts on a thread of its own; everything is "unknown" where there is no
   NVML. */
#ifndef CLAB_LAB_WATCH_H
#define CLAB_LAB_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct clab_watch;

/* Begins to load NVML. NULL when memory is out or no thread starts: the functions below then know nothing. */
struct clab_watch *clab_watch_start(void);
/* Waits for the load to end and frees everything. */
void clab_watch_stop(struct clab_watch *watch);
/* Names the device, by the 16 bytes of cuDeviceGetUuid_v2; waits for the load. False when NVML does not know
 * it. */
bool clab_watch_device(struct clab_watch *watch, const unsigned char uuid[16]);
/* Reads the clocks event reasons now and adds them to those seen since clab_watch_clear. False when unknown.
 */
bool clab_watch_look(struct clab_watch *watch);
void clab_watch_clear(struct clab_watch *watch);
/* The reasons seen that slow a kernel, as text; "" none or unknown. Returns `text`. */
const char *clab_watch_text(const struct clab_watch *watch, char *text, size_t bytes);
/* Number of other processes with a context on the device, -1 unknown. */
int clab_watch_others(struct clab_watch *watch);

#endif
