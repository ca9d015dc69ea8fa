/* Undefined symbols of a cubin (complete.h). A cubin is an ELF64 file whose symbol table names, with section
   index 0, what is not in it; the driver supplies some of these when it loads the image, and does not say
   which. */
#include "inspect/complete.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define SYSCALL_PREFIX "__cuda_syscall_"

/* Names that begin with .nv. mark what the assembler reserves (.nv.reservedSmem.offset0) and are in every
 * cubin. */
static bool every_driver_has(const char *name)
{
    static const char *const known[] = {"vprintf", "malloc", "free", "__assertfail"};
    if (strncmp(name, ".nv.", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

/* The bytes of section `index`, NULL when the file does not hold them. */
static const char *section(const struct clab_image *cubin, const Elf64_Ehdr *elf, size_t index,
                           Elf64_Shdr *out)
{
    if (index >= elf->e_shnum || elf->e_shentsize != sizeof *out || elf->e_shoff > cubin->bytes ||
        (cubin->bytes - elf->e_shoff) / sizeof *out < elf->e_shnum)
        return NULL;
    memcpy(out, cubin->data + elf->e_shoff + index * sizeof *out, sizeof *out);
    return out->sh_offset <= cubin->bytes && out->sh_size <= cubin->bytes - out->sh_offset
               ? cubin->data + out->sh_offset
               : NULL;
}

/* Names of symbols, pointing into the cubin. */
struct names {
    const char **list;
    size_t count;
    bool failed;
};

static void add_name(struct names *names, const char *name)
{
    const char **list = realloc(names->list, (names->count + 1) * sizeof *list);
    names->failed = names->failed || list == NULL;
    if (list == NULL)
        return;
    names->list = list;
    list[names->count++] = name;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In order, so that two cubins with the same names say the same. Frees the list. */
static void put_names(struct names *names, struct clab_str *out)
{
    if (names->count > 0)
        qsort(names->list, names->count, sizeof *names->list, by_text);
    for (size_t i = 0; i < names->count; i++)
        clab_str_addf(out, "%s%s", i > 0 ? ", " : "", names->list[i]);
    out->failed = out->failed || names->failed;
    free(names->list);
    *names = (struct names){0};
}

enum clab_complete clab_cubin_complete(const struct clab_image *cubin, struct clab_str *out_names)
{
    enum clab_complete answer = CLAB_COMPLETE;
    struct names driver = {0}, unknown = {0};
    Elf64_Ehdr elf;
    if (cubin->bytes < sizeof elf)
        return CLAB_COMPLETE;
    memcpy(&elf, cubin->data, sizeof elf);
    for (size_t i = 0; i < elf.e_shnum; i++) {
        Elf64_Shdr table, strings;
        const char *symbols = section(cubin, &elf, i, &table);
        if (symbols == NULL || table.sh_type != SHT_SYMTAB)
            continue;
        const char *text = section(cubin, &elf, table.sh_link, &strings);
        if (text == NULL || strings.sh_size == 0 || text[strings.sh_size - 1] != '\0')
            continue;
        for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, symbols + at, sizeof symbol);
            if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0 || symbol.st_name >= strings.sh_size)
                continue;
            const char *name = text + symbol.st_name;
            if (every_driver_has(name))
                continue;
            if (strncmp(name, SYSCALL_PREFIX, sizeof SYSCALL_PREFIX - 1) == 0) {
                add_name(&driver, name);
                answer = answer == CLAB_COMPLETE ? CLAB_COMPLETE_DRIVER : answer;
            } else {
                add_name(&unknown, name);
                answer = CLAB_INCOMPLETE;
            }
        }
    }
    put_names(answer == CLAB_COMPLETE_DRIVER ? &driver : &unknown, out_names);
    free(driver.list);
    free(unknown.list);
    return answer;
}
