/* Fatbins and host object files. Their layout is in base/fatbin.h; neither is documented. Payloads are plain,
   LZ4 blocks or zstd frames. nvcc puts fatbins one after another into section .nv_fatbin of an object or
   program, or
   __nv_relfatbin with -rdc=true. */
#include "inspect/container.h"

#include <elf.h>
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/fatbin.h"
#include "base/str.h"

#define MACHINE_CUDA 190

struct images {
    const char *name;
    struct clab_image *list;
    size_t count;
    struct clab_error *error;
};

static clab_status damaged(const struct images *images, const char *what)
{
    return clab_error_set(images->error, CLAB_LOAD, "%s: damaged fatbin: %s", images->name, what);
}

static bool is_fatbin(const char *data, size_t bytes)
{
    uint32_t magic;
    if (bytes < sizeof magic)
        return false;
    memcpy(&magic, data, sizeof magic);
    return magic == CLAB_FATBIN_MAGIC;
}

static bool is_host_elf(const char *data, size_t bytes)
{
    Elf64_Ehdr header;
    if (bytes < sizeof header || memcmp(data, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(&header, data, sizeof header);
    return header.e_machine != MACHINE_CUDA;
}

bool clab_container_is(const void *data, size_t bytes)
{
    return is_fatbin(data, bytes) || is_host_elf(data, bytes);
}

static clab_status add_image(struct images *images, const struct clab_fatbin_entry *entry,
                             const char *payload)
{
    const bool lz4 = (entry->flags & CLAB_FATBIN_FLAG_LZ4) != 0,
               zstd = (entry->flags & CLAB_FATBIN_FLAG_ZSTD) != 0;
    const uint64_t packed = lz4 || zstd ? entry->compressed_bytes : entry->payload_bytes;
    uint64_t bytes = lz4 || zstd ? entry->unpacked_bytes : entry->payload_bytes;
    if (packed > entry->payload_bytes || bytes > CLAB_FATBIN_UNPACK_LIMIT || packed > INT32_MAX)
        return damaged(images, "sizes of an entry");
    char *unpacked = malloc(bytes + 1);
    struct clab_image *grown = realloc(images->list, (images->count + 1) * sizeof *grown);
    if (grown != NULL)
        images->list = grown;
    clab_status status = CLAB_OK;
    if (unpacked == NULL || grown == NULL)
        status = clab_error_set(images->error, CLAB_NO_MEMORY, "%s: no memory for an image of %llu bytes",
                                images->name, (unsigned long long)bytes);
    else if (zstd ? ZSTD_decompress(unpacked, bytes, payload, packed) != bytes
                  : lz4 && LZ4_decompress_safe(payload, unpacked, (int)packed, (int)bytes) != (int)bytes)
        status = damaged(images, "a compressed entry");
    if (status == CLAB_OK && !lz4 && !zstd)
        memcpy(unpacked, payload, bytes);
    if (status == CLAB_OK && entry->kind == CLAB_FATBIN_PTX)
        bytes = strnlen(unpacked, bytes); /* padded with zeros */
    if (status == CLAB_OK)
        status =
            clab_image_from_bytes(images->name, unpacked, bytes, &images->list[images->count], images->error);
    images->count += status == CLAB_OK;
    free(unpacked);
    return status;
}

/* One fatbin; *out_bytes is its length. */
static clab_status read_fatbin(struct images *images, const char *data, size_t bytes, size_t *out_bytes)
{
    struct clab_fatbin_header header;
    if (bytes < sizeof header)
        return damaged(images, "it ends in its header");
    memcpy(&header, data, sizeof header);
    if (header.header_bytes < sizeof header || header.header_bytes > bytes ||
        header.bytes > bytes - header.header_bytes)
        return damaged(images, "sizes of its header");
    const uint64_t end = header.header_bytes + header.bytes;
    for (uint64_t at = header.header_bytes; at < end;) {
        struct clab_fatbin_entry entry;
        if (end - at < sizeof entry)
            return damaged(images, "it ends in an entry");
        memcpy(&entry, data + at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.header_bytes > end - at ||
            entry.payload_bytes > end - at - entry.header_bytes)
            return damaged(images, "sizes of an entry");
        if (entry.kind == CLAB_FATBIN_PTX || entry.kind == CLAB_FATBIN_CUBIN) {
            clab_status status = add_image(images, &entry, data + at + entry.header_bytes);
            if (status != CLAB_OK)
                return status;
        }
        at += entry.header_bytes + entry.payload_bytes;
    }
    *out_bytes = (size_t)end;
    return CLAB_OK;
}

/* Fatbins one after another, padded to eight bytes. */
static clab_status read_section(struct images *images, const char *data, size_t bytes)
{
    for (size_t at = 0; at + sizeof(struct clab_fatbin_header) <= bytes;) {
        size_t length = 0;
        if (!is_fatbin(data + at, bytes - at)) {
            at += 8;
            continue;
        }
        clab_status status = read_fatbin(images, data + at, bytes - at, &length);
        if (status != CLAB_OK)
            return status;
        at += (length + 7) / 8 * 8;
    }
    return CLAB_OK;
}

static clab_status read_elf(struct images *images, const char *data, size_t bytes)
{
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    memcpy(&header, data, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_shentsize != sizeof section || header.e_shoff > bytes ||
        (bytes - header.e_shoff) / sizeof section < header.e_shnum || header.e_shstrndx >= header.e_shnum)
        return clab_error_set(images->error, CLAB_LOAD, "%s is an ELF file without a readable section table",
                              images->name);
    memcpy(&names, data + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names);
    if (names.sh_offset > bytes || names.sh_size > bytes - names.sh_offset)
        return clab_error_set(images->error, CLAB_LOAD,
                              "%s is truncated: its section names lie behind its end", images->name);
    for (size_t i = 0; i < header.e_shnum; i++) {
        memcpy(&section, data + header.e_shoff + i * sizeof section, sizeof section);
        static const char *const wanted[] = {".nv_fatbin", "__nv_relfatbin"};
        bool found = false;
        for (size_t w = 0; w < 2; w++)
            found = found ||
                    (section.sh_name < names.sh_size && strlen(wanted[w]) < names.sh_size - section.sh_name &&
                     strcmp(data + names.sh_offset + section.sh_name, wanted[w]) == 0);
        if (!found || section.sh_type == SHT_NOBITS)
            continue;
        if (section.sh_offset > bytes || section.sh_size > bytes - section.sh_offset)
            return clab_error_set(images->error, CLAB_LOAD, "%s is truncated in its device code",
                                  images->name);
        clab_status status = read_section(images, data + section.sh_offset, section.sh_size);
        if (status != CLAB_OK)
            return status;
    }
    return CLAB_OK;
}

clab_status clab_container_read(const char *name, const void *data, size_t bytes,
                                struct clab_image **out_images, size_t *out_count, struct clab_error *error)
{
    struct images images = {.name = name, .error = error};
    size_t length;
    clab_status status =
        is_fatbin(data, bytes) ? read_fatbin(&images, data, bytes, &length) : read_elf(&images, data, bytes);
    if (status == CLAB_OK && images.count == 0) {
        status = clab_error_set(error, CLAB_LOAD, "%s holds no device code", name);
        clab_error_remedy(error,
                          "an object file of nvcc has it in section .nv_fatbin; this may be a host file");
    }
    if (status != CLAB_OK) {
        clab_container_free(images.list, images.count);
        images = (struct images){0};
    }
    *out_images = images.list;
    *out_count = images.count;
    return status;
}

void clab_container_free(struct clab_image *images, size_t count)
{
    for (size_t i = 0; i < count; i++)
        clab_image_free(&images[i]);
    free(images);
}

static bool has_entry(const struct clab_image *image, const char *entry)
{
    char **names;
    size_t count;
    bool found = false;
    if (clab_image_entries(image, &names, &count, NULL) != CLAB_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        found = found || entry == NULL || strcmp(names[i], entry) == 0;
    clab_image_names_free(names, count);
    return found;
}

struct clab_image *clab_container_best(struct clab_image *images, size_t count, enum clab_image_kind kind,
                                       const char *entry, const struct clab_target *chip)
{
    struct clab_image *best = NULL;
    int best_number = -1;
    for (size_t i = 0; i < count; i++) {
        const struct clab_target *target = clab_target_find(images[i].arch);
        if (images[i].kind != kind || target == NULL || !has_entry(&images[i], entry))
            continue;
        if (chip != NULL && !(kind == CLAB_IMAGE_PTX ? clab_target_ptx_runs(target, chip)
                                                     : clab_target_cubin_runs(target, chip)))
            continue;
        const int number = target->number * 2 + (chip != NULL && target == chip);
        if (number > best_number) {
            best = &images[i];
            best_number = number;
        }
    }
    return best;
}

clab_status clab_container_refuse(const char *file, const struct clab_image *images, size_t count,
                                  const char *entry, const char *arch, struct clab_error *error)
{
    struct clab_str list = {0};
    for (size_t i = 0; i < count && list.bytes < 600; i++) {
        char **names;
        size_t n;
        if (clab_image_entries(&images[i], &names, &n, NULL) != CLAB_OK)
            continue;
        clab_str_addf(&list, "%s%s %s (", i > 0 ? "; " : "", clab_image_kind_name(images[i].kind),
                      images[i].arch);
        for (size_t k = 0; k < n && list.bytes < 600; k++)
            clab_str_addf(&list, "%s%s", k > 0 ? ", " : "", names[k]);
        clab_str_add(&list, ")");
        clab_image_names_free(names, n);
    }
    clab_error_set(error, CLAB_NOT_FOUND, "%s holds nothing%s%s%s%s; it holds: %s", file,
                   entry != NULL ? " with entry " : "", entry != NULL ? entry : "",
                   arch != NULL ? " for " : "", arch != NULL ? arch : "",
                   list.text != NULL ? list.text : "nothing");
    clab_str_free(&list);
    return CLAB_NOT_FOUND;
}
