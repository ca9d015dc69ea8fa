/* Layout of fatbins: what nvcc puts around PTX and cubins. Read off files made by fatbinary 13.0. */
#ifndef CLAB_BASE_FATBIN_H
#define CLAB_BASE_FATBIN_H

#include <stdint.h>

#define CLAB_FATBIN_MAGIC     UINT32_C(0xba55ed50)
#define CLAB_FATBIN_PTX       1
#define CLAB_FATBIN_CUBIN     2
#define CLAB_FATBIN_FLAG_LZ4  UINT64_C(0x2000)
#define CLAB_FATBIN_FLAG_ZSTD UINT64_C(0x8000)
/* A payload that claims to unpack to more is damaged or hostile: a PTX text of this size would take hours to
 * parse. */
#define CLAB_FATBIN_UNPACK_LIMIT ((uint64_t)1 << 30)

struct clab_fatbin_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of the entries behind it */
};
struct clab_fatbin_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t payload_bytes;
    uint32_t compressed_bytes, options_offset;
    uint16_t minor, major;
    uint32_t arch, name_offset, name_bytes;
    uint64_t flags, zero, unpacked_bytes;
};
_Static_assert(sizeof(struct clab_fatbin_header) == 16 && sizeof(struct clab_fatbin_entry) == 64,
               "as in the file");

#endif
