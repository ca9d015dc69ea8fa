/* Fatbins, object files and cubins: what is in them, and clear answers about those that are damaged. The
   fatbins are fatbinary's own (tests/api/data); object files and cubins are made here, section by section. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "base/str.h"
#include "inspect/container.h"
#include "inspect/inspect.h"

static const char *const fatbins[] = {"../api/data/plain.fatbin", "../api/data/lz4.fatbin",
                                      "../api/data/zstd.fatbin"};

static char *read_all(const char *path, size_t *out_bytes)
{
    char *data = clab_file_read(path, 1 << 24, out_bytes);
    if (data == NULL)
        fail_msg("%s is missing", path);
    return data;
}

static void fatbins_are_unpacked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fatbins / sizeof *fatbins; i++) {
        size_t bytes, count;
        char *data = read_all(fatbins[i], &bytes);
        struct clab_image *images;
        struct clab_error error = {0};
        assert_true(clab_container_is(data, bytes));
        assert_int_equal(clab_container_read(fatbins[i], data, bytes, &images, &count, &error), CLAB_OK);
        assert_true(count >= 1);
        bool ptx = false;
        for (size_t k = 0; k < count; k++)
            ptx = ptx || (images[k].kind == CLAB_IMAGE_PTX && strstr(images[k].data, ".entry") != NULL);
        assert_true(ptx);
        clab_container_free(images, count);
        /* Cut anywhere, it is damaged, and nothing is read behind its end. */
        for (size_t cut = 4; cut < bytes; cut += 37) {
            char *part = malloc(cut);
            assert_non_null(part);
            memcpy(part, data, cut);
            assert_int_equal(clab_container_read("cut", part, cut, &images, &count, &error), CLAB_LOAD);
            assert_non_null(strstr(error.message, "cut: damaged fatbin"));
            free(part);
        }
        clab_error_clear(&error);
        free(data);
    }
}

/* --- ELF files */

struct section {
    const char *name;
    uint32_t type;
    const void *data;
    size_t bytes;
};

/* An ELF file of the given sections behind the empty one; section names come last. Links of a symbol table go
   to the section behind it. */
static char *make_elf(uint16_t machine, uint16_t type, const struct section *sections, size_t count,
                      size_t *out_bytes)
{
    struct clab_str names = {0}, file = {0};
    Elf64_Ehdr header = {.e_type = type, .e_machine = machine, .e_shentsize = sizeof(Elf64_Shdr)};
    Elf64_Shdr table[16] = {{0}};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_ABIVERSION] = 8;
    header.e_flags = 90u << 8;
    header.e_shnum = (uint16_t)(count + 2);
    header.e_shstrndx = (uint16_t)(count + 1);
    header.e_shoff = sizeof header;
    size_t at = sizeof header + header.e_shnum * sizeof(Elf64_Shdr);
    clab_str_add_bytes(&names, "\0", 1);
    for (size_t i = 0; i <= count; i++) {
        const struct section *section = i < count ? &sections[i] : NULL;
        Elf64_Shdr *to = &table[i + 1];
        to->sh_name = (uint32_t)names.bytes;
        clab_str_add_bytes(&names, section != NULL ? section->name : ".shstrtab",
                           strlen(section != NULL ? section->name : ".shstrtab") + 1);
        to->sh_type = section != NULL ? section->type : SHT_STRTAB;
        to->sh_offset = at;
        to->sh_size = section != NULL ? section->bytes : names.bytes;
        to->sh_link = (uint32_t)i + 2;
        at += to->sh_type != SHT_NOBITS ? to->sh_size : 0;
    }
    clab_str_add_bytes(&file, (const char *)&header, sizeof header);
    clab_str_add_bytes(&file, (const char *)table, header.e_shnum * sizeof *table);
    for (size_t i = 0; i < count; i++)
        if (sections[i].type != SHT_NOBITS)
            clab_str_add_bytes(&file, sections[i].data, sections[i].bytes);
    clab_str_add_bytes(&file, names.text, names.bytes);
    *out_bytes = file.bytes;
    clab_str_free(&names);
    return clab_str_take(&file);
}

static void an_object_file_holds_fatbins(void **state)
{
    (void)state;
    size_t bytes, fatbin_bytes, count;
    char *fatbin = read_all(fatbins[0], &fatbin_bytes);
    struct clab_image *images;
    struct clab_error error = {0};
    const struct section with[] = {{".text", SHT_PROGBITS, "code", 4},
                                   {".nv_fatbin", SHT_PROGBITS, fatbin, fatbin_bytes}};
    char *file = make_elf(EM_X86_64, ET_REL, with, 2, &bytes);
    assert_true(clab_container_is(file, bytes));
    assert_int_equal(clab_container_read("a.o", file, bytes, &images, &count, &error), CLAB_OK);
    assert_true(count >= 1);
    clab_container_free(images, count);
    free(file);

    file = make_elf(EM_X86_64, ET_REL, with, 1, &bytes); /* no device code */
    assert_int_equal(clab_container_read("b.o", file, bytes, &images, &count, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "b.o holds no device code"));
    for (size_t cut = sizeof(Elf64_Ehdr); cut < bytes; cut++) {
        char *part = malloc(cut);
        assert_non_null(part);
        memcpy(part, file, cut);
        assert_int_equal(clab_container_read("cut.o", part, cut, &images, &count, &error), CLAB_LOAD);
        free(part);
    }
    free(file);
    free(fatbin);
    clab_error_clear(&error);
}

/* --- cubins */

static const unsigned char info[] = {
    0x04, 0x2f, 8, 0, 1, 0, 0, 0, 18, 0, 0, 0, /* REGCOUNT of symbol 1 */
    0x04, 0x2f, 8, 0, 7, 0, 0, 0, 99, 0, 0, 0, /* of another */
    0x04, 0x12, 8, 0, 1, 0, 0, 0, 32, 0, 0, 0, /* MIN_STACK_SIZE */
};
static const unsigned char info_k[] = {
    0x02, 0x4c, 4,  0,                                       /* NUM_BARRIERS */
    0x04, 0x10, 12, 0, 128, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, /* REQNTID */
    0x04, 0x3d, 12, 0, 2,   0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, /* CTA_PER_CLUSTER */
    0x01, 0x3e, 0,  0,                                       /* EXPLICIT_CLUSTER */
    0x04, 0x3f, 4,  0, 8,   0, 0, 0,                         /* MAX_CLUSTER_RANK */
    0x03, 0x19, 24, 0,                                       /* CBANK_PARAM_SIZE */
};

static void image_of(const char *file, size_t bytes, struct clab_image *image)
{
    assert_int_equal(clab_image_from_bytes("k.cubin", file, bytes, image, NULL), CLAB_OK);
}

static void a_cubin_says_what_it_needs(void **state)
{
    (void)state;
    Elf64_Sym symbols[2] = {
        {0}, {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10, .st_shndx = 1}};
    const struct section sections[] = {{".text.k", SHT_PROGBITS, "code", 4},
                                       {".symtab", SHT_SYMTAB, symbols, sizeof symbols},
                                       {".strtab", SHT_STRTAB, "\0k", 3},
                                       {".nv.info", 0x70000000, info, sizeof info},
                                       {".nv.info.k", 0x70000000, info_k, sizeof info_k},
                                       {".nv.shared.k", SHT_NOBITS, NULL, 1024 + 512},
                                       {".nv.shared.reserved.0", SHT_NOBITS, NULL, 64}};
    struct clab_resources r;
    struct clab_image image;
    struct clab_error error = {0};
    size_t bytes;
    char *file = make_elf(190, ET_EXEC, sections, 7, &bytes);
    image_of(file, bytes, &image);
    assert_string_equal(image.arch, "sm_90");
    clab_resources_init(&r);
    assert_int_equal(clab_resources_of_cubin(&image, "k", &r, &error), CLAB_OK);
    assert_int_equal(r.registers, 18);
    assert_int_equal(r.stack_bytes, 32);
    assert_int_equal(r.static_smem_bytes, 512);
    assert_int_equal(r.barriers, 4);
    assert_int_equal(r.param_bytes, 24);
    assert_int_equal(r.block[0], 128);
    assert_int_equal(r.cluster[1], 2);
    assert_true(r.explicit_cluster);
    assert_int_equal(r.max_cluster_rank, 8);
    assert_int_equal(r.spill_store_bytes, CLAB_UNKNOWN); /* only the assembler says */
    clab_image_free(&image);
    free(file);

    /* Not linked: the system's 1024 bytes are not in it yet. */
    file = make_elf(190, ET_REL, sections, 7, &bytes);
    image_of(file, bytes, &image);
    clab_resources_init(&r);
    assert_int_equal(clab_resources_of_cubin(&image, "k", &r, &error), CLAB_OK);
    assert_int_equal(r.static_smem_bytes, 1024 + 512);
    clab_image_free(&image);
    free(file);
    clab_error_clear(&error);
}

static void a_stripped_cubin_is_read_by_its_sections(void **state)
{
    (void)state;
    const struct section sections[] = {{".text.k", SHT_PROGBITS, "code", 4},
                                       {".nv.info.k", 0x70000000, info_k, sizeof info_k}};
    struct clab_resources r;
    struct clab_image image;
    char **names;
    size_t bytes, count;
    char *file = make_elf(190, ET_EXEC, sections, 2, &bytes);
    image_of(file, bytes, &image);
    assert_int_equal(clab_cubin_sections(&image, &names, &count, NULL), CLAB_OK);
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "k");
    clab_image_names_free(names, count);
    clab_resources_init(&r);
    assert_int_equal(clab_resources_of_cubin(&image, "k", &r, NULL), CLAB_OK);
    assert_int_equal(r.registers, CLAB_UNKNOWN);
    assert_int_equal(r.barriers, 4);
    clab_image_free(&image);
    free(file);
}

static void damaged_attributes_are_refused(void **state)
{
    (void)state;
    for (size_t cut = 1; cut <= sizeof info_k; cut++) {
        const struct section sections[] = {{".nv.info.k", 0x70000000, info_k, cut}};
        struct clab_resources r;
        struct clab_image image;
        struct clab_error error = {0};
        size_t bytes;
        char *file = make_elf(190, ET_EXEC, sections, 1, &bytes);
        image_of(file, bytes, &image);
        clab_resources_init(&r);
        const clab_status status = clab_resources_of_cubin(&image, "k", &r, &error);
        assert_true(status == CLAB_OK || status == CLAB_LOAD);
        if (cut == 12) /* in the middle of REQNTID */
            assert_int_equal(status, CLAB_LOAD);
        clab_image_free(&image);
        free(file);
        clab_error_clear(&error);
    }
}

/* --- names */

static void a_file_and_its_entry_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *file, *entry;
    } cases[] = {{"a.cu", "a.cu", NULL},
                 {"a.cu:k", "a.cu", "k"},
                 {"a.cu:ns::k<4>", "a.cu", "ns::k<4>"},
                 {"d:1/a.ptx:k", "d:1/a.ptx", "k"},
                 {"x.cu/b.cubin:k", "x.cu/b.cubin", "k"},
                 {"lib.so:k", "lib.so", "k"},
                 {"a.o", "a.o", NULL},
                 {"nothing", "nothing", NULL},
                 {"CMakeLists.txt:k", "CMakeLists.txt", "k"}};
    char *file, *entry;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(clab_inspect_split(cases[i].text, &file, &entry, NULL), CLAB_OK);
        assert_string_equal(file, cases[i].file);
        if (cases[i].entry != NULL)
            assert_string_equal(entry, cases[i].entry);
        else
            assert_null(entry);
        free(file);
        free(entry);
    }
    assert_int_equal(clab_inspect_split("a.cu:", &file, &entry, NULL), CLAB_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fatbins_are_unpacked),
        cmocka_unit_test(an_object_file_holds_fatbins),
        cmocka_unit_test(a_cubin_says_what_it_needs),
        cmocka_unit_test(a_stripped_cubin_is_read_by_its_sections),
        cmocka_unit_test(damaged_attributes_are_refused),
        cmocka_unit_test(a_file_and_its_entry_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
