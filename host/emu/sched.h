/* One host thread's share of a launch (sched.c), for launch.c. */
#ifndef CLAB_EMU_SCHED_H
#define CLAB_EMU_SCHED_H

#include "emu/fragment.h"

/* Runs clusters until none is left or the launch stops. The thread's pool exists; it is emptied of clusters. */
void emu_thread_run(struct emu_thread *thread);

#endif
