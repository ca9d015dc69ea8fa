/* Fatbins: containers of PTX and cubins for several architectures, as nvcc and fatbinary write them (layout:
   base/fatbin.h). Payloads are plain, LZ4 blocks or zstd frames. The PTX with the highest architecture that
   the device accepts is taken. */
#include "emu/api_image.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/fatbin.h"
#include "base/fatbin.h"
#include "emu/log.h"

static CUresult damaged(const char *what)
{
    return api_set_error(CUDA_ERROR_INVALID_IMAGE, "damaged fatbin: %s", what);
}

static CUresult unpack(const struct clab_fatbin_entry *entry, const unsigned char *payload, char **out_text,
                       size_t *out_bytes)
{
    bool lz4 = (entry->flags & CLAB_FATBIN_FLAG_LZ4) != 0, zstd = (entry->flags & CLAB_FATBIN_FLAG_ZSTD) != 0;
    uint64_t packed = lz4 || zstd ? entry->compressed_bytes : entry->payload_bytes;
    uint64_t bytes = lz4 || zstd ? entry->unpacked_bytes : entry->payload_bytes;
    if (packed > entry->payload_bytes || bytes > CLAB_FATBIN_UNPACK_LIMIT || packed > INT32_MAX)
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
static bool fits(const struct clab_fatbin_entry *entry, const struct emu_model *model)
{
    return entry->kind == CLAB_FATBIN_PTX && entry->arch <= model->sm;
}

CUresult api_fatbin_ptx(const void *fatbin, size_t bytes, const struct emu_model *model, char **out_text,
                        size_t *out_bytes)
{
    const unsigned char *start = fatbin;
    struct clab_fatbin_header header;
    struct clab_fatbin_entry best = {0};
    const unsigned char *best_payload = NULL;
    bool cubins = false, newer = false;
    if (bytes < sizeof header)
        return damaged("it ends in its header");
    memcpy(&header, start, sizeof header);
    if (header.header_bytes < sizeof header || header.bytes > CLAB_FATBIN_UNPACK_LIMIT * 4 ||
        (bytes != SIZE_MAX && (header.header_bytes > bytes || header.bytes > bytes - header.header_bytes)))
        return damaged("sizes of its header");
    uint64_t at = header.header_bytes, end = header.header_bytes + header.bytes;
    while (at < end) {
        struct clab_fatbin_entry entry;
        if (end - at < sizeof entry)
            return damaged("it ends in an entry");
        memcpy(&entry, start + at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.header_bytes > end - at ||
            entry.payload_bytes > end - at - entry.header_bytes)
            return damaged("an entry's sizes");
        cubins = cubins || entry.kind == CLAB_FATBIN_CUBIN;
        newer = newer || (entry.kind == CLAB_FATBIN_PTX && entry.arch > model->sm);
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
