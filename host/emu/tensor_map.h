/* The 128-byte tensor map object (CUtensorMap), stored as the hardware stores it. Written by
   cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col and tensormap.replace, read by tensor copies. CUDA driver
   API 13.0, "Tensor Map Object Management"; PTX ISA 9.0, "Tensors", "tensormap.replace".

   The layout was read off 80 objects that an H200's driver 580.159.04 encoded (tests/api/data/h200.txt), and
   agrees with what ptxas 13.0 makes of tensormap.replace (plain loads and stores). As 32-bit words: 0, 1
   address 2      0 im2col · 6:4 rank - 1 · 10:7 element type · 12:11 interleave · 14:13 swizzle · 15 NaN fill
   · 16 tf32 · 18:17 L2 promotion · 21:19 swizzle atomicity · 22 swizzle of 96 bytes (both from ptxas only)
      3..6   low 32 bits of the strides of dimensions 1 to 4, in units of 16 bytes
      7      3:0, 7:4, 11:8, 15:12 their high four bits
      8..12  dimensions 0 to 4, less one
      13     2:0, 5:3, 8:6, 11:9, 14:12 element strides, less one · 31:24 box dimension 0 (im2col: channels),
   less one 14     tiled: 7:0, 15:8, 23:16, 31:24 box dimensions 1 to 4, less one im2col: the corners in two's
   complement: rank 3: 15:0 lower, 31:16 upper W; rank 4: 7:0, 15:8 lower W, H, 23:16, 31:24 upper W, H; rank
   5: 4:0, 9:5, 14:10 lower W, H, D, 20:16, 25:21, 30:26 upper W, H, D 15     im2col: 9:0 pixels, less one 16
   bytes of a box: element bytes x box dimensions (each divided by its element stride, rounded down; im2col:
             channels x pixels)
      18     alignment in shared memory: 16, or 256, 512, 1024 for swizzles of 32, 64, 128 bytes
   Words 16 and up are not read by the copies here. UNVERIFIED: the encodings of sub-byte types, swizzle
   atomicity and word 18 for them: an H200's driver refuses these. Of im2col::w this project knows no
   encoding: bits 2:1 of word 2 are its own, the corners lie as with rank 3. */
#ifndef CLAB_EMU_TENSOR_MAP_H
#define CLAB_EMU_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define EMU_TENSOR_MAP_BYTES 128
#define EMU_TENSOR_MAX_RANK  5

/* Types by the numbers of CUtensorMapDataType. */
enum emu_tensor_type {
    EMU_TENSOR_U8,
    EMU_TENSOR_U16,
    EMU_TENSOR_U32,
    EMU_TENSOR_S32,
    EMU_TENSOR_U64,
    EMU_TENSOR_S64,
    EMU_TENSOR_F16,
    EMU_TENSOR_F32,
    EMU_TENSOR_F64,
    EMU_TENSOR_BF16,
    EMU_TENSOR_F32_FTZ,
    EMU_TENSOR_TF32,
    EMU_TENSOR_TF32_FTZ,
    EMU_TENSOR_U4X16_ALIGN8,
    EMU_TENSOR_U4X16_ALIGN16,
    EMU_TENSOR_U6X16_ALIGN16,
    EMU_TENSOR_TYPE_COUNT
};

/* By the numbers of CUtensorMapSwizzle; the last one only by tensormap.replace. */
enum emu_tensor_swizzle {
    EMU_SWIZZLE_NONE,
    EMU_SWIZZLE_32B,
    EMU_SWIZZLE_64B,
    EMU_SWIZZLE_128B,
    EMU_SWIZZLE_128B_ATOM_32B,
    EMU_SWIZZLE_128B_ATOM_32B_FLIP_8B,
    EMU_SWIZZLE_128B_ATOM_64B,
    EMU_SWIZZLE_96B,
    EMU_SWIZZLE_COUNT
};

struct emu_tensor_map {
    uint64_t address;
    uint32_t rank; /* 1..5 */
    enum emu_tensor_type type;
    uint32_t interleave; /* 0 none, 1 16 bytes, 2 32 bytes */
    enum emu_tensor_swizzle swizzle;
    uint32_t l2_promotion; /* 0..3 */
    bool nan_fill;
    uint64_t dims[EMU_TENSOR_MAX_RANK];            /* elements; dimension 0 is innermost; 1 beyond the rank */
    uint64_t strides[EMU_TENSOR_MAX_RANK];         /* bytes, of dimensions 1 and up; [0] is not used */
    uint32_t element_strides[EMU_TENSOR_MAX_RANK]; /* 1..8 */
    uint32_t box[EMU_TENSOR_MAX_RANK];             /* tiled: elements */
    bool im2col;
    uint32_t wide; /* im2col: 0, or 1 for im2col::w, 2 for im2col::w::128, whose corners are W's only */
    int32_t lower[3], upper[3]; /* im2col: corners of the pixel box, dimensions 1 (W) and up */
    uint32_t channels, pixels;  /* im2col: channels per pixel, pixels per column */
};

/* Bits of an element in global memory. */
uint32_t emu_tensor_element_bits(enum emu_tensor_type type);
/* Bytes in shared memory of so many elements of a row, the padding of 16 elements to 16 bytes included. */
uint64_t emu_tensor_shared_bytes(enum emu_tensor_type type, uint64_t elements);
/* A map whose members are within the limits that the driver API checks. */
void emu_tensor_map_encode(const struct emu_tensor_map *map, uint32_t out_words[EMU_TENSOR_MAP_BYTES / 4]);
/* NULL, or why the words are no tensor map that an instruction could use. */
const char *emu_tensor_map_decode(const uint32_t words[EMU_TENSOR_MAP_BYTES / 4], struct emu_tensor_map *out);

#endif
