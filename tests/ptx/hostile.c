/* Hostile input: no crash, no unbounded recursion or memory, no quadratic time. Mutations of the parse/ files
   with a fixed seed, and generated megabytes of whatever nests, repeats or counts. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/str.h"
#include "ptx/ptx.h"

enum { MEMORY_LIMIT = 512 << 20, MUTATIONS = 150 };
static const double most_seconds = 10.0; /* a megabyte takes some 15 ms; sanitizers are allowed for */

#define HEAD  ".version 9.0\n.target sm_90a\n.address_size 64\n"
#define ENTRY ".entry k(.param .u64 a)\n{\n.reg .b32 %r<10>;\n.reg .pred %p<4>;\n.reg .b64 %rd<4>;\n"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* a busy machine does not count */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Parses; also builds the graph and the liveness of what is good. Returns the status. */
static clab_status parse_all(const char *text, size_t bytes, const char *what)
{
    struct ptx_parse_options options = {.limit_bytes = MEMORY_LIMIT};
    struct ptx_module *module = NULL;
    struct clab_error error = {0};
    double start = seconds();
    clab_status status = ptx_parse(text, bytes, what, &options, &module, &error);
    for (uint32_t i = 0; module && i < module->n_functions; i++) {
        struct clab_arena arena = {.limit_bytes = MEMORY_LIMIT};
        struct ptx_cfg cfg;
        uint32_t registers;
        const struct ptx_function *function = module->functions[i];
        if (function->defined && !function->error && ptx_cfg_build(function, &arena, &cfg, &error) == CLAB_OK)
            ptx_live_estimate(function, &cfg, &arena, &registers, &error);
        clab_arena_free(&arena);
    }
    double taken = seconds() - start;
    if (getenv("PTX_HOSTILE_TIMES"))
        print_message("%6.3f s %s\n", taken, what);
    if (taken > most_seconds)
        fail_msg("%s: %.1f s for %zu bytes", what, taken, bytes);
    ptx_module_free(module);
    clab_error_clear(&error);
    return status;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void mutate(char *text, size_t *bytes, uint64_t *seed)
{
    static const char spice[] = "{}[]()<>,;:.+-*/%|!@\"_0x9f\0#";
    unsigned count = 1 + (unsigned)(random_next(seed) % 4);
    for (unsigned i = 0; i<count && * bytes> 8; i++) {
        size_t at = random_next(seed) % *bytes, length = 1 + random_next(seed) % 40;
        switch (random_next(seed) % 5) {
        case 0:
            text[at] = (char)random_next(seed);
            break;
        case 1:
            text[at] = spice[random_next(seed) % sizeof spice];
            break;
        case 2: /* drop a piece */
            if (at + length > *bytes)
                length = *bytes - at;
            memmove(text + at, text + at + length, *bytes - at - length);
            *bytes -= length;
            break;
        case 3: { /* copy a piece over another place */
            size_t from = random_next(seed) % *bytes;
            for (size_t j = 0; j < length && at + j < *bytes && from + j < *bytes; j++)
                text[at + j] = text[from + j];
            break;
        }
        default:
            if (random_next(seed) % 4 == 0)
                *bytes = at + 1;
            break;
        }
    }
}

static void mutated_files(void **state)
{
    (void)state;
    struct dirent **entries;
    int count = scandir("parse", &entries, NULL, alphasort);
    uint64_t seed = 88172645463325252u;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char path[512];
        size_t bytes;
        snprintf(path, sizeof path, "parse/%s", entries[i]->d_name);
        char *text = strstr(path, ".ptx") ? clab_file_read(path, 1u << 20, &bytes) : NULL;
        for (unsigned m = 0; text && m < MUTATIONS; m++) {
            size_t length = bytes;
            char *copy = malloc(bytes + 1);
            assert_non_null(copy);
            memcpy(copy, text, bytes + 1);
            mutate(copy, &length, &seed);
            parse_all(copy, length, path);
            free(copy);
        }
        free(text);
        free(entries[i]);
    }
    free(entries);
}

/* head + count times piece (a %u in it is the number) + tail. */
static void repeated(const char *what, const char *head, const char *piece, unsigned count, const char *tail)
{
    struct clab_str text = {0};
    clab_str_add(&text, head);
    for (unsigned i = 0; i < count; i++) {
        const char *mark = strstr(piece, "%u");
        if (mark) {
            clab_str_add_bytes(&text, piece, (size_t)(mark - piece));
            clab_str_addf(&text, "%u", i);
            clab_str_add(&text, mark + 2);
        } else {
            clab_str_add(&text, piece);
        }
    }
    clab_str_add(&text, tail);
    assert_false(text.failed);
    parse_all(text.text, text.bytes, what);
    clab_str_free(&text);
}

static void nesting(void **state)
{
    (void)state;
    repeated("open braces", HEAD ENTRY, "{", 500000, "");
    repeated("closed braces", HEAD ENTRY, "}", 500000, "");
    repeated("scopes in turn", HEAD ENTRY, "{ .reg .b32 x; mov.u32 x, 1; }", 40000, "ret; }");
    repeated("vectors", HEAD ENTRY, "mov.b64 %rd1, {", 100000, "");
    repeated("nested vectors", HEAD ENTRY "mov.b64 %rd1, ", "{", 500000, ";ret;}");
    repeated("parentheses", HEAD ENTRY "mov.u32 %r1, ", "(", 500000, ";ret;}");
    repeated("minus signs", HEAD ENTRY "mov.u32 %r1, ", "-", 500000, "1;ret;}");
    repeated("conditionals", HEAD ENTRY "mov.u32 %r1, 1", "?1:1", 200000, ";ret;}");
    repeated("sums", HEAD ENTRY "mov.u32 %r1, 1", "+1", 300000, ";ret;}");
    repeated("initialiser braces", HEAD ".global .u32 a[2] = ", "{", 500000, ";");
    repeated("brackets", HEAD ENTRY "ld.global.u32 %r1, ", "[", 500000, ";ret;}");
}

static void repetition(void **state)
{
    (void)state;
    repeated("labels", HEAD ENTRY, "L%u: bra L1;", 60000, "ret; }");
    repeated("undefined labels", HEAD ENTRY, "bra M%u;", 80000, "ret; }");
    repeated("undeclared registers", HEAD ENTRY, "mov.u32 %r1, zz%u;", 50000, "ret; }");
    repeated("unknown instructions", HEAD ENTRY, "foo%u.bar %r1;", 60000, "ret; }");
    repeated("unknown qualifiers", HEAD ENTRY, "add.foo%u.u32 %r1, %r2, %r3;", 30000, "ret; }");
    repeated("long opcodes", HEAD ENTRY "add", ".sat", 200000, " %r1, %r1, %r1; ret; }");
    repeated("functions", HEAD, ".func f%u () { ret; }\n", 40000, "");
    repeated("bad functions", HEAD, ".func f%u () { foo; ret; }\n", 8000, "");
    repeated("variables", HEAD, ".global .u32 v%u;\n", 50000, "");
    repeated("registers", HEAD ENTRY, ".reg .b32 q%u;\n", 60000, "ret; }");
    repeated("ranges", HEAD ENTRY, "{ .reg .b32 %r<4294967295>; mov.u32 %r%u, 1; }\n", 20000, "ret; }");
    repeated("one long name", HEAD ENTRY "mov.u32 %r1, ", "abcdefgh12345678", 60000, "; ret; }");
    repeated("operands", HEAD ENTRY "add.u32 %r1", ", %r1", 100000, "; ret; }");
    repeated("returns", HEAD ENTRY, "@%p1 ret;", 80000, "ret; }");
    repeated("ladder", HEAD ENTRY, "@%p1 bra N%u; add.u32 %r1, %r1, 1;\n", 40000, "ret; }");
    repeated("files", HEAD, ".file 65536 \"x%u\"\n", 20000, "");
    repeated("locations", HEAD ENTRY, ".loc 1 %u 1\n", 60000, "ret; }");
    repeated("comments", HEAD, "/* */ // x\n", 100000, "");
}

/* brx.idx tables whose edges multiply: refused, not built. */
static void branch_tables(void **state)
{
    (void)state;
    struct clab_str text = {0};
    enum { LABELS = 20000, JUMPS = 20000 };
    clab_str_add(&text, HEAD ENTRY "T: .branchtargets L0");
    for (unsigned i = 1; i < LABELS; i++)
        clab_str_addf(&text, ", L%u", i);
    clab_str_add(&text, ";\n");
    for (unsigned i = 0; i < LABELS; i++)
        clab_str_addf(&text, "L%u: add.u32 %%r1, %%r1, 1;\n", i);
    for (unsigned i = 0; i < JUMPS; i++)
        clab_str_add(&text, "brx.idx %r1, T;\n");
    clab_str_add(&text, "ret; }");
    assert_int_equal(parse_all(text.text, text.bytes, "branch tables"), CLAB_OK);
    clab_str_free(&text);
}

static void sizes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD ".global .b8 a[18446744073709551615];",
        HEAD ".global .b8 a[4294967296][4294967296];",
        HEAD ".global .b8 a[4611686018427387904] = {1};",
        HEAD ".global .b8 a[1073741824] = {1}; .global .b8 b[1073741824] = {1};",
        HEAD ".shared .align 3 .b8 a[4];",
        HEAD ".global .u32 a[-1];",
        HEAD ".global .v4 .f32 a[1][0];",
        HEAD ENTRY ".reg .b32 %q<4294967295>; mov.u32 %q4294967294, 1; ret; }",
        HEAD ENTRY "mov.u32 %r1, 1/0; ret; }",
        HEAD ENTRY "mov.u32 %r1, (-9223372036854775807-1)/-1; ret; }",
        HEAD ENTRY "mov.u32 %r1, 1 << 64; ret; }",
        HEAD ENTRY "mov.u32 %r1, 99999999999999999999; ret; }",
        HEAD ENTRY "mov.u64 %rd1, (.u64)1e300; ret; }",
        HEAD ENTRY "mov.u32 %r1, 0f3f8; ret; }",
        HEAD ".file 4294967295 \"x\"",
        HEAD ".section .debug {",
        HEAD ".alias a, b;",
        HEAD "/* no end",
        HEAD "\"no end",
        HEAD ENTRY "T: .branchtargets ;",
        HEAD ENTRY "call (, f;",
        HEAD ENTRY "mov.u32 %r1, \\;",
        HEAD ENTRY "mov.u32 %r1, -W",
        HEAD ENTRY "mov.u32 %r1, !WARP_S",
        ".version 9.0",
        ".version",
        ".version 9.0 .target",
        ".version 9.0 .target sm_90",
        "",
        "\0",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t bytes = strlen(texts[i]);
        for (size_t cut = 0; cut <= 3 && cut <= bytes; cut++)
            parse_all(texts[i], bytes - cut, texts[i]);
    }
    parse_all("", 0, "empty");
    parse_all("a\0b\0c", 5, "NUL bytes");
}

/* With every memory limit the parser fails cleanly or succeeds. */
static void little_memory(void **state)
{
    (void)state;
    size_t bytes;
    char *text = clab_file_read("parse/reduce.ptx", 1u << 20, &bytes);
    assert_non_null(text);
    bool failed = false, succeeded = false;
    for (size_t limit = 512; limit < 1u << 20; limit += limit / 16) {
        struct ptx_parse_options options = {.limit_bytes = limit};
        struct ptx_module *module = NULL;
        struct clab_error error = {0};
        clab_status status = ptx_parse(text, bytes, "reduce.ptx", &options, &module, &error);
        assert_true(status == CLAB_OK || status == CLAB_NO_MEMORY);
        assert_true((status == CLAB_OK) == (module != NULL));
        failed |= status == CLAB_NO_MEMORY;
        succeeded |= status == CLAB_OK;
        ptx_module_free(module);
        clab_error_clear(&error);
    }
    assert_true(failed && succeeded);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mutated_files), cmocka_unit_test(nesting),
                                       cmocka_unit_test(repetition),    cmocka_unit_test(branch_tables),
                                       cmocka_unit_test(sizes),         cmocka_unit_test(little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
