/* Runs forms (forms.h) on a device through the driver API: records their outputs, or compares them with a
   record.

   usage: conform [--libcuda FILE] [--only TEXT] [--later] [--inputs N] [--record FILE] [--raw FILE] [--check
   FILE]
   [--except FILE] [--dump] FORMS…

   or:    conform --ptx TARGET FORMS     prints the PTX of a file's forms

   --part I/N: the I-th of N parts of each file, from 0, for several processes at once.
   --only: forms that contain TEXT; --later: forms that need sm_100 or later.
   --record writes one line per form: `form | hash of the outputs` (of a long form `=hash of its text`), or
   `form | error x of bound y` for an approximate form, or `form | refused` when the driver does not take it.
   --check reads such files (any number) and reports every line that differs. A form that fails to run, and an
   approximate one beyond its bound, are reported always. --except names a file of `form | why` whose lines
   are known to differ: they must, so that the file does not outlive its reasons. --raw writes the outputs
   themselves, 4 or 8 bytes per result, for finding out what differs; --dump prints inputs and outputs. A
   kernel that fails takes the context with it: conform stops there, and --from N goes on after the first N
   forms, adding to the record. Exit status: 0 nothing to report, 1 something, 2 usage, 3 no device, 4
   stopped. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "forms.h"

#define BATCH 64

static struct {
    CUresult (*init)(unsigned);
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*device_name)(char *, int, CUdevice);
    CUresult (*device_attribute)(int *, CUdevice_attribute, CUdevice);
    CUresult (*driver_version)(int *);
    CUresult (*primary_retain)(CUcontext *, CUdevice);
    CUresult (*set_current)(CUcontext);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*to_device)(CUdeviceptr, const void *, size_t);
    CUresult (*from_device)(void *, CUdeviceptr, size_t);
    CUresult (*set_8)(CUdeviceptr, unsigned char, size_t);
    CUresult (*load)(CUmodule *, const void *, unsigned, CUjit_option *, void **);
    CUresult (*unload)(CUmodule);
    CUresult (*function)(CUfunction *, CUmodule, const char *);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       CUstream, void **, void **);
    CUresult (*synchronize)(void);
    CUresult (*encode_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                             CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                             CUtensorMapFloatOOBfill);
    CUresult (*encode_im2col)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                              const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    CUresult (*encode_wide)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, int, int, cuuint32_t, cuuint32_t, const cuuint32_t *,
                            CUtensorMapInterleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
} cu;

static bool load_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "conform: %s\n", dlerror());
        return false;
    }
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {{"cuInit", &cu.init},
                   {"cuDeviceGet", &cu.device_get},
                   {"cuDeviceGetName", &cu.device_name},
                   {"cuDeviceGetAttribute", &cu.device_attribute},
                   {"cuDriverGetVersion", &cu.driver_version},
                   {"cuDevicePrimaryCtxRetain", &cu.primary_retain},
                   {"cuCtxSetCurrent", &cu.set_current},
                   {"cuMemAlloc_v2", &cu.alloc},
                   {"cuMemcpyHtoD_v2", &cu.to_device},
                   {"cuMemcpyDtoH_v2", &cu.from_device},
                   {"cuMemsetD8_v2", &cu.set_8},
                   {"cuModuleLoadDataEx", &cu.load},
                   {"cuModuleUnload", &cu.unload},
                   {"cuModuleGetFunction", &cu.function},
                   {"cuLaunchKernel", &cu.launch},
                   {"cuCtxSynchronize", &cu.synchronize},
                   {"cuTensorMapEncodeTiled", &cu.encode_tiled},
                   {"cuTensorMapEncodeIm2col", &cu.encode_im2col},
                   {"cuTensorMapEncodeIm2colWide", &cu.encode_wide}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            fprintf(stderr, "conform: %s has no %s\n", path, symbols[i].name);
            return false;
        }
        memcpy(symbols[i].slot, &symbol, sizeof symbol);
    }
    return true;
}

/* Lines `text | value`, sorted by text once all are read. */
struct line {
    char *text, *value;
};
struct table {
    struct line *lines;
    size_t count;
};

struct run {
    size_t n; /* inputs a form */
    CUdeviceptr in, out, data;
    const struct tensor_map *maps; /* of the file */
    size_t n_maps;
    unsigned char *data_bytes;
    uint64_t (*inputs)[MAX_SOURCES];
    uint64_t (*outputs)[MAX_RESULTS];
    char target[16], version[8];
    FILE *record, *raw;
    bool dump, stopped;
    size_t done;                /* forms run, and those skipped */
    char key[1024], value[128]; /* of the form before */
    struct table expected, excepted;
    size_t checked, differing, known, refused, unknown;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static bool read_table(struct table *table, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return false;
    }
    char line[4096];
    while (fgets(line, sizeof line, file)) {
        char *bar = strstr(line, " | ");
        if (line[0] == '#' || !bar)
            continue;
        *bar = '\0';
        bar[3 + strcspn(bar + 3, "\n")] = '\0';
        struct line *more = realloc(table->lines, (table->count + 1) * sizeof *more);
        if (!more)
            abort();
        table->lines = more;
        table->lines[table->count++] = (struct line){strdup(line), strdup(bar + 3)};
    }
    fclose(file);
    if (table->count)
        qsort(table->lines, table->count, sizeof *table->lines, by_text);
    return true;
}

/* What a record calls a form: its text, of a long one a hash, so that records stay small. */
static const char *name_of(const char *text, char out_hash[24])
{
    if (strlen(text) <= 64)
        return text;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    snprintf(out_hash, 24, "=%016llx", (unsigned long long)hash);
    return out_hash;
}

static const char *find(const struct table *table, const char *text)
{
    char hash[24];
    const char *names[] = {text, name_of(text, hash)};
    for (unsigned i = 0; i < 2 && table->count; i++) {
        const struct line key = {(char *)(uintptr_t)names[i], NULL};
        const struct line *line = bsearch(&key, table->lines, table->count, sizeof key, by_text);
        if (line)
            return line->value;
    }
    return NULL;
}

static void free_table(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->lines[i].text);
        free(table->lines[i].value);
    }
    free(table->lines);
}

/* Writes the line of a form, and compares it. An approximate form may differ in its error, within the bound.
 */
static void conclude(struct run *run, const struct form *form, const char *value)
{
    char hash[24];
    const bool repeats = strcmp(form->key, run->key) == 0; /* another alternative of the line before */
    if (run->record && !(repeats && strcmp(value, run->value) == 0))
        fprintf(run->record, "%s | %s\n", name_of(repeats ? form->text : form->key, hash), value);
    if (repeats && strcmp(value, run->value) != 0) {
        run->differing++;
        printf("%s: %s, an alternative before it %s\n", form->text, value, run->value);
    }
    if (!repeats) {
        snprintf(run->key, sizeof run->key, "%s", form->key);
        snprintf(run->value, sizeof run->value, "%s", value);
    }
    if (strncmp(value, "failed", 6) == 0 || strstr(value, "EXCEEDED")) {
        run->differing++;
        printf("%s: %s\n", form->text, value);
        return;
    }
    if (!run->expected.count)
        return;
    const char *expected = find(&run->expected, form->key);
    if (!expected) {
        run->unknown++;
        return;
    }
    run->checked++;
    const bool bounded = strncmp(value, "error", 5) == 0 && strncmp(expected, "error", 5) == 0;
    const bool same = bounded || strcmp(value, expected) == 0;
    const char *why = find(&run->excepted, form->key);
    if (why && !same) {
        run->known++;
    } else if (why) {
        run->differing++;
        printf("%s: no longer differs, in spite of: %s\n", form->text, why);
    } else if (!same) {
        run->differing++;
        printf("%s: %s, recorded %s\n", form->text, value, expected);
    }
}

static bool uses_data(const struct form *form)
{
    return form->map[0] || strstr(form->body, "%data") || strstr(form->body, "%wdata");
}

/* The same bytes before every form. */
static void fill_data(unsigned char *bytes)
{
    uint64_t state = 1;
    for (size_t i = 0; i < DATA_BYTES; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (unsigned char)(state >> 56);
    }
}

/* The form's tensor map, over %data from 8192 on. */
static CUresult encode_map(const struct run *run, const struct form *form, CUtensorMap *out)
{
    for (size_t i = 0; i < run->n_maps; i++) {
        const struct tensor_map *map = &run->maps[i];
        if (strcmp(map->name, form->map) != 0)
            continue;
        void *address = (void *)(uintptr_t)(run->data + 8192); /* a device address */
        if (map->wide)
            return cu.encode_wide(out, (CUtensorMapDataType)map->type, map->rank, address, map->dims,
                                  map->strides, map->lower[0], map->upper[0], map->channels, map->pixels,
                                  map->steps, (CUtensorMapInterleave)map->interleave,
                                  map->wide == 1 ? CU_TENSOR_MAP_IM2COL_WIDE_MODE_W
                                                 : CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
                                  (CUtensorMapSwizzle)map->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  (CUtensorMapFloatOOBfill)map->fill);
        if (map->im2col)
            return cu.encode_im2col(out, (CUtensorMapDataType)map->type, map->rank, address, map->dims,
                                    map->strides, map->lower, map->upper, map->channels, map->pixels,
                                    map->steps, (CUtensorMapInterleave)map->interleave,
                                    (CUtensorMapSwizzle)map->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                    (CUtensorMapFloatOOBfill)map->fill);
        return cu.encode_tiled(out, (CUtensorMapDataType)map->type, map->rank, address, map->dims,
                               map->strides, map->box, map->steps, (CUtensorMapInterleave)map->interleave,
                               (CUtensorMapSwizzle)map->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               (CUtensorMapFloatOOBfill)map->fill);
    }
    return CUDA_ERROR_NOT_FOUND;
}

static void hash_outputs(const struct run *run, const struct form *form, char out_value[128])
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < run->n; i++)
        for (unsigned k = 0; k < form->n_results; k++)
            for (unsigned byte = 0; byte < 8; byte++)
                hash = (hash ^ (run->outputs[i][k] >> (8 * byte) & 0xff)) * UINT64_C(1099511628211);
    if (uses_data(form))
        for (size_t i = 0; i < DATA_BYTES; i++)
            hash = (hash ^ run->data_bytes[i]) * UINT64_C(1099511628211);
    snprintf(out_value, 128, "%016llx", (unsigned long long)hash);
}

static void measure_error(const struct run *run, const struct form *form, char out_value[128])
{
    double worst = 0;
    size_t worst_at = 0;
    struct bound bound = {0, false, false, ""};
    for (size_t i = 0; i < run->n; i++) {
        struct bound this;
        double error;
        if (form_error(form, run->inputs[i], run->outputs[i][0], &this, &error)) {
            bound = this;
            if (error > worst) {
                worst = error;
                worst_at = i;
            }
        }
    }
    if (worst > bound.limit)
        snprintf(out_value, 128, "error %.4g EXCEEDED %s at %llx -> %llx", worst, bound.text,
                 (unsigned long long)run->inputs[worst_at][0], (unsigned long long)run->outputs[worst_at][0]);
    else
        snprintf(out_value, 128, "error %.4g of %s", worst, bound.text);
}

static void run_form(struct run *run, const struct form *form, CUmodule module, size_t index)
{
    char name[24], value[128];
    snprintf(name, sizeof name, "f%zu", index);
    forms_inputs(form, run->inputs, run->n);
    CUfunction function;
    CUresult result = cu.function(&function, module, name);
    if (result == CUDA_SUCCESS)
        result = cu.to_device(run->in, run->inputs, run->n * sizeof *run->inputs);
    if (result == CUDA_SUCCESS)
        result = cu.set_8(run->out, 0, run->n * sizeof *run->outputs);
    CUtensorMap map;
    memset(&map, 0, sizeof map);
    if (result == CUDA_SUCCESS && form->map[0])
        result = encode_map(run, form, &map);
    if (result == CUDA_SUCCESS && uses_data(form)) {
        fill_data(run->data_bytes);
        result = cu.to_device(run->data, run->data_bytes, DATA_BYTES);
    }
    if (result == CUDA_SUCCESS) {
        unsigned n = (unsigned)run->n;
        unsigned char args[64];
        for (unsigned i = 0; i < sizeof args; i++)
            args[i] = (unsigned char)(7 * i + 3);
        void *params[6] = {&run->in, &run->out, &n, &run->data, args, &map};
        if (!form_has_args(form))
            params[4] = &map;
        result = cu.launch(function, (n + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
    }
    if (result == CUDA_SUCCESS)
        result = cu.synchronize();
    if (result == CUDA_SUCCESS)
        result = cu.from_device(run->outputs, run->out, run->n * sizeof *run->outputs);
    if (result == CUDA_SUCCESS && uses_data(form))
        result = cu.from_device(run->data_bytes, run->data, DATA_BYTES);
    if (result != CUDA_SUCCESS) {
        snprintf(value, sizeof value, "failed with error %d", (int)result);
        conclude(run, form, value);
        run->stopped = true;
        return;
    }
    if (run->raw)
        for (unsigned k = 0; k < form->n_results; k++)
            for (size_t i = 0; i < run->n; i++)
                fwrite(&run->outputs[i][k], type_bytes(form->results[k].type) > 4 ? 8 : 4, 1, run->raw);
    if (run->dump)
        for (size_t i = 0; i < run->n; i++) {
            printf("%s:", form->text);
            for (unsigned k = 0; k < form->n_sources; k++)
                printf(" %llx", (unsigned long long)run->inputs[i][k]);
            printf(" ->");
            for (unsigned k = 0; k < form->n_results; k++)
                printf(" %llx", (unsigned long long)run->outputs[i][k]);
            printf("\n");
        }
    if (form_is_approximate(form))
        measure_error(run, form, value);
    else
        hash_outputs(run, form, value);
    conclude(run, form, value);
}

/* A batch that the driver refuses is halved until the refused form is alone. */
static void run_batch(struct run *run, const char *module_text, const struct form *forms, size_t count)
{
    char *text = forms_ptx(module_text, forms, count, run->target, run->version);
    CUmodule module;
    const CUresult result = cu.load(&module, text, 0, NULL, NULL);
    free(text);
    if (result != CUDA_SUCCESS && count == 1) {
        run->refused++;
        run->done++;
        conclude(run, forms, "refused");
        if (run->raw) {
            const uint32_t nothing[2] = {0, 0};
            for (size_t i = 0; i < run->n; i++)
                for (unsigned k = 0; k < forms->n_results; k++)
                    fwrite(nothing, type_bytes(forms->results[k].type) > 4 ? 8 : 4, 1, run->raw);
        }
        return;
    }
    if (result != CUDA_SUCCESS) {
        run_batch(run, module_text, forms, count / 2);
        if (!run->stopped)
            run_batch(run, module_text, forms + count / 2, count - count / 2);
        return;
    }
    for (size_t i = 0; i < count && !run->stopped; i++) {
        run_form(run, &forms[i], module, i);
        run->done++;
    }
    cu.unload(module);
}

static int start_device(struct run *run)
{
    CUdevice device;
    CUcontext context;
    char device_name[128] = "";
    int major = 0, minor = 0, version = 0;
    if (cu.init(0) || cu.device_get(&device, 0) || cu.device_name(device_name, sizeof device_name, device) ||
        cu.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) ||
        cu.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) ||
        cu.driver_version(&version) || cu.primary_retain(&context, device) || cu.set_current(context) ||
        cu.alloc(&run->in, run->n * sizeof *run->inputs) ||
        cu.alloc(&run->out, run->n * sizeof *run->outputs) || cu.alloc(&run->data, DATA_BYTES)) {
        fprintf(stderr, "conform: no usable device\n");
        return -1;
    }
    snprintf(run->target, sizeof run->target, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
    snprintf(run->version, sizeof run->version, "9.0");
    if (run->record && !run->done)
        fprintf(run->record, "# %s, driver %d.%d, %zu inputs a form\n", device_name, version / 1000,
                version % 1000 / 10, run->n);
    return 10 * major + minor;
}

/* The PTX of a file's forms, for an assembler. */
static int print_ptx(const char *target, const char *path)
{
    struct forms_file file;
    if (!forms_read(path, &file))
        return 2;
    char *text = forms_ptx(file.module, file.forms, file.n_forms, target, "9.0");
    fputs(text, stdout);
    free(text);
    forms_free(&file);
    return 0;
}

int main(int argc, char **argv)
{
    struct run run = {.n = 2048};
    const char *library = "libcuda.so.1", *only = NULL, *check = NULL;
    bool later = false;
    size_t part = 0, of = 1, parts = 1;
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *option = argv[at];
        if (strcmp(option, "--dump") == 0) {
            run.dump = true;
            continue;
        }
        if (strcmp(option, "--later") == 0) {
            later = true;
            continue;
        }
        const char *value = at + 1 < argc ? argv[++at] : NULL;
        if (!value)
            return fprintf(stderr, "conform: %s wants a value\n", option), 2;
        if (strcmp(option, "--ptx") == 0 && at + 1 < argc)
            return print_ptx(value, argv[at + 1]);
        if (strcmp(option, "--libcuda") == 0)
            library = value;
        else if (strcmp(option, "--only") == 0)
            only = value;
        else if (strcmp(option, "--inputs") == 0)
            run.n = strtoull(value, NULL, 10);
        else if (strcmp(option, "--check") == 0) {
            check = value;
            if (!read_table(&run.expected, value))
                return 2;
        } else if (strcmp(option, "--except") == 0) {
            if (!read_table(&run.excepted, value))
                return 2;
        } else if (strcmp(option, "--from") == 0)
            run.done = strtoull(value, NULL, 10);
        else if (strcmp(option, "--part") == 0)
            parts = sscanf(value, "%zu/%zu", &part, &of) == 2 && part < of ? of : 0;
        else if (strcmp(option, "--record") == 0)
            run.record = strcmp(value, "-") == 0 ? stdout : fopen(value, run.done ? "a" : "w");
        else if (strcmp(option, "--raw") == 0)
            run.raw = fopen(value, "wb");
        else
            return fprintf(stderr, "conform: unknown option %s\n", option), 2;
    }
    if (at == argc || run.n == 0)
        return fprintf(stderr, "conform: no forms file\n"), 2;
    if (!parts)
        return fprintf(stderr, "conform: --part wants I/N\n"), 2;
    run.inputs = calloc(run.n, sizeof *run.inputs);
    run.outputs = calloc(run.n, sizeof *run.outputs);
    run.data_bytes = malloc(DATA_BYTES);
    if (!run.inputs || !run.outputs || !run.data_bytes)
        return 2;
    const int sm = load_driver(library) ? start_device(&run) : -1;
    if (sm < 0)
        return 3;
    size_t total = 0, skip = run.done;
    for (; at < argc && !run.stopped; at++) {
        struct forms_file file;
        if (!forms_read(argv[at], &file))
            return 2;
        run.maps = file.maps;
        run.n_maps = file.n_maps;
        struct form *chosen = calloc(file.n_forms + 1, sizeof *chosen);
        if (!chosen)
            return 2;
        size_t kept = 0;
        for (size_t i = 0; i < file.n_forms; i++) {
            const struct form *form = &file.forms[i];
            const bool runs = form->only_arch ? form->sm == (unsigned)sm : form->sm <= (unsigned)sm;
            if (runs && (!later || form->sm >= 100) && (!only || strstr(form->text, only)))
                chosen[kept++] = *form;
        }
        const size_t start = kept * part / of, end = kept * (part + 1) / of;
        const size_t first = skip < end - start ? skip : end - start;
        skip -= first;
        kept = end;
        for (size_t i = start + first; i < end && !run.stopped; i += BATCH)
            run_batch(&run, file.module, chosen + i, kept - i < BATCH ? kept - i : BATCH);
        total += end - start;
        free(chosen);
        forms_free(&file);
    }
    if (run.record && run.record != stdout && fclose(run.record) != 0)
        return perror("conform"), 2;
    if (run.raw && fclose(run.raw) != 0)
        return perror("conform"), 2;
    fprintf(stderr, "conform: %zu forms, %zu refused", total, run.refused);
    if (check)
        fprintf(stderr, ", %zu compared, %zu known to differ, %zu reported, %zu not in the record",
                run.checked, run.known, run.differing, run.unknown);
    fprintf(stderr, "\n");
    if (run.stopped)
        fprintf(stderr, "conform: stopped after %zu forms\n", run.done);
    free_table(&run.expected);
    free_table(&run.excepted);
    free(run.inputs);
    free(run.outputs);
    free(run.data_bytes);
    if (run.stopped)
        return 4;
    return run.differing || (check && !run.checked);
}
