/* Control-flow graphs as pictures. */
#ifndef CLAB_INSPECT_GRAPH_H
#define CLAB_INSPECT_GRAPH_H

#include "base/str.h"
#include "inspect/listing.h"

/* Appends the graph in graphviz's language, one box per block with its instructions. */
void clab_graph_dot(const struct clab_listing *listing, struct clab_str *out);
/* USAGE unless `path` has an ending that clab_graph_write knows. */
clab_status clab_graph_check(const char *path, struct clab_error *error);
/* Draws it into `path`: .dot or .gv is written as it is; .svg, .pdf and .png need graphviz's program dot.
   USAGE (another ending), NO_TOOLKIT (no dot), OUTPUT (the file cannot be written, or dot failed: its words
   are the log). */
clab_status clab_graph_write(const struct clab_listing *listing, const char *path, struct clab_error *error);

#endif
