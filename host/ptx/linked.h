/* How a linker that makes one PTX text of several modules tells the parser. */
#ifndef CLAB_PTX_LINKED_H
#define CLAB_PTX_LINKED_H

/* A comment near the start of such a text: what one of its parts declares .extern another may define. */
#define PTX_LINKED_MARK "// clusterlab: linked"

#endif
