/* Timelines as pictures: a Chrome/Perfetto trace and an SVG of what each SM did when (lab/timeline.h says
   where the slots come from). Both say whether their time was measured or modelled. */
#ifndef CLAB_REPORT_TIMELINE_H
#define CLAB_REPORT_TIMELINE_H

#include <jansson.h>

#include "base/error.h"
#include "report/output.h"

struct clab_timelines {
    struct clab_output trace, picture;
    json_t *rows; /* [{"row", "slots", "device", "experiment", "item"}]; NULL: not open */
};

/* `path`, less an ending .json or .svg, names two files: PATH.json, the trace, and PATH.svg, the picture.
   Both are proved writable. CLAB_OUTPUT, CLAB_USAGE. */
clab_status clab_timelines_open(struct clab_timelines *timelines, const char *path, struct clab_error *error);
/* Keeps a row's record (with its "timeline" summary) and slots, flat lists of six: slot, start ns, end ns,
   SM, CTA, kind. `sms`: of the device. Everything is borrowed for the call, or referenced. */
void clab_timelines_add(struct clab_timelines *timelines, const char *experiment, const char *item,
                        unsigned sms, const json_t *row, const json_t *slots);
/* Writes both files, when there is a row to show. CLAB_OUTPUT. */
clab_status clab_timelines_close(struct clab_timelines *timelines, struct clab_error *error);

/* --- timeline_svg.c. The picture: a panel for each row, SMs down, time across, work as bars. False: not all
   of it could be written. */
bool clab_timelines_svg(FILE *file, const json_t *rows);

#endif
