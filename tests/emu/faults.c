/* Runs the rows of faults.txt on a libcuda, the stand-in or a GPU's, and compares what comes of each wrong
   address. Usage: faults [--driver LIBCUDA] [--jobs N] [--record | --texts FOLDER] FILE [PART-OF-A-NAME].
   --record prints the rows with the codes found, and compares nothing. Exit status: 0 all held, 1 not, 77 no
   device. Each case has a process of its own; N at once (4).

   A row: name | space of the operand @ | bytes that it is aligned to | flags | instruction | WRONG=CODE ...
   Flags: w writes; a atomic; 1 one lane executes it; u all lanes have one address; m the wrong address is
   that of an mbarrier; b waits for the mbarrier a while; c the address is one of a cluster; s shared memory
   is aligned to 1024. One lane, 5, of CTA (1,0,0) has the wrong address, all others a right one. WRONG is one
   of null far freed past    0; 2^40 further; memory that was released; right behind the buffer off one byte
   (mbarriers: 4, tensor maps: 16) further than a right one shared local const     a generic address of those
   spaces (shared: an offset beyond all shared memory, for generic param                  operands), with the
   space's own rules low                    in the first KiB of the shared window, which is the system's rank
   of CTA 9 of a cluster of 2 blank                  memory that is no tensor map, no mbarrier On the stand-in
   each fault must name the instruction, CTA, warp, lane, space and address. CODE ends in `*` where a GPU
   returned another one, which faults_h200.txt has. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "driver/call.h"
#include "driver/driver.h"

enum { MOST_ROWS = 128, MOST_WRONG = 12, BUFFER = 65536, TIME_LIMIT_S = 30 };

struct row {
    char name[32], space[16], flags[8], text[512], expected[512];
    unsigned bytes;
};

/* What a case's process leaves in shared memory. */
struct result {
    int done, code, no_device, skipped;
    const char *call; /* that gave the code */
    char words[1600], complaint[64];
};

static const struct {
    const char *space, *wrong;
} wrongs[] = {{"global", "off far shared local null const freed param past"},
              {"generic", "off far shared local null const freed param past"},
              {"shared", "off far rank low past"},
              {"cluster", "off far rank low past"},
              {"local", "off far"},
              {"const", "off far"},
              {"mbarrier", "off far rank blank"},
              {"map", "off far blank shared null freed"}};

static bool has(const struct row *row, char flag)
{
    return strchr(row->flags, flag) != NULL;
}

static bool is_32_bit(const struct row *row)
{
    return strcmp(row->space, "shared") == 0 || strcmp(row->space, "cluster") == 0 ||
           strcmp(row->space, "mbarrier") == 0;
}

/* Does the wrong address say anything about this row? */
static bool applies(const struct row *row, const char *wrong)
{
    if (strcmp(wrong, "off") == 0)
        return row->bytes > 1;
    return true;
}

/* ---- the kernel ---- */

static void add_wrong(struct clab_str *out, const struct row *row, const char *wrong)
{
    bool wide = !is_32_bit(row), map = strcmp(row->space, "map") == 0,
         mbarrier = strcmp(row->space, "mbarrier") == 0;
    const char *x = wide ? "%x" : "%w", *type = wide ? "u64" : "u32";
    if (strcmp(wrong, "off") == 0)
        clab_str_addf(out, "add.%s %s, %s, %d;\n", type, x, wide ? "%good" : "%rgood",
                      map        ? 16
                      : mbarrier ? 4
                                 : 1);
    else if (strcmp(wrong, "null") == 0)
        clab_str_add(out, "mov.u64 %x, 0;\n");
    else if (strcmp(wrong, "shared") == 0)
        clab_str_addf(out, "cvta.shared.u64 %%x, %%s64;\nadd.u64 %%x, %%x, %d;\n",
                      strcmp(row->space, "generic") ? 0 : 0x60000);
    else if (strcmp(wrong, "local") == 0)
        clab_str_addf(out, "mov.u64 %%x, lo;\ncvta.local.u64 %%x, %%x;\nadd.u64 %%x, %%x, %d;\n",
                      strcmp(row->space, "generic") == 0 && !has(row, 'a') ? 0x400000 : 0);
    else if (strcmp(wrong, "const") == 0)
        clab_str_add(out, "mov.u64 %x, cv;\ncvta.const.u64 %x, %x;\n");
    else if (strcmp(wrong, "param") == 0)
        clab_str_add(out, "mov.u64 %x, good;\ncvta.param.u64 %x, %x;\n");
    else if (strcmp(wrong, "low") == 0)
        clab_str_add(out, "mov.u32 %w, 256;\n");
    else if (strcmp(wrong, "rank") == 0)
        clab_str_add(out, "and.b32 %w, %rgood, 0xffffff;\nadd.u32 %w, %w, 0x9000000;\n");
    else if (strcmp(wrong, "blank") == 0)
        clab_str_add(out, wide ? "mov.u64 %x, %blank;\n" : "mov.u32 %w, %s;\n");
    else if (!wide)
        clab_str_addf(out, "add.u32 %%w, %%rgood, %d;\n", strcmp(wrong, "past") ? 0x60000 : 8192);
    else if (strcmp(row->space, "local") == 0 || strcmp(row->space, "const") == 0)
        clab_str_add(out, "add.u64 %x, %good, 0x400000;\n");
    else /* null far freed past: the host knows */
        clab_str_add(out, "ld.param.u64 %x, [wrong];\n");
}

static void kernel_text(struct clab_str *out, const struct row *row, const char *wrong)
{
    clab_str_add(
        out,
        ".version 8.6\n.target sm_90\n.address_size 64\n.const .align 16 .b8 cv[256];\n"
        ".visible .entry bad(.param .u64 good, .param .u64 wrong, .param .align 64 .b8 map[128])\n{\n"
        ".reg .b64 %g, %x, %good, %at, %blank, %map, %s64, %d<4>;\n"
        ".reg .b32 %s, %m, %w, %rgood, %rat, %lane, %block, %n, %r<10>;\n.reg .f32 %f<4>;\n"
        ".reg .pred %p, %q, %odd;\n.shared .align 1024 .b8 sh[8192];\n.shared .align 16 .b64 bar[2];\n"
        ".local .align 16 .b8 lo[256];\n"
        "mov.u32 %lane, %tid.x;\nmov.u32 %block, %ctaid.x;\nld.param.u64 %g, [good];\nadd.u64 %blank, %g, "
        "32768;\n"
        "mad.wide.u32 %g, %lane, 16, %g;\nmov.u32 %s, sh;\nmad.lo.u32 %s, %lane, 16, %s;\n"
        "cvt.u64.u32 %s64, %s;\nmov.u32 %m, bar;\nmov.u64 %map, map;\ncvta.param.u64 %map, %map;\n"
        "setp.eq.u32 %p, %lane, 5;\n@%p mbarrier.init.shared.b64 [%m], 2;\n"
        "@%p mbarrier.arrive.expect_tx.shared.b64 _, [%m], 4096;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\nsetp.eq.and.u32 %odd, %block, 1, %p;\n"
        "mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0;\n"
        "mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0; mov.u64 %d1, 0; mov.u64 %d2, 0;\n"
        "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n");
    if (has(row, 'u'))
        clab_str_add(out, "setp.eq.u32 %odd, %block, 1;\nld.param.u64 %g, [good];\nmov.u32 %s, sh;\n");
    if (has(row, 's'))
        clab_str_add(out, "mov.u32 %s, sh;\n");
    clab_str_addf(out, "mov.u64 %%good, %s;\nmov.u32 %%rgood, %s;\n",
                  strcmp(row->space, "local") == 0   ? "lo"
                  : strcmp(row->space, "const") == 0 ? "cv"
                  : strcmp(row->space, "map") == 0   ? "%map"
                                                     : "%g",
                  strcmp(row->space, "mbarrier") == 0 ? "%m" : "%s");
    if (strcmp(row->space, "cluster") == 0 || has(row, 'c'))
        clab_str_add(out, "mapa.shared::cluster.u32 %rgood, %rgood, 0;\n");
    clab_str_add(out, "mov.u64 %at, %good;\nmov.u32 %rat, %rgood;\n");
    add_wrong(out, row, wrong);
    clab_str_addf(out, "@%%odd mov.%s %s, %s;\n", is_32_bit(row) ? "u32" : "u64",
                  is_32_bit(row) ? "%rat" : "%at", is_32_bit(row) ? "%w" : "%x");
    clab_str_add(out, has(row, '1') ? "@!%p bra DONE;\n" : "");
    for (const char *at = row->text; *at; at++) {
        if (*at == '@')
            clab_str_add(out, is_32_bit(row) ? "%rat" : "%at");
        else
            clab_str_addf(out, "%c", *at);
    }
    clab_str_add(out, "\n");
    if (has(row, 'b')) /* what the copy does is done by then; the phase itself never ends */
        clab_str_add(out, "mov.u32 %n, 100;\nAGAIN: mbarrier.test_wait.parity.shared.b64 %q, [%m], "
                          "0;\nsub.u32 %n, %n, 1;\n"
                          "setp.ne.u32 %q, %n, 0;\n@%q bra AGAIN;\n");
    clab_str_add(
        out, "DONE:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
             "st.global.u32 [%g], %r1;\nst.global.f32 [%g+4], %f1;\nst.global.u64 [%g+8], %d1;\nret;\n}\n");
}

/* ---- one case ---- */

/* What the stand-in must say of a fault. */
static void words_check(const struct clab_driver *driver, const struct row *row, struct result *out)
{
    struct clab_error error = {0};
    char mnemonic[64];
    if (!driver->channel || !driver->channel->last_error(&error))
        return;
    sscanf(row->text, "%63s", mnemonic);
    snprintf(out->words, sizeof out->words, "%s (space %s, %s)", error.message, error.space,
             error.instruction);
    const char *missing = strncmp(error.instruction, mnemonic, 6) != 0      ? "the instruction"
                          : !error.where.has_cta || error.where.cta[0] != 1 ? "the CTA"
                          : !error.where.has_warp || error.where.warp != 0  ? "the warp"
                          : !error.where.has_lane || (!has(row, 'u') && error.where.lane != 5) ? "the lane"
                          : error.space[0] == '\0'                                             ? "the space"
                          : !error.has_address                                                 ? "the address"
                                                                                               : NULL;
    if (missing)
        snprintf(out->complaint, sizeof out->complaint, "%s is not named", missing);
    clab_error_clear(&error);
}

/* One call after another until one fails. */
static void launch(const struct clab_driver *d, const char *text, CUdeviceptr good, CUdeviceptr wrong,
                   struct result *out)
{
    CUmodule module;
    CUfunction function;
    static CUtensorMap map;
    static const cuuint64_t dims[] = {1024}, strides[] = {4096, 4096, 4096, 4096};
    static const cuuint32_t box[] = {16}, steps[] = {1};
    void *params[] = {&good, &wrong, &map};
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    cluster.value.clusterDim.x = 2;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
    const CUlaunchConfig config = {.gridDimX = 2,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 32,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .attrs = &cluster,
                                   .numAttrs = 1};
    out->call = "cuTensorMapEncodeTiled";
    out->code = (int)d->cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, (void *)(uintptr_t)(good + 8192), dims, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (out->code == CUDA_SUCCESS) {
        out->call = "cuModuleLoadData";
        out->code = (int)d->cuModuleLoadData(&module, text);
    }
    if (out->code == CUDA_SUCCESS) {
        out->call = "cuModuleGetFunction";
        out->code = (int)d->cuModuleGetFunction(&function, module, "bad");
    }
    if (out->code == CUDA_SUCCESS) {
        out->call = "cuLaunchKernelEx";
        out->code = (int)d->cuLaunchKernelEx(&config, function, params, NULL);
    }
    if (out->code == CUDA_SUCCESS) {
        out->call = "cuCtxSynchronize";
        out->code = (int)d->cuCtxSynchronize();
    }
}

static void case_run(const char *library, const struct row *row, const char *wrong, struct result *out)
{
    const struct clab_driver *d;
    struct clab_error error = {0};
    struct clab_str text = {0};
    CUdevice device;
    CUcontext context;
    CUdeviceptr good = 0, other = 0;
    if (clab_driver_load(library, &d, &error) != CLAB_OK || d->cuInit(0) != CUDA_SUCCESS ||
        d->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        d->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        d->cuCtxSetCurrent(context) != CUDA_SUCCESS || d->cuMemAlloc_v2(&good, BUFFER) != CUDA_SUCCESS ||
        d->cuMemAlloc_v2(&other, 64u << 20) != CUDA_SUCCESS ||
        d->cuMemsetD8_v2(good, 0, BUFFER) != CUDA_SUCCESS) {
        out->no_device = 1;
        return;
    }
    d->cuMemFree_v2(other);
    kernel_text(&text, row, wrong);
    const CUdeviceptr address = strcmp(wrong, "freed") == 0   ? other
                                : strcmp(wrong, "past") == 0  ? good + BUFFER
                                : strcmp(wrong, "right") == 0 ? good
                                                              : good + ((CUdeviceptr)1 << 40);
    launch(d, text.text, good, address, out);
    if (out->code != CUDA_SUCCESS && strcmp(out->call, "cuCtxSynchronize") != 0)
        snprintf(out->complaint, sizeof out->complaint, "%s fails", out->call);
    else if (out->code != CUDA_SUCCESS)
        words_check(d, row, out);
    clab_str_free(&text);
    out->done = 1;
}

/* ---- all ---- */

static int rows_read(const char *path, struct row *rows)
{
    size_t bytes;
    char *text = clab_file_read(path, 1u << 20, &bytes), *rest = text;
    int n = 0;
    for (char *line; text && n < MOST_ROWS && (line = strsep(&rest, "\n"));) {
        struct row *row = &rows[n];
        *row = (struct row){0};
        if (line[0] == '#' || line[0] == '\0')
            continue;
        char flags[16] = "";
        if (sscanf(line, "%31s | %15s | %u |%15[^|]|%511[^|]|%511[^\n]", row->name, row->space, &row->bytes,
                   flags, row->text, row->expected) < 5) {
            printf("%s: cannot be read: %s\n", path, line);
            free(text);
            return -1;
        }
        sscanf(flags, " %7s", row->flags);
        memmove(row->text, row->text + 1, strlen(row->text));
        n++;
    }
    free(text);
    return n;
}

/* The code that the row expects of a wrong address, or "". */
static void expected(const struct row *row, const char *wrong, char out[40])
{
    char key[20];
    snprintf(key, sizeof key, "%.11s=", wrong);
    out[0] = '\0';
    for (const char *at = strstr(row->expected, key); at; at = strstr(at + 1, key))
        if (at == row->expected || at[-1] == ' ') {
            sscanf(at + strlen(key), "%39[A-Z_]", out);
            return;
        }
}

static const char *short_name(int code)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{0, "SUCCESS"},
                 {700, "ILLEGAL_ADDRESS"},
                 {714, "HARDWARE_STACK_ERROR"},
                 {715, "ILLEGAL_INSTRUCTION"},
                 {716, "MISALIGNED_ADDRESS"},
                 {717, "INVALID_ADDRESS_SPACE"},
                 {718, "INVALID_PC"},
                 {719, "LAUNCH_FAILED"},
                 {702, "LAUNCH_TIMEOUT"},
                 {218, "INVALID_PTX"},
                 {801, "NOT_SUPPORTED"},
                 {-1, "HANGS"}};
    static char other[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code)
            return names[i].name;
    snprintf(other, sizeof other, "CODE_%d", code);
    return other;
}

/* The kernel as a file, for other tools. */
static void text_write(const char *folder, const struct row *row, const char *wrong)
{
    struct clab_str text = {0};
    char path[4096];
    kernel_text(&text, row, wrong);
    snprintf(path, sizeof path, "%s/%s.%s.ptx", folder, row->name, wrong);
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(text.text, file);
        fclose(file);
    }
    clab_str_free(&text);
}

/* A case with a right address must hold before any other is worth its time. */
static bool smoke(const char *library, const struct row *row, struct result *result)
{
    if (fork() == 0) {
        alarm(TIME_LIMIT_S);
        case_run(library, row, "right", result);
        _exit(0);
    }
    wait(NULL);
    const bool good = result->done && result->code == CUDA_SUCCESS;
    if (!good)
        printf("a right address: %s %d%s\n", result->call ? result->call : "no call", result->code,
               result->no_device ? ": no device" : "");
    *result = good ? (struct result){0} : *result;
    return good;
}

struct choice {
    const char *library, *path, *texts, *part;
    bool record;
    int jobs;
    unsigned seconds; /* after which no more cases start; 0 no limit */
};

/* Which wrong addresses a row is tried with. */
static void list_fill(const struct row *row, const char *part, char list[MOST_WRONG][12])
{
    char words[80] = "", *rest = words;
    int k = 0;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++)
        if (strcmp(wrongs[i].space, row->space) == 0)
            snprintf(words, sizeof words, "%s", wrongs[i].wrong);
    for (char *wrong; strstr(row->name, part) && (wrong = strsep(&rest, " "));)
        if (applies(row, wrong))
            snprintf(list[k++], 12, "%.11s", wrong);
}

/* All cases, what tells most first: the n-th of every row before any row's next. */
static void cases_run(const struct choice *choice, const struct row *rows, int n,
                      char (*lists)[MOST_WRONG][12], struct result *results)
{
    const time_t start = time(NULL);
    int running = 0;
    for (int k = 0; k < MOST_WRONG; k++) {
        for (int r = 0; r < n; r++) {
            const char *wrong = lists[r][k];
            struct result *out = &results[r * MOST_WRONG + k];
            if (wrong[0] == '\0')
                continue;
            if (choice->texts) {
                text_write(choice->texts, &rows[r], wrong);
                continue;
            }
            if (choice->seconds && time(NULL) - start > (time_t)choice->seconds) {
                out->skipped = 1;
                continue;
            }
            fflush(stdout);
            if (running == choice->jobs && wait(NULL) > 0)
                running--;
            if (fork() == 0) {
                alarm(TIME_LIMIT_S);
                case_run(choice->library, &rows[r], wrong, out);
                _exit(0);
            }
            running++;
        }
    }
    while (wait(NULL) > 0)
        continue;
}

static int report(const struct choice *choice, const struct row *rows, int n, char (*lists)[MOST_WRONG][12],
                  const struct result *results)
{
    int wrong_count = 0, cases = 0;
    for (int r = 0; r < n; r++) {
        if (choice->record && lists[r][0][0])
            printf("%s |", rows[r].name);
        for (int k = 0; k < MOST_WRONG && lists[r][k][0]; k++) {
            const struct result *result = &results[r * MOST_WRONG + k];
            const char *got = result->skipped ? "-" : short_name(result->done ? result->code : -1);
            char wanted[40];
            cases++;
            if (choice->record) {
                printf(" %s=%s", lists[r][k], got);
                continue;
            }
            expected(&rows[r], lists[r][k], wanted);
            if (strcmp(got, wanted) != 0 || result->complaint[0] != '\0') {
                printf("%s, %s: %s, wanted %s; %s; %s\n", rows[r].name, lists[r][k], got,
                       wanted[0] ? wanted : "nothing yet", result->complaint, result->words);
                wrong_count++;
            }
        }
        if (choice->record && lists[r][0][0])
            printf("\n");
    }
    if (!choice->record)
        printf("%d cases, %d wrong\n", cases, wrong_count);
    return wrong_count > 0;
}

int main(int argc, char **argv)
{
    static struct row rows[MOST_ROWS];
    static char lists[MOST_ROWS][MOST_WRONG][12];
    struct choice choice = {.part = "", .jobs = 4};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--driver") == 0 && i + 1 < argc)
            choice.library = argv[++i];
        else if (strcmp(argv[i], "--record") == 0)
            choice.record = true;
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            choice.jobs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            choice.seconds = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--texts") == 0 && i + 1 < argc)
            choice.texts = argv[++i];
        else if (!choice.path)
            choice.path = argv[i];
        else
            choice.part = argv[i];
    }
    const int n = choice.path ? rows_read(choice.path, rows) : -1;
    struct result *results = mmap(NULL, sizeof *results * MOST_ROWS * MOST_WRONG, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n < 0 || results == MAP_FAILED) {
        fprintf(stderr,
                "usage: faults [--driver LIBCUDA] [--jobs N] [--seconds N] [--record | --texts FOLDER] FILE "
                "[PART-OF-A-NAME]\n");
        return 2;
    }
    if (!choice.texts && !smoke(choice.library, &rows[0], &results[0]))
        return results[0].no_device ? 77 : 3;
    for (int r = 0; r < n; r++)
        list_fill(&rows[r], choice.part, lists[r]);
    cases_run(&choice, rows, n, lists, results);
    return choice.texts ? 0 : report(&choice, rows, n, lists, results);
}
