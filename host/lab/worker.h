/* clang-format off */
/* The device worker: this same program, started as `PROGRAM --device-worker`, holding one device and
   answering requests (one JSON object a line) on its standard input. It may hang or die; its parent
   (session.h) copes. */
#ifndef CLAB_LAB_WORKER_H
#define CLAB_LAB_WORKER_H

/* Serves until the input ends. Requests, by "op":
     open     {device, options: {name: text}} → {facts}
     load     {key, path, source, entry} → {resources}
     grid     {key, row} → {grid: […]}: what the row's `fit` comes to
     verify   {key, row, buffers} → {verify: {status, detail, fills}, launch, counters|null, dumps}
     time     {rows: [{id, key, row, buffers, earlier: [ns…]}], hot, samples, first_round, spent_s, seed}
              → {sample: {id, round, ns, launches, sm_mhz|null, discarded|null, host_bound}}…
              then {end, spent_s, reference_mhz|null, throttle|null, other_processes|null} (measure.h)
     forget   {key} → {}
     clusters {key, block, smem_bytes, sizes, opt_in} → {potential, active: […]}
     jit      {source, ptx} → {jit: {compiler, compile_ms, log|null, bytes}}: PTX text through the driver's compiler
   A row's companion and a buffer's reference have keys of their own. Every answer may instead be {error: {…}} (wire.h); with "failed": id where one row is to blame. Lines
   {stage: name} say what comes next ("fill", "launch", "check"); while timing, with the row whose launch it
   is: {stage, row}. Returns the process's exit status. */
/* clang-format on */
int clab_device_worker(int in_fd, int out_fd);

#endif
