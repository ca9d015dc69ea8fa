/* Data files against listings, notes and differences. notes/: ID.ptx or ID.sass fires note ID, ID.silent.*
   does not, for every row of notes.def. diff/: NAME.a.* and NAME.b.* give NAME.expect. listing/: NAME.sass
   gives NAME.expect. With REBASE=1 in the environment expectations are rewritten. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/diff.h"
#include "inspect/notes.h"
#include "inspect/show_diff.h"

struct file {
    char *text;
    struct ptx_module *module;
    struct clab_listing listing;
    struct clab_resources resources;
};

static int number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at != NULL ? atoi(at + strlen(word)) : CLAB_UNKNOWN;
}

/* The kernel `entry` of a .ptx or .sass file. SASS may begin with "// spill_store_bytes N …". */
static void file_open(struct file *file, const char *path, const char *entry)
{
    size_t bytes;
    struct clab_error error = {0};
    memset(file, 0, sizeof *file);
    file->text = clab_file_read(path, 1 << 24, &bytes);
    if (file->text == NULL)
        fail_msg("%s is missing", path);
    clab_resources_init(&file->resources);
    clab_status status;
    if (strstr(path, ".ptx") != NULL) {
        status = ptx_parse(file->text, bytes, path, NULL, &file->module, &error);
        const struct ptx_function *function =
            status == CLAB_OK ? ptx_function_get(file->module, entry) : NULL;
        if (status == CLAB_OK && (function == NULL || function->error != NULL))
            fail_msg("%s: %s", path, function != NULL ? function->error->message : "no entry");
        if (status == CLAB_OK)
            status = clab_resources_of_ptx(file->module, function, &file->resources, &error);
        if (status == CLAB_OK)
            status = clab_ptx_listing(file->module, function, &file->listing, &error);
    } else {
        file->resources.spill_store_bytes = number_after(file->text, "spill_store_bytes ");
        file->resources.spill_load_bytes = number_after(file->text, "spill_load_bytes ");
        file->resources.stack_bytes = number_after(file->text, "stack_bytes ");
        status = clab_sass_listing(file->text, entry, NULL, &file->listing, &error);
    }
    if (status != CLAB_OK)
        fail_msg("%s: %s", path, error.message);
}

static void file_close(struct file *file)
{
    clab_listing_free(&file->listing);
    if (file->module != NULL)
        ptx_module_free(file->module);
    free(file->text);
}

/* --- notes */

static bool fires(const char *path, const char *id)
{
    struct file file;
    struct clab_notes notes;
    bool found = false;
    file_open(&file, path, "k");
    assert_int_equal(clab_notes_find(&file.listing, &file.resources, &notes, NULL), CLAB_OK);
    for (size_t i = 0; i < notes.count; i++)
        found = found || strcmp(notes.notes[i].info->id, id) == 0;
    clab_notes_free(&notes);
    file_close(&file);
    return found;
}

static void every_note_fires_and_is_silent(void **state)
{
    (void)state;
    const struct clab_note_info *info;
    char path[256];
    for (size_t i = 0; (info = clab_note_at(i)) != NULL; i++)
        for (unsigned silent = 0; silent < 2; silent++) {
            snprintf(path, sizeof path, "notes/%s%s.%s", info->id, silent ? ".silent" : "",
                     clab_level_name(info->level));
            if (fires(path, info->id) == silent)
                fail_msg("%s: note %s %s", path, info->id, silent ? "fires" : "does not fire");
        }
}

/* --- golden files */

static void compare_with(const char *path, const char *text)
{
    size_t bytes;
    if (getenv("REBASE") != NULL) {
        assert_int_equal(clab_file_write_atomic(path, text, strlen(text)), 0);
        return;
    }
    char *wanted = clab_file_read(path, 1 << 24, &bytes);
    if (wanted == NULL)
        fail_msg("%s is missing: REBASE=1 writes it", path);
    if (strcmp(wanted, text) != 0)
        fail_msg("%s differs; got:\n%s", path, text);
    free(wanted);
}

static const char *op_text(enum clab_row_op op)
{
    return op == CLAB_ROW_SAME      ? "="
           : op == CLAB_ROW_SWAPPED ? "s"
           : op == CLAB_ROW_CHANGED ? "~"
           : op == CLAB_ROW_ONLY_A  ? "<"
                                    : ">";
}

static void diff_text(const struct clab_listing *a, const struct clab_listing *b, struct clab_str *out)
{
    struct clab_diff diff;
    assert_int_equal(clab_diff_make(a, b, &diff, NULL), CLAB_OK);
    for (size_t i = 0; i < diff.n_rows; i++) {
        const struct clab_diff_row *row = &diff.rows[i];
        clab_str_addf(out, "%s %-44s | %s", op_text(row->op), row->texts[0] != NULL ? row->texts[0] : "",
                      row->texts[1] != NULL ? row->texts[1] : "");
        if (row->move > 0)
            clab_str_addf(out, "   (moved %u)", (unsigned)row->move);
        clab_str_add(out, "\n");
    }
    clab_diff_free(&diff);
}

/* Names in `folder` that end in `ending`, without it; each once. visit() gets them in no order. */
static unsigned each_file(const char *folder, const char *ending,
                          void (*visit)(const char *name, const char *extension))
{
    DIR *list = opendir(folder);
    const struct dirent *item;
    unsigned n = 0;
    assert_non_null(list);
    while ((item = readdir(list)) != NULL) {
        static const char *const extensions[] = {"ptx", "sass"};
        for (size_t i = 0; i < 2; i++) {
            char tail[32], name[256];
            snprintf(tail, sizeof tail, "%s.%s", ending, extensions[i]);
            const size_t length = strlen(item->d_name), tail_length = strlen(tail);
            if (length <= tail_length || strcmp(item->d_name + length - tail_length, tail) != 0)
                continue;
            snprintf(name, sizeof name, "%.*s", (int)(length - tail_length), item->d_name);
            visit(name, extensions[i]);
            n++;
        }
    }
    closedir(list);
    return n;
}

static void one_diff(const char *name, const char *extension)
{
    struct file a, b;
    struct clab_str text = {0};
    char path[600];
    snprintf(path, sizeof path, "diff/%s.a.%s", name, extension);
    file_open(&a, path, "k");
    snprintf(path, sizeof path, "diff/%s.b.%s", name, extension);
    file_open(&b, path, "k");
    diff_text(&a.listing, &b.listing, &text);
    snprintf(path, sizeof path, "diff/%s.expect", name);
    compare_with(path, text.text);
    clab_str_free(&text);
    file_close(&a);
    file_close(&b);
}

static void differences_are_as_expected(void **state)
{
    (void)state;
    assert_true(each_file("diff", ".a", one_diff) >= 10);
}

static void one_listing(const char *name, const char *extension)
{
    struct file file;
    struct clab_str text = {0};
    char path[600];
    snprintf(path, sizeof path, "listing/%s.%s", name, extension);
    file_open(&file, path, strncmp(name, "forms", 5) == 0 ? "k" : "reduce_cg");
    for (uint32_t b = 0; b < file.listing.n_blocks; b++) {
        const struct clab_code_block *block = &file.listing.blocks[b];
        clab_str_addf(&text, "block %u %s ->", (unsigned)b, block->label);
        for (uint32_t s = 0; s < block->n_succ; s++)
            clab_str_addf(&text, " %u", (unsigned)block->succ[s]);
        clab_str_add(&text, "\n");
        for (uint32_t i = block->first; i < block->first + block->count; i++) {
            const struct clab_code_insn *insn = &file.listing.insns[i];
            char place[256];
            clab_place_text(&insn->place, place, sizeof place);
            clab_str_addf(&text, "%04x %s%s%s w%u [%s] %s%s%s%s%s ptx %u\n", (unsigned)insn->address,
                          insn->guard, insn->guard[0] != '\0' ? " " : "", insn->opcode,
                          (unsigned)insn->n_written, clab_group_name(insn->group), insn->what,
                          insn->is_generic ? " generic" : "", insn->is_mapped ? " mapped" : "",
                          place[0] != '\0' ? " " : "", place, (unsigned)insn->ptx_line);
        }
    }
    if (file.listing.syscalls != NULL)
        clab_str_addf(&text, "syscalls %s\n", file.listing.syscalls);
    snprintf(path, sizeof path, "listing/%s.expect", name);
    compare_with(path, text.text);
    clab_str_free(&text);
    file_close(&file);
}

static void listings_are_as_expected(void **state)
{
    (void)state;
    assert_true(each_file("listing", "", one_listing) >= 3);
}

/* The two disassemblers' texts of one cubin differ in nothing that counts. */
static void cuobjdump_says_the_same(void **state)
{
    (void)state;
    struct file a, b;
    struct clab_diff diff;
    file_open(&a, "listing/reduce_cg.sass", "reduce_cg");
    file_open(&b, "listing/reduce_cg_cuobjdump.sass", "reduce_cg");
    assert_int_equal(a.listing.n_insns, b.listing.n_insns);
    assert_int_equal(a.listing.n_blocks, b.listing.n_blocks);
    assert_int_equal(clab_diff_make(&a.listing, &b.listing, &diff, NULL), CLAB_OK);
    for (size_t i = 0; i < diff.n_rows; i++)
        assert_int_equal(diff.rows[i].op, CLAB_ROW_SAME);
    clab_diff_free(&diff);
    file_close(&a);
    file_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_note_fires_and_is_silent),
        cmocka_unit_test(differences_are_as_expected),
        cmocka_unit_test(listings_are_as_expected),
        cmocka_unit_test(cuobjdump_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
