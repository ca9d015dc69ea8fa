/* The device worker: this same program, started as `PROGRAM --device-worker`, holding one device and answering requests
   (one JSON object a line) on its standard input. It may hang or die; its parent (session.h) copes. */
#ifndef CLAB_LAB_WORKER_H
#define CLAB_LAB_WORKER_H

/* Serves until the input ends. Requests, by "op":
     open   {device, options:{name: text}}              → {facts}
     load   {key, path, source, entry}                  → {resources}
     verify {key, row, buffers}                         → {verify: {status, detail, fills}, launch, counters|null}
     time   {rows: [{id, key, row, buffers}], rounds, warmup, seed}
                                                         → {sample: {id, round, ns}}… then {done: true}
     forget {key}                                       → {}
     facts of clusters: clusters {key, block, smem_bytes, sizes, opt_in} → {potential, active: […]}
   Every answer may instead be {error: {…}} (wire.h); with "failed": id where one row is to blame.
   Returns the process's exit status. */
int clab_device_worker(int in_fd, int out_fd);

#endif
