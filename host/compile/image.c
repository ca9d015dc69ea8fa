/* Images as data: telling PTX, cubin and fatbin apart, checking that they are whole, and finding their
   entries.

   A cubin is an ELF file for machine 190 (EM_CUDA). Where the chip stands in e_flags was read off cubins of
   ptxas 13.0.88 (ABI version 8: bits 15:8) and is documented for older ones (ABI version 7: bits 7:0) in the
   cuda-binary utilities' headers; the suffix a or f is only in the assembler's command line, in the note
   section .note.nv.tkinfo. Entries are the functions whose st_other has bit 0x10. PTX is only skimmed here
   (PTX ISA 9.0,
   ".version", ".target", ".entry"): parsing is host/ptx's. A fatbin is passed on unopened. */
#include "compile/image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compile/sha256.h"

enum { MACHINE_CUDA = 190, ABI_VERSION_CUDA_13 = 8, SYMBOL_IS_ENTRY = 0x10 };
static const unsigned char fatbin_magic[4] = {0x50, 0xed, 0x55, 0xba}; /* 0xba55ed50, fatbinary_section.h */
static const size_t image_limit_bytes = (size_t)1 << 31;

const char *clab_image_kind_name(enum clab_image_kind kind)
{
    switch (kind) {
    case CLAB_IMAGE_PTX:
        return "ptx";
    case CLAB_IMAGE_CUBIN:
        return "cubin";
    case CLAB_IMAGE_FATBIN:
        return "fatbin";
    case CLAB_IMAGE_NONE:
        break;
    }
    return "none";
}

/* --- PTX
 * ---------------------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
}

/* Passes over white space and comments. */
static const char *skip(const char *at, const char *end)
{
    while (at < end) {
        if (is_space(*at)) {
            at++;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
            while (at < end && *at != '\n')
                at++;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
            at += 2;
            while (end - at >= 2 && !(at[0] == '*' && at[1] == '/'))
                at++;
            at = end - at >= 2 ? at + 2 : end;
        } else {
            break;
        }
    }
    return at;
}

/* The next directive of that name at or after `at`, outside comments and strings: a pointer behind it, or
 * NULL. */
static const char *find_directive(const char *at, const char *end, const char *directive)
{
    size_t length = strlen(directive);
    while ((at = skip(at, end)) < end) {
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++)
                if (*at == '\\' && at + 1 < end)
                    at++;
            at += at < end;
        } else if (*at == '.' && (size_t)(end - at) > length && memcmp(at, directive, length) == 0 &&
                   !is_name(at[length])) {
            return at + length;
        } else {
            at++;
        }
    }
    return NULL;
}

static bool is_ptx(const char *data, size_t bytes)
{
    const char *at = skip(data, data + bytes);
    return data + bytes - at > 8 && memcmp(at, ".version", 8) == 0;
}

/* The word at `at` (white space and comments before it passed over) into `word`. */
static void copy_word(const char *at, const char *end, char *word, size_t bytes)
{
    size_t length = 0;
    for (at = skip(at, end); at < end && (is_name(*at) || *at == '.') && length + 1 < bytes; at++)
        word[length++] = *at;
    word[length] = '\0';
}

static void skim_ptx(struct clab_image *image)
{
    const char *end = image->data + image->bytes;
    char word[32];
    const char *version = find_directive(image->data, end, ".version");
    int major, minor;
    if (version != NULL) {
        copy_word(version, end, word, sizeof word);
        if (sscanf(word, "%d.%d", &major, &minor) == 2)
            image->ptx_version = major * 10 + minor;
    }
    const char *target = find_directive(image->data, end, ".target");
    if (target != NULL)
        copy_word(target, end, image->arch, sizeof image->arch);
}

/* --- cubin
 * -------------------------------------------------------------------------------------------------- */

struct cubin {
    const char *data;
    size_t bytes;
    Elf64_Ehdr header;
};

static bool section_at(const struct cubin *cubin, size_t index, Elf64_Shdr *out)
{
    if (index >= cubin->header.e_shnum)
        return false;
    memcpy(out, cubin->data + cubin->header.e_shoff + index * sizeof *out, sizeof *out);
    return true;
}

/* Text in a string table section, or "" where the offset leads outside it. */
static const char *string_at(const struct cubin *cubin, size_t table, size_t offset)
{
    Elf64_Shdr section;
    if (!section_at(cubin, table, &section) || section.sh_type != SHT_STRTAB || offset >= section.sh_size ||
        memchr(cubin->data + section.sh_offset + offset, '\0', section.sh_size - offset) == NULL)
        return "";
    return cubin->data + section.sh_offset + offset;
}

/* Checks the file's frame: every section lies inside it. */
static clab_status open_cubin(const char *name, const char *data, size_t bytes, struct cubin *out,
                              struct clab_error *error)
{
    out->data = data;
    out->bytes = bytes;
    if (bytes < sizeof out->header)
        return clab_error_set(error, CLAB_LOAD, "%s is truncated: %zu bytes, less than an ELF header", name,
                              bytes);
    memcpy(&out->header, data, sizeof out->header);
    const Elf64_Ehdr *header = &out->header;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != MACHINE_CUDA)
        return clab_error_set(error, CLAB_LOAD, "%s is an ELF file, but not a cubin (machine %u, wanted %d)",
                              name, (unsigned)header->e_machine, MACHINE_CUDA);
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > bytes ||
        (bytes - header->e_shoff) / sizeof(Elf64_Shdr) < header->e_shnum)
        return clab_error_set(
            error, CLAB_LOAD, "%s is truncated: its section table ends at byte %llu of %zu", name,
            (unsigned long long)(header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr)), bytes);
    for (size_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        section_at(out, i, &section);
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            (section.sh_offset > bytes || section.sh_size > bytes - section.sh_offset))
            return clab_error_set(error, CLAB_LOAD, "%s is truncated: section %zu ends at byte %llu of %zu",
                                  name, i, (unsigned long long)(section.sh_offset + section.sh_size), bytes);
    }
    return CLAB_OK;
}

static void cubin_arch(const struct cubin *cubin, char *arch, size_t bytes)
{
    unsigned int flags = cubin->header.e_flags;
    unsigned int chip =
        cubin->header.e_ident[EI_ABIVERSION] >= ABI_VERSION_CUDA_13 ? flags >> 8 & 0xff : flags & 0xff;
    int length = snprintf(arch, bytes, "sm_%u", chip);
    Elf64_Shdr section;
    for (size_t i = 0; section_at(cubin, i, &section); i++) {
        if (section.sh_type != SHT_NOTE ||
            strcmp(string_at(cubin, cubin->header.e_shstrndx, section.sh_name), ".note.nv.tkinfo") != 0)
            continue;
        const char *note = cubin->data + section.sh_offset;
        const char *found = memmem(note, section.sh_size, arch, (size_t)length);
        size_t left = found != NULL ? section.sh_size - (size_t)(found - note) - (size_t)length : 0;
        char suffix = left > 0 ? found[length] : '\0';
        if (suffix == 'a' || suffix == 'f')
            snprintf(arch + length, bytes - (size_t)length, "%c", suffix);
    }
}

/* --- both
 * --------------------------------------------------------------------------------------------------- */

clab_status clab_image_from_bytes(const char *name, const void *data, size_t bytes, struct clab_image *out,
                                  struct clab_error *error)
{
    memset(out, 0, sizeof *out);
    if (bytes == 0)
        return clab_error_set(error, CLAB_LOAD, "%s is empty", name);
    struct cubin cubin;
    if (bytes >= 4 && memcmp(data, ELFMAG, SELFMAG) == 0) {
        clab_status status = open_cubin(name, data, bytes, &cubin, error);
        if (status != CLAB_OK)
            return status;
        out->kind = CLAB_IMAGE_CUBIN;
    } else if (bytes >= 4 && memcmp(data, fatbin_magic, 4) == 0) {
        out->kind = CLAB_IMAGE_FATBIN;
    } else if (is_ptx(data, bytes)) {
        out->kind = CLAB_IMAGE_PTX;
    } else {
        clab_error_set(error, CLAB_LOAD, "%s is neither PTX, cubin nor fatbin", name);
        return clab_error_remedy(error,
                                 "PTX begins with .version; CUDA C++ sources are told by the ending .cu");
    }
    out->data = malloc(bytes + 1);
    out->source_path = strdup(name);
    if (out->data == NULL || out->source_path == NULL) {
        clab_image_free(out);
        return clab_error_set(error, CLAB_NO_MEMORY, "%s: no memory for %zu bytes", name, bytes);
    }
    memcpy(out->data, data, bytes);
    out->data[bytes] = '\0';
    out->bytes = bytes;
    if (out->kind == CLAB_IMAGE_PTX) {
        out->bytes = strlen(out->data); /* some compilers count the NUL as part of the text */
        skim_ptx(out);
    } else if (out->kind == CLAB_IMAGE_CUBIN) {
        cubin_arch(&cubin, out->arch, sizeof out->arch);
    }
    clab_sha256_of(out->data, out->bytes, out->sha256);
    return CLAB_OK;
}

clab_status clab_image_read(const char *path, struct clab_image *out, struct clab_error *error)
{
    memset(out, 0, sizeof *out);
    size_t bytes;
    char *data = clab_file_read(path, image_limit_bytes, &bytes);
    if (data == NULL)
        return clab_error_set(error, CLAB_NOT_FOUND, "cannot read %s: %s", path, strerror(errno));
    clab_status status = clab_image_from_bytes(path, data, bytes, out, error);
    free(data);
    return status;
}

void clab_image_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool add_name(char ***names, size_t *count, const char *text, size_t bytes)
{
    char **grown = realloc(*names, (*count + 1) * sizeof **names);
    if (grown == NULL)
        return false;
    *names = grown;
    grown[*count] = strndup(text, bytes);
    return grown[(*count)++] != NULL;
}

clab_status clab_image_entries(const struct clab_image *image, char ***out_names, size_t *out_count,
                               struct clab_error *error)
{
    bool good = true;
    *out_names = NULL;
    *out_count = 0;
    if (image->kind == CLAB_IMAGE_PTX) {
        const char *at = image->data, *end = image->data + image->bytes;
        while (good && (at = find_directive(at, end, ".entry")) != NULL) {
            const char *start = at = skip(at, end);
            while (at < end && is_name(*at))
                at++;
            good = add_name(out_names, out_count, start, (size_t)(at - start));
        }
    } else if (image->kind == CLAB_IMAGE_CUBIN) {
        struct cubin cubin;
        clab_status status = open_cubin(image->source_path != NULL ? image->source_path : "cubin",
                                        image->data, image->bytes, &cubin, error);
        if (status != CLAB_OK)
            return status;
        Elf64_Shdr section;
        for (size_t i = 0; section_at(&cubin, i, &section); i++) {
            if (section.sh_type != SHT_SYMTAB)
                continue;
            for (size_t at = 0; good && at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
                Elf64_Sym symbol;
                memcpy(&symbol, cubin.data + section.sh_offset + at, sizeof symbol);
                if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
                    (symbol.st_other & SYMBOL_IS_ENTRY) == 0)
                    continue;
                const char *name = string_at(&cubin, section.sh_link, symbol.st_name);
                good = add_name(out_names, out_count, name, strlen(name));
            }
        }
    }
    if (good)
        return CLAB_OK;
    clab_image_names_free(*out_names, *out_count);
    *out_names = NULL;
    *out_count = 0;
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the names of the entries");
}

clab_status clab_image_choose_entry(struct clab_image *image, const char *entry, struct clab_error *error)
{
    const char *file = image->source_path != NULL ? image->source_path : "the image";
    if (image->kind == CLAB_IMAGE_FATBIN) {
        if (entry == NULL)
            return clab_error_set(error, CLAB_USAGE, "%s is a fatbin: name its entry (FILE:ENTRY)", file);
    }
    char **names;
    size_t count;
    clab_status status = clab_image_entries(image, &names, &count, error);
    if (status != CLAB_OK)
        return status;
    const char *chosen = image->kind == CLAB_IMAGE_FATBIN ? entry : NULL;
    for (size_t i = 0; i < count && chosen == NULL; i++)
        if (entry == NULL ? count == 1 : strcmp(names[i], entry) == 0)
            chosen = names[i];
    if (chosen == NULL) {
        struct clab_str list = {0};
        for (size_t i = 0; i < count && list.bytes < 600; i++)
            clab_str_addf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
        const char *dot = strrchr(file, '.');
        if (count == 0) {
            status = clab_error_set(error, CLAB_NOT_FOUND, "%s has no entry at all", file);
            if (entry == NULL && dot != NULL && strcmp(dot, ".cu") == 0)
                clab_error_remedy(
                    error, "a template becomes an entry once an instance of it is named: %s:ns::k<4>", file);
        } else if (entry == NULL) {
            status = clab_error_set(error, CLAB_NOT_FOUND, "%s has %zu entries; name one of: %s", file, count,
                                    list.text != NULL ? list.text : "");
        } else {
            status = clab_error_set(error, CLAB_NOT_FOUND, "%s has no entry '%s'; it has: %s", file, entry,
                                    list.text != NULL ? list.text : "");
        }
        clab_str_free(&list);
    } else {
        char *lowered = strdup(chosen), *asked = strdup(entry != NULL ? entry : chosen);
        if (lowered == NULL || asked == NULL) {
            free(lowered);
            free(asked);
            status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the name of the entry");
        } else {
            free(image->lowered);
            free(image->entry);
            image->lowered = lowered;
            image->entry = asked;
        }
    }
    clab_image_names_free(names, count);
    return status;
}

static bool copy_bytes(char **to, const char *from, size_t bytes)
{
    if (from == NULL)
        return true;
    *to = malloc(bytes + 1);
    if (*to == NULL)
        return false;
    memcpy(*to, from, bytes);
    (*to)[bytes] = '\0';
    return true;
}

static bool copy_text(char **to, const char *from)
{
    return copy_bytes(to, from, from != NULL ? strlen(from) : 0);
}

clab_status clab_image_copy(struct clab_image *to, const struct clab_image *from, struct clab_error *error)
{
    *to = *from;
    to->data = to->ptx = to->source_path = to->entry = to->lowered = to->log = NULL;
    if (copy_bytes(&to->data, from->data, from->bytes) && copy_bytes(&to->ptx, from->ptx, from->ptx_bytes) &&
        copy_text(&to->source_path, from->source_path) && copy_text(&to->entry, from->entry) &&
        copy_text(&to->lowered, from->lowered) && copy_text(&to->log, from->log))
        return CLAB_OK;
    clab_image_free(to);
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for a copy of the image");
}

void clab_image_free(struct clab_image *image)
{
    free(image->data);
    free(image->ptx);
    free(image->source_path);
    free(image->entry);
    free(image->lowered);
    free(image->log);
    memset(image, 0, sizeof *image);
}
