/* Reports about running kernels (report.c). */
#ifndef CLAB_EMU_REPORT_H
#define CLAB_EMU_REPORT_H

#include "base/str.h"
#include "emu/fragment.h"

/* Fills kernel, instruction and file:line of `error` from an instruction of a function. */
void emu_report_at(struct clab_error *error, const struct emu_code *code, uint32_t insn_index);
/* The driver call and CUresult with which a fault of `kind` shows. */
void emu_fault_native(struct clab_error *error, enum emu_fault_kind kind);
/* Ends the launch with an error that no instruction is to blame for. */
void emu_run_fail(struct emu_run *run, clab_status status, const char *format, ...) CLAB_PRINTF(3, 4);
/* Adds to a deadlock's message what one mbarrier of the cluster expects and got, where every arrival was made
   and only the bytes are not right. False when there is none. */
bool emu_report_bytes(const struct emu_cluster *cluster, struct clab_error *error);
/* One line per group of threads of the cluster: where it is and what it waits for. Adds at most *lines, and
 * lowers it. */
void emu_report_stuck(const struct emu_cluster *cluster, struct clab_str *out, unsigned *lines);

#endif
