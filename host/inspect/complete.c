/* Undefined symbols of a cubin (complete.h). A cubin is an ELF64 file whose symbol table names, with section
   index 0, what is not in it; the driver supplies some of these when it loads the image, and does not say
   which. */
#include "inspect/complete.h"

#include <elf.h>
#include <string.h>

#define SYSCALL_PREFIX "__cuda_syscall_"

bool clab_name_is_poisoned(const char *name)
{
    return strncmp(name, "__cuda_ptx_", 11) == 0 && strstr(name, "_is_not_supported_before_SM_") != NULL;
}

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

static void add_name(struct clab_str *names, const char *name)
{
    clab_str_addf(names, "%s%s", names->text != NULL && names->text[0] != '\0' ? ", " : "", name);
}

enum clab_complete clab_cubin_complete(const struct clab_image *cubin, struct clab_str *out_names)
{
    enum clab_complete answer = CLAB_COMPLETE;
    struct clab_str driver = {0};
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
                add_name(out_names, name);
                answer = CLAB_INCOMPLETE;
            }
        }
    }
    if (answer == CLAB_COMPLETE_DRIVER)
        add_name(out_names, driver.text != NULL ? driver.text : "");
    clab_str_free(&driver);
    return answer;
}
