/* Helpers of the tests in this folder. */
#include "scratch.h"

#include <elf.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_LEAK_CHECK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_LEAK_CHECK 1
#endif
#endif
#ifdef WITH_LEAK_CHECK
/* NVIDIA's libraries keep memory until the process ends; ours is still checked. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libnvrtc\nleak:libnvJitLink\nleak:libnvptxcompiler\n";
}
#endif

static char folder[256];

const char *scratch_make(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/clab-test-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL)
        abort();
    return folder;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

void scratch_remove(void)
{
    if (folder[0] != '\0')
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

int scratch_tear_down(void **state)
{
    free(*state);
    scratch_remove();
    return 0;
}

struct clab_compiler *scratch_compiler(unsigned int workers, unsigned int timeout_ms)
{
    const struct clab_compiler_options options = {
        .cache_dir = scratch_path("cache"), .workers = workers, .timeout_ms = timeout_ms};
    struct clab_compiler *compiler = clab_compiler_new(&options);
    if (compiler == NULL)
        abort();
    return compiler;
}

const char *scratch_path(const char *name)
{
    static char paths[32][1024];
    static int next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *scratch_write(const char *name, const char *text)
{
    const char *path = scratch_path(name);
    char parent[1024];
    snprintf(parent, sizeof parent, "%s", path);
    for (char *at = parent + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        mkdir(parent, 0777);
    }
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
    return path;
}

char *fake_cubin(unsigned int chip, char suffix, const char *const *names, size_t count, size_t *out_bytes)
{
    enum { SECTIONS = 5 };
    static const char section_names[] = "\0.shstrtab\0.strtab\0.symtab\0.note.nv.tkinfo";
    char note[64];
    int note_bytes =
        snprintf(note, sizeof note, "ptxas V13.0.88 -arch sm_%u%c", chip, suffix != 0 ? suffix : ' ');
    char strings[1024] = "";
    size_t string_bytes = 1;
    Elf64_Sym symbols[16] = {{0}};
    for (size_t i = 0; i < count && i < 15; i++) {
        const char *name = names[i] + (names[i][0] == '-');
        symbols[i + 1] = (Elf64_Sym){.st_name = (Elf64_Word)string_bytes,
                                     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                     .st_other = names[i][0] == '-' ? 0 : 0x10,
                                     .st_shndx = 1};
        strcpy(strings + string_bytes, name);
        string_bytes += strlen(name) + 1;
    }
    const void *contents[SECTIONS] = {NULL, section_names, strings, symbols, note};
    size_t sizes[SECTIONS] = {0, sizeof section_names, string_bytes, (count + 1) * sizeof *symbols,
                              (size_t)note_bytes};
    static const Elf64_Word types[SECTIONS] = {SHT_NULL, SHT_STRTAB, SHT_STRTAB, SHT_SYMTAB, SHT_NOTE};
    static const Elf64_Word named[SECTIONS] = {0, 1, 11, 19, 27};
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8},
                         .e_machine = 190,
                         .e_flags = 0x06000002u | chip << 8,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = SECTIONS,
                         .e_shstrndx = 1};
    Elf64_Shdr sections[SECTIONS] = {{0}};
    size_t at = sizeof header;
    for (int i = 1; i < SECTIONS; i++) {
        sections[i] = (Elf64_Shdr){.sh_name = named[i],
                                   .sh_type = types[i],
                                   .sh_offset = at,
                                   .sh_size = sizes[i],
                                   .sh_link = i == 3 ? 2 : 0};
        at += (sizes[i] + 7) & ~(size_t)7;
    }
    header.e_shoff = at;
    *out_bytes = at + sizeof sections;
    char *data = calloc(1, *out_bytes);
    if (data == NULL)
        abort();
    memcpy(data, &header, sizeof header);
    for (int i = 1; i < SECTIONS; i++)
        memcpy(data + sections[i].sh_offset, contents[i], sizes[i]);
    memcpy(data + at, sections, sizeof sections);
    return data;
}

const struct clab_toolkit *toolkit_or_skip(enum clab_part_id part)
{
    static struct clab_toolkit toolkit;
    clab_toolkit_find(&toolkit);
    if (!toolkit.parts[part].found) {
        printf("skipped: no %s\n", toolkit.parts[part].name);
        exit(77);
    }
    return &toolkit;
}
