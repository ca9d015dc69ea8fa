/* The SASS half of must_contain (host/lab/proof.c), with a disassembler that prints a file, and without one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/temporary.h"
#include "lab/proof.h"

static char folder[3000], program[3100];

static int make_program(void **state)
{
    (void)state;
    assert_int_equal(clab_temporary_folder("proof", folder, sizeof folder), 0);
    snprintf(program, sizeof program, "%s/nvdisasm", folder);
    return 0;
}

static int remove_program(void **state)
{
    (void)state;
    unlink(program);
    rmdir(folder);
    return 0;
}

/* A disassembler that says `sass` of every cubin. */
static void prints(const char *sass)
{
    struct clab_str script = {0};
    clab_str_addf(&script, "#!/bin/sh\ncat <<'END'\n\t.section\t.text.k,\"ax\"\n%s/*0f00*/ EXIT ;\nEND\n",
                  sass);
    unlink(program);
    assert_int_equal(clab_file_write_atomic(program, script.text, script.bytes), 0);
    assert_int_equal(chmod(program, 0700), 0);
    clab_str_free(&script);
}

static clab_status check(const char *name, bool with_program, enum clab_image_kind kind, json_t **proof,
                         struct clab_error *error)
{
    char ptx[] = ".entry k() { mapa.u64 a, b, c; barrier.cluster.arrive; add.u32 a, b, c; }",
         cubin[] = "cubin", entry[] = "k";
    struct clab_image image = {.kind = kind,
                               .data = kind == CLAB_IMAGE_PTX ? ptx : cubin,
                               .bytes = 5,
                               .ptx = ptx,
                               .ptx_bytes = sizeof ptx - 1,
                               .lowered = entry};
    if (kind == CLAB_IMAGE_PTX)
        image.bytes = sizeof ptx - 1;
    struct clab_toolkit *toolkit = calloc(1, sizeof *toolkit);
    assert_non_null(toolkit);
    toolkit->parts[CLAB_PART_NVDISASM].found = with_program;
    toolkit->parts[CLAB_PART_NVDISASM].remedy = "";
    snprintf(toolkit->parts[CLAB_PART_NVDISASM].path, sizeof toolkit->parts[0].path, "%s", program);
    json_t *names = json_pack("[s]", name);
    clab_status status = clab_proof_check(&image, names, toolkit, NULL, proof, error);
    json_decref(names);
    free(toolkit);
    return status;
}

static void expect(const char *name, const char *sass, bool with_program, enum clab_image_kind kind,
                   clab_status wanted, const char *wanted_proof)
{
    json_t *proof = NULL;
    struct clab_error error = {0};
    prints(sass);
    const clab_status status = check(name, with_program, kind, &proof, &error);
    char *text = json_dumps(proof, JSON_COMPACT | JSON_SORT_KEYS);
    if (status != wanted || text == NULL || strcmp(text, wanted_proof) != 0)
        fail_msg("%s: status %d, %s, wanted %s; %s", name, (int)status, text, wanted_proof, error.message);
    if (status != CLAB_OK)
        assert_non_null(strstr(error.message, name));
    free(text);
    json_decref(proof);
    clab_error_clear(&error);
}

#define MAPA "/*0000*/ PRMT R4, R7, 0x654, R2 ;\n"

static void sass_is_looked_at(void **state)
{
    (void)state;
    expect("mapa", MAPA, true, CLAB_IMAGE_CUBIN, CLAB_OK, "{\"ptx\":true,\"sass\":true}");
    expect("mapa", "/*0000*/ PRMT R4, R7, 0x7771, R2 ;\n", true, CLAB_IMAGE_CUBIN, CLAB_COMPILE,
           "{\"ptx\":true,\"sass\":false}");
    expect("barrier.cluster", MAPA, true, CLAB_IMAGE_CUBIN, CLAB_COMPILE, "{\"ptx\":true,\"sass\":false}");
}

static void what_cannot_be_known_is_null(void **state)
{
    (void)state;
    expect("mapa", MAPA, false, CLAB_IMAGE_CUBIN, CLAB_OK, "{\"ptx\":true,\"sass\":null}");
    expect("mapa", "nothing\n", true, CLAB_IMAGE_PTX, CLAB_OK, "{\"ptx\":true,\"sass\":null}");
    expect("add", MAPA, true, CLAB_IMAGE_CUBIN, CLAB_OK,
           "{\"ptx\":true,\"sass\":null}"); /* no row says what it becomes */
    expect("red.async", MAPA, true, CLAB_IMAGE_CUBIN, CLAB_COMPILE, "{\"ptx\":false,\"sass\":null}");
}

/* The claim is about the kernel: a tool that fails does not refute it. */
static void a_broken_disassembler_refutes_nothing(void **state)
{
    (void)state;
    json_t *proof = NULL;
    unlink(program);
    assert_int_equal(clab_file_write_atomic(program, "#!/bin/sh\nexit 3\n", 17), 0);
    assert_int_equal(chmod(program, 0700), 0);
    assert_int_equal(check("mapa", true, CLAB_IMAGE_CUBIN, &proof, NULL), CLAB_OK);
    assert_true(json_is_null(json_object_get(proof, "sass")));
    json_decref(proof);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sass_is_looked_at),
        cmocka_unit_test(what_cannot_be_known_is_null),
        cmocka_unit_test(a_broken_disassembler_refutes_nothing),
    };
    return cmocka_run_group_tests(tests, make_program, remove_program);
}
