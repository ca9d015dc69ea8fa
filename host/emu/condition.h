/* Conditions of graphs: what cudaGraphSetConditional sets and conditional nodes read (CUDA Programming
   Guide 13.0, "Conditional Graph Nodes"). Thread-safe. */
#ifndef CLAB_EMU_CONDITION_H
#define CLAB_EMU_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

struct emu_machine;
/* A handle, never 0, for a value that starts as 0; 0 when memory is out. */
uint64_t emu_condition_new(struct emu_machine *machine);
void emu_condition_free(struct emu_machine *machine, uint64_t handle);
/* A condition can be set while a graph that asks it runs: on an H200 a kernel of no such graph has an illegal
   address (tests/api/data/h200_graphs.txt). Opened and closed as often as such graphs start and end. */
void emu_condition_open(struct emu_machine *machine, uint64_t handle, bool open);
/* For the host: also while it is closed. */
void emu_condition_assign(struct emu_machine *machine, uint64_t handle, uint32_t value);
/* For kernels. False when it is no live handle, or closed. */
bool emu_condition_set(struct emu_machine *machine, uint64_t handle, uint32_t value);
/* 0 when it is no live handle. */
uint32_t emu_condition_get(struct emu_machine *machine, uint64_t handle);

#endif
