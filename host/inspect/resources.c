/* Resources of a kernel. What a cubin says stands in attribute lists, sections .nv.info (by symbol) and
   .nv.info.NAME. Their format is not documented; it was read off what ptxas 13.0.88 wrote, with the names
   that nvdisasm gives them: one byte of format (1 no value, 2 one byte, 3 two bytes, 4 a size and that many
   bytes), one of attribute, two of value or size. Shared memory is the size of .nv.shared.NAME, of which the
   first 1024 bytes are the system's in a linked cubin that reserves them (sm_90 and later; section
   .nv.shared.reserved.0 or symbol .nv.reservedSmem.…; the first user byte lies at 0x400). */
#include "inspect/resources.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum attribute {
    ATTRIBUTE_MAX_THREADS = 0x05,
    ATTRIBUTE_REQNTID = 0x10,
    ATTRIBUTE_FRAME_SIZE = 0x11,
    ATTRIBUTE_MIN_STACK_SIZE = 0x12,
    ATTRIBUTE_CBANK_PARAM_SIZE = 0x19,
    ATTRIBUTE_MAXREG_COUNT = 0x1b,
    ATTRIBUTE_REGCOUNT = 0x2f,
    ATTRIBUTE_CTA_PER_CLUSTER = 0x3d,
    ATTRIBUTE_EXPLICIT_CLUSTER = 0x3e,
    ATTRIBUTE_MAX_CLUSTER_RANK = 0x3f,
    ATTRIBUTE_NUM_BARRIERS = 0x4c,
    ATTRIBUTE_BLOCKS_ARE_CLUSTERS = 0x5b,
};
#define RESERVED_BYTES 1024

struct elf {
    const char *data;
    size_t bytes;
    Elf64_Ehdr header;
};

static bool section_at(const struct elf *elf, size_t index, Elf64_Shdr *out)
{
    if (index >= elf->header.e_shnum)
        return false;
    memcpy(out, elf->data + elf->header.e_shoff + index * sizeof *out, sizeof *out);
    return true;
}

static const char *section_name(const struct elf *elf, const Elf64_Shdr *section)
{
    Elf64_Shdr names;
    if (!section_at(elf, elf->header.e_shstrndx, &names) || names.sh_type != SHT_STRTAB ||
        section->sh_name >= names.sh_size ||
        memchr(elf->data + names.sh_offset + section->sh_name, '\0', names.sh_size - section->sh_name) ==
            NULL)
        return "";
    return elf->data + names.sh_offset + section->sh_name;
}

/* The image's own reader has checked that every section lies inside the file. */
static bool open_elf(const struct clab_image *image, struct elf *out)
{
    if (image->kind != CLAB_IMAGE_CUBIN || image->bytes < sizeof out->header)
        return false;
    out->data = image->data;
    out->bytes = image->bytes;
    memcpy(&out->header, image->data, sizeof out->header);
    return out->header.e_shentsize == sizeof(Elf64_Shdr) && out->header.e_shoff <= image->bytes &&
           (image->bytes - out->header.e_shoff) / sizeof(Elf64_Shdr) >= out->header.e_shnum;
}

static uint32_t word_at(const char *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return value;
}

static void take(struct clab_resources *out, unsigned attribute, uint32_t value, const char *data,
                 size_t bytes)
{
    switch (attribute) {
    case ATTRIBUTE_MAX_THREADS:
        if (bytes >= 12) {
            const uint64_t threads = (uint64_t)word_at(data) * word_at(data + 4) * word_at(data + 8);
            out->max_threads = threads <= 1024 ? (int)threads : 1024;
        }
        break;
    case ATTRIBUTE_REQNTID:
    case ATTRIBUTE_CTA_PER_CLUSTER:
        for (unsigned i = 0; i < 3 && bytes >= 12; i++)
            (attribute == ATTRIBUTE_REQNTID ? out->block : out->cluster)[i] = word_at(data + 4 * i);
        break;
    case ATTRIBUTE_CBANK_PARAM_SIZE:
        out->param_bytes = (int)(value & 0xffff);
        break;
    case ATTRIBUTE_NUM_BARRIERS:
        out->barriers = (int)(value & 0xff);
        break;
    case ATTRIBUTE_EXPLICIT_CLUSTER:
        out->explicit_cluster = true;
        break;
    case ATTRIBUTE_BLOCKS_ARE_CLUSTERS:
        out->blocks_are_clusters = true;
        break;
    case ATTRIBUTE_MAX_CLUSTER_RANK:
        if (bytes >= 4)
            out->max_cluster_rank = (int)word_at(data);
        break;
    default:
        break;
    }
}

/* One attribute list. symbol 0: the kernel's own; otherwise attributes (symbol, value) of that symbol only.
 */
static bool read_attributes(const char *data, size_t bytes, uint32_t symbol, struct clab_resources *out)
{
    for (size_t at = 0; at + 4 <= bytes;) {
        const unsigned format = (unsigned char)data[at], attribute = (unsigned char)data[at + 1];
        const uint32_t value = (uint32_t)(unsigned char)data[at + 2] | (uint32_t)(unsigned char)data[at + 3]
                                                                           << 8;
        const size_t payload = format == 4 ? value : 0;
        if (format < 1 || format > 4 || payload > bytes - at - 4)
            return false;
        const char *start = data + at + 4;
        if (symbol == 0) {
            take(out, attribute, value, start, payload);
        } else if (payload >= 8 && word_at(start) == symbol) {
            const int number = (int)word_at(start + 4);
            if (attribute == ATTRIBUTE_REGCOUNT)
                out->registers = number;
            else if (attribute == ATTRIBUTE_FRAME_SIZE && out->stack_bytes == CLAB_UNKNOWN)
                out->stack_bytes = number;
            else if (attribute == ATTRIBUTE_MIN_STACK_SIZE)
                out->stack_bytes = number;
        }
        at += 4 + (payload + 3) / 4 * 4;
    }
    return true;
}

/* Index of the function symbol `entry`, 0 when there is none (or no symbols at all); whether system shared
   memory is among the symbols. */
static uint32_t symbol_of(const struct elf *elf, const char *entry, bool *out_reserves)
{
    static const char reserves[] = ".nv.reservedSmem";
    uint32_t found = 0;
    Elf64_Shdr section, names;
    for (size_t i = 0; section_at(elf, i, &section); i++) {
        if (section.sh_type != SHT_SYMTAB || !section_at(elf, section.sh_link, &names) ||
            names.sh_type != SHT_STRTAB)
            continue;
        for (size_t s = 0; (s + 1) * sizeof(Elf64_Sym) <= section.sh_size; s++) {
            Elf64_Sym symbol;
            memcpy(&symbol, elf->data + section.sh_offset + s * sizeof symbol, sizeof symbol);
            if (symbol.st_name >= names.sh_size)
                continue;
            const char *name = elf->data + names.sh_offset + symbol.st_name;
            const size_t room = names.sh_size - symbol.st_name;
            if (room >= sizeof reserves && memcmp(name, reserves, sizeof reserves - 1) == 0)
                *out_reserves = true;
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && found == 0 && strncmp(name, entry, room) == 0)
                found = (uint32_t)s;
        }
    }
    return found;
}

void clab_resources_init(struct clab_resources *resources)
{
    memset(resources, 0, sizeof *resources);
    resources->registers = resources->registers_model = resources->static_smem_bytes = CLAB_UNKNOWN;
    resources->stack_bytes = resources->spill_store_bytes = resources->spill_load_bytes = CLAB_UNKNOWN;
    resources->barriers = resources->param_bytes = resources->max_threads = CLAB_UNKNOWN;
    resources->max_registers = resources->min_ctas_per_sm = resources->max_cluster_rank = CLAB_UNKNOWN;
}

clab_status clab_resources_of_cubin(const struct clab_image *cubin, const char *entry,
                                    struct clab_resources *out, struct clab_error *error)
{
    struct elf elf;
    if (!open_elf(cubin, &elf))
        return clab_error_set(error, CLAB_LOAD, "%s is no cubin",
                              cubin->source_path != NULL ? cubin->source_path : "the image");
    char info[1100], shared[1100];
    snprintf(info, sizeof info, ".nv.info.%s", entry);
    snprintf(shared, sizeof shared, ".nv.shared.%s", entry);
    bool reserves = false;
    const uint32_t symbol = symbol_of(&elf, entry, &reserves);
    Elf64_Shdr section;
    out->static_smem_bytes = 0;
    out->barriers = 0; /* the attribute is absent then */
    for (size_t i = 0; section_at(&elf, i, &section); i++) {
        const char *name = section_name(&elf, &section), *data = elf.data + section.sh_offset;
        reserves = reserves || strcmp(name, ".nv.shared.reserved.0") == 0;
        bool good = true;
        if (strcmp(name, ".nv.info") == 0 && symbol != 0 && section.sh_type != SHT_NOBITS)
            good = read_attributes(data, section.sh_size, symbol, out);
        else if (strcmp(name, info) == 0 && section.sh_type != SHT_NOBITS)
            good = read_attributes(data, section.sh_size, 0, out);
        else if (strcmp(name, shared) == 0)
            out->static_smem_bytes = (int)section.sh_size;
        if (!good)
            return clab_error_set(error, CLAB_LOAD, "%s: section %s is damaged",
                                  cubin->source_path != NULL ? cubin->source_path : "the cubin", name);
    }
    if (reserves && elf.header.e_type == ET_EXEC && out->static_smem_bytes >= RESERVED_BYTES)
        out->static_smem_bytes -= RESERVED_BYTES;
    if (cubin->resources.known) {
        out->spill_store_bytes = cubin->resources.spill_store_bytes;
        out->spill_load_bytes = cubin->resources.spill_load_bytes;
    }
    return CLAB_OK;
}

clab_status clab_cubin_sections(const struct clab_image *cubin, char ***out_names, size_t *out_count,
                                struct clab_error *error)
{
    struct elf elf;
    Elf64_Shdr section;
    *out_names = NULL;
    *out_count = 0;
    if (!open_elf(cubin, &elf))
        return CLAB_OK;
    for (size_t i = 0; section_at(&elf, i, &section); i++) {
        const char *name = section_name(&elf, &section);
        if (strncmp(name, ".nv.info.", 9) != 0)
            continue;
        char **grown = realloc(*out_names, (*out_count + 1) * sizeof *grown);
        if (grown != NULL) {
            *out_names = grown;
            grown[*out_count] = strdup(name + 9);
        }
        if (grown == NULL || grown[(*out_count)++] == NULL) {
            clab_image_names_free(*out_names, *out_count);
            *out_names = NULL;
            *out_count = 0;
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the names of the entries");
        }
    }
    return CLAB_OK;
}

/* Shared variables of the entry and of the module that its body names. */
static uint64_t shared_bytes(const struct ptx_module *module, const struct ptx_function *entry,
                             bool *out_dynamic)
{
    uint64_t bytes = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        struct ptx_var *const *vars = pass == 0 ? entry->vars : module->vars;
        const uint32_t n = pass == 0 ? entry->n_vars : module->n_vars;
        for (uint32_t i = 0; i < n; i++) {
            bool named = pass == 0;
            for (uint32_t k = 0; k < entry->n_insns && !named && vars[i]->space == PTX_SPACE_SHARED; k++)
                for (uint32_t o = 0; o < entry->insns[k].n_operands && !named; o++) {
                    const struct ptx_operand *operand = &entry->insns[k].operands[o];
                    named = operand->var == vars[i] ||
                            (operand->n_elements > 0 && operand->elements[0].var == vars[i]);
                }
            if (vars[i]->space != PTX_SPACE_SHARED || !named)
                continue;
            const uint64_t align = vars[i]->align_bytes > 0 ? vars[i]->align_bytes : 1;
            if (vars[i]->is_unsized)
                *out_dynamic = true;
            else
                bytes = (bytes + align - 1) / align * align + vars[i]->bytes;
        }
    }
    return bytes;
}

clab_status clab_resources_of_ptx(const struct ptx_module *module, const struct ptx_function *entry,
                                  struct clab_resources *out, struct clab_error *error)
{
    const struct ptx_directives *d = &entry->directives;
    struct clab_arena arena = {0};
    struct ptx_cfg cfg;
    uint32_t registers = 0;
    clab_status status = CLAB_OK;
    if (entry->defined && entry->error == NULL) {
        status = ptx_cfg_build(entry, &arena, &cfg, error);
        if (status == CLAB_OK)
            status = ptx_live_estimate(entry, &cfg, &arena, &registers, error);
        clab_arena_free(&arena);
        if (status != CLAB_OK)
            return status;
        out->registers_model = (int)registers;
        const uint64_t bytes = shared_bytes(module, entry, &out->uses_dynamic_smem);
        if (out->static_smem_bytes == CLAB_UNKNOWN)
            out->static_smem_bytes = bytes <= INT32_MAX ? (int)bytes : CLAB_UNKNOWN;
    }
    for (unsigned i = 0; i < 3; i++) {
        if (d->has_reqntid)
            out->block[i] = d->reqntid[i] > 0 ? d->reqntid[i] : 1;
        if (d->has_reqnctapercluster)
            out->cluster[i] = d->reqnctapercluster[i] > 0 ? d->reqnctapercluster[i] : 1;
    }
    if (d->has_maxntid) {
        uint64_t threads = 1;
        for (unsigned i = 0; i < 3; i++)
            threads *= d->maxntid[i] > 0 && d->maxntid[i] <= 1024 ? d->maxntid[i] : 1;
        out->max_threads = threads <= 1024 ? (int)threads : 1024;
    }
    if (d->minnctapersm > 0)
        out->min_ctas_per_sm = (int)d->minnctapersm;
    if (d->maxnreg > 0)
        out->max_registers = (int)d->maxnreg;
    if (d->maxclusterrank > 0)
        out->max_cluster_rank = (int)d->maxclusterrank;
    out->explicit_cluster = out->explicit_cluster || d->explicitcluster;
    out->blocks_are_clusters = out->blocks_are_clusters || d->blocksareclusters;
    return CLAB_OK;
}

static struct clab_resource_row *add(struct clab_resource_row *rows, size_t *n, const char *name,
                                     const char *key, int value, const char *unit)
{
    rows[*n] = (struct clab_resource_row){.name = name, .key = key, .value = value, .unit = unit};
    return &rows[(*n)++];
}

static void put_shape(struct clab_resource_row *row, const uint32_t shape[3])
{
    if (shape[0] != 0)
        snprintf(row->text, sizeof row->text, "%u x %u x %u", (unsigned)shape[0], (unsigned)shape[1],
                 (unsigned)shape[2]);
}

size_t clab_resource_rows(const struct clab_resources *r, struct clab_resource_row rows[CLAB_RESOURCE_ROWS])
{
    size_t n = 0;
    add(rows, &n, "registers", "registers", r->registers, "");
    add(rows, &n, "registers, modelled", "registers_modelled", r->registers_model, "");
    add(rows, &n, "shared memory, static", "static_smem_bytes", r->static_smem_bytes, "bytes");
    add(rows, &n, "stack", "stack_bytes", r->stack_bytes, "bytes");
    add(rows, &n, "spilled, stores", "spill_store_bytes", r->spill_store_bytes, "bytes");
    add(rows, &n, "spilled, loads", "spill_load_bytes", r->spill_load_bytes, "bytes");
    add(rows, &n, "barriers", "barriers", r->barriers, "");
    add(rows, &n, "parameters", "param_bytes", r->param_bytes, "bytes");
    add(rows, &n, "threads, at most", "max_threads", r->max_threads, "");
    add(rows, &n, "registers, at most", "max_registers", r->max_registers, "");
    add(rows, &n, "CTAs per SM, at least", "min_ctas_per_sm", r->min_ctas_per_sm, "");
    put_shape(add(rows, &n, "block, required", "block", CLAB_UNKNOWN, ""), r->block);
    put_shape(add(rows, &n, "cluster, required", "cluster", CLAB_UNKNOWN, ""), r->cluster);
    add(rows, &n, "CTAs per cluster, at most", "max_cluster_rank", r->max_cluster_rank, "");
    struct clab_resource_row *row = add(rows, &n, "cluster launch", "cluster_launch", CLAB_UNKNOWN, "");
    snprintf(row->text, sizeof row->text, "%s",
             r->blocks_are_clusters ? "the grid counts clusters (.blocksareclusters)"
             : r->explicit_cluster  ? "must name a cluster (.explicitcluster)"
                                    : "");
    row = add(rows, &n, "shared memory, dynamic", "dynamic_smem", CLAB_UNKNOWN, "");
    snprintf(row->text, sizeof row->text, "%s", r->uses_dynamic_smem ? "used" : "");
    return n;
}

json_t *clab_resources_json(const struct clab_resources *resources)
{
    struct clab_resource_row rows[CLAB_RESOURCE_ROWS];
    const size_t n = clab_resource_rows(resources, rows);
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(object, rows[i].key,
                            rows[i].value != CLAB_UNKNOWN ? json_integer(rows[i].value)
                            : rows[i].text[0] != '\0'     ? json_string(rows[i].text)
                                                          : json_null());
    return object;
}
