/* The stand-in's options: from the environment at cuInit, through the private channel later (channel.h lists
 * them). */
#ifndef CLAB_EMU_OPTIONS_H
#define CLAB_EMU_OPTIONS_H

#include "emu/api.h"

/* value NULL: the default. CLAB_USAGE with `error` for an unknown name or a bad value. */
clab_status api_option_set(struct emu_machine *machine, const char *name, const char *value,
                           struct clab_error *error);
/* What messages call an image that was given as bytes: option "source", or else "ptx input". Borrowed until
   the option is set again; call it with the lock held, after cuInit. */
const char *api_source_name(void);
/* Every CLUSTERLAB_EMU_<NAME> that is set and not empty. */
clab_status api_options_from_environment(struct emu_machine *machine, struct clab_error *error);

#endif
