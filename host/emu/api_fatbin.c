/* Fatbins: containers of PTX and cubins for several architectures, as nvcc and fatbinary write them. Not
   documented; the layout below was read off files that fatbinary 13.0 wrote (tests/api/data), with each kind
   of compression: header   u32 magic, u16 version, u16 header bytes, u64 bytes of all entries entry    u16
   kind (1 PTX, 2 cubin), u16 version, u32 header bytes, u64 payload bytes (padded to 8), u32 compressed
   bytes, u32, u16 minor, u16 major, u32 architecture, u32 name offset, u32 name bytes, u64 flags, u64, u64
   uncompressed bytes Payloads are plain, LZ4 blocks or zstd frames. The PTX with the highest architecture
   that the device accepts is taken. */
#include "emu/api_image.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "emu/log.h"

#define KIND_PTX  1
#define KIND_ELF  2
#define FLAG_LZ4  UINT64_C(0x2000)
#define FLAG_ZSTD UINT64_C(0x8000)
/* A text of this size would take hours to parse; a larger claim is a damaged or hostile file. */
#define PTX_LIMIT ((uint64_t)1 << 30)

struct header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t payload_bytes;
    uint32_t compressed_bytes, options_offset;
    uint16_t minor, major;
    uint32_t arch, name_offset, name_bytes;
    uint64_t flags, zero, uncompressed_bytes;
};
_Static_assert(sizeof(struct header) == 16 && sizeof(struct entry) == 64, "as in the file");

static CUresult damaged(const char *what)
{
    return api_set_error(CUDA_ERROR_INVALID_IMAGE, "damaged fatbin: %s", what);
}

static CUresult unpack(const struct entry *entry, const unsigned char *payload, char **out_text,
                       size_t *out_bytes)
{
    bool lz4 = (entry->flags & FLAG_LZ4) != 0, zstd = (entry->flags & FLAG_ZSTD) != 0;
    uint64_t packed = lz4 || zstd ? entry->compressed_bytes : entry->payload_bytes;
    uint64_t bytes = lz4 || zstd ? entry->uncompressed_bytes : entry->payload_bytes;
    if (packed > entry->payload_bytes || bytes > PTX_LIMIT || packed > INT32_MAX)
        return damaged("sizes of an entry");
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %llu bytes of PTX",
                             (unsigned long long)bytes);
    bool good = true;
    if (zstd)
        good = ZSTD_decompress(text, bytes, payload, packed) == bytes;
    else if (lz4)
        good = LZ4_decompress_safe((const char *)payload, text, (int)packed, (int)bytes) == (int)bytes;
    else
        memcpy(text, payload, bytes);
    if (!good) {
        free(text);
        return damaged("a compressed entry");
    }
    text[bytes] = '\0';
    *out_text = text;
    *out_bytes = strlen(text); /* padded with zeros */
    return CUDA_SUCCESS;
}

/* The suffix of the PTX's own .target decides in the end; here only plain numbers are compared. */
static bool fits(const struct entry *entry, const struct emu_model *model)
{
    return entry->kind == KIND_PTX && entry->arch <= model->sm;
}

CUresult api_fatbin_ptx(const void *fatbin, size_t bytes, const struct emu_model *model, char **out_text,
                        size_t *out_bytes)
{
    const unsigned char *start = fatbin;
    struct header header;
    struct entry best = {0};
    const unsigned char *best_payload = NULL;
    bool cubins = false, newer = false;
    if (bytes < sizeof header)
        return damaged("it ends in its header");
    memcpy(&header, start, sizeof header);
    if (header.header_bytes < sizeof header || header.bytes > PTX_LIMIT * 4 ||
        (bytes != SIZE_MAX && (header.header_bytes > bytes || header.bytes > bytes - header.header_bytes)))
        return damaged("sizes of its header");
    uint64_t at = header.header_bytes, end = header.header_bytes + header.bytes;
    while (at < end) {
        struct entry entry;
        if (end - at < sizeof entry)
            return damaged("it ends in an entry");
        memcpy(&entry, start + at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.header_bytes > end - at ||
            entry.payload_bytes > end - at - entry.header_bytes)
            return damaged("an entry's sizes");
        cubins = cubins || entry.kind == KIND_ELF;
        newer = newer || (entry.kind == KIND_PTX && entry.arch > model->sm);
        if (fits(&entry, model) && (best_payload == NULL || entry.arch >= best.arch)) {
            best = entry;
            best_payload = start + at + entry.header_bytes;
        }
        at += entry.header_bytes + entry.payload_bytes;
    }
    if (best_payload != NULL)
        return unpack(&best, best_payload, out_text, out_bytes);
    const char *words = newer ? "the fatbin's PTX is for newer devices only"
                        : cubins
                            ? "the fatbin holds cubins only; the stand-in driver executes PTX: compile with "
                              "-arch=compute_XY or -gencode …,code=compute_XY"
                            : "the fatbin holds no PTX";
    emu_log_refused("%s", words);
    return api_set_error(CUDA_ERROR_NO_BINARY_FOR_GPU, "%s", words);
}
