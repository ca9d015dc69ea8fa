/* Where experiment files are: ./kernels, $CLUSTERLAB_PATH, the installed tree, the source tree of a build. */
#ifndef CLAB_LAB_FIND_H
#define CLAB_LAB_FIND_H

#include "base/error.h"

/* Absolute path of an experiment given by name or by path to a .lua file; heap, freed by the caller.
   CLAB_EXPERIMENT: no such name (nearest name and list) or file. */
clab_status clab_experiment_find(const char *name, char **out_path, struct clab_error *error);
/* Absolute paths of all experiments that a name reaches, first of each name only, in search order: a heap
   array of heap strings ending in NULL. NULL when memory is out. */
char **clab_experiment_all(void);
/* "reduce" of ".../reduce.lua": into name[0..bytes). */
void clab_experiment_name(const char *path, char *name, size_t bytes);

#endif
