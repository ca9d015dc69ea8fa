/* Copies and sets on their way from a driver call to a stream: checks, pageable memory, staging
   (api_transfer.c). Used by the calls of api_copy.c, api_set.c and by graph nodes. */
#ifndef CLAB_EMU_API_TRANSFER_H
#define CLAB_EMU_API_TRANSFER_H

#include "emu/api.h"

enum api_side_kind {
    API_SIDE_HOST,   /* pointer of the program: pageable, or pinned when the table of allocations has it */
    API_SIDE_DEVICE, /* must be live device memory */
    API_SIDE_UNIFIED /* either: the address decides */
};

/* A box with one row. */
struct api_copy api_copy_linear(uint64_t to, uint64_t from, uint64_t bytes);
/* Fills copy->to.device and .from.device and checks both sides. INVALID_VALUE with the reason recorded. */
CUresult api_copy_check(struct api_copy *copy, enum api_side_kind to, enum api_side_kind from);
/* The boxes of the manual's structs. */
CUresult api_copy_from_2d(const CUDA_MEMCPY2D *from, struct api_copy *out_copy);
CUresult api_copy_from_3d(const CUDA_MEMCPY3D *from, struct api_copy *out_copy);
/* Runs a checked copy in a stream. synchronous: a form without Async in its name. */
CUresult api_copy_submit(struct api_stream *stream, const struct api_copy *copy, bool synchronous);

/* Checks a set: address and pitch aligned to the element, all of it live. */
CUresult api_set_check(uint64_t address, uint64_t pitch, unsigned element_bytes, uint64_t width,
                       uint64_t height);

#endif
