/* The control-flow graph through graphviz (https://graphviz.org, "The DOT Language"; dot -T). */
#include "inspect/graph.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/temporary.h"

#define DOT_LIMIT_MS  30000
#define LINES_A_BLOCK 40

/* Text inside a quoted label; a line of it ends left-aligned. */
static void put_escaped(struct clab_str *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            clab_str_add(out, "\\");
        clab_str_add_bytes(out, text, 1);
    }
}

static const char *colour_of(const struct clab_listing *listing, const struct clab_code_block *block)
{
    for (uint32_t i = block->first; i < block->first + block->count; i++)
        if (listing->insns[i].group == CLAB_GROUP_CLUSTER || listing->insns[i].group == CLAB_GROUP_FENCE)
            return "mistyrose";
    for (uint32_t i = block->first; i < block->first + block->count; i++)
        if (clab_group_is_critical(listing->insns[i].group))
            return "lightyellow";
    return "white";
}

void clab_graph_dot(const struct clab_listing *listing, struct clab_str *out)
{
    clab_str_add(out, "digraph \"");
    put_escaped(out, listing->entry);
    clab_str_add(out, "\" {\n  node [shape=box, fontname=\"monospace\", fontsize=9, style=filled];\n");
    for (uint32_t b = 0; b < listing->n_blocks; b++) {
        const struct clab_code_block *block = &listing->blocks[b];
        clab_str_addf(out, "  b%u [fillcolor=%s, label=\"", (unsigned)b, colour_of(listing, block));
        if (block->label[0] != '\0') {
            put_escaped(out, block->label);
            clab_str_add(out, ":\\l");
        }
        for (uint32_t i = 0; i < block->count && i < LINES_A_BLOCK; i++) {
            const struct clab_code_insn *insn = &listing->insns[block->first + i];
            char text[1024];
            clab_code_text(insn, text, sizeof text);
            clab_str_addf(out, listing->level == CLAB_LEVEL_SASS ? "%04x  " : "%4u  ",
                          (unsigned)insn->address);
            put_escaped(out, text);
            clab_str_add(out, "\\l");
        }
        if (block->count > LINES_A_BLOCK)
            clab_str_addf(out, "[%u more]\\l", (unsigned)(block->count - LINES_A_BLOCK));
        clab_str_add(out, "\"];\n");
    }
    for (uint32_t b = 0; b < listing->n_blocks; b++)
        for (uint32_t s = 0; s < listing->blocks[b].n_succ; s++)
            clab_str_addf(out, "  b%u -> b%u%s;\n", (unsigned)b, (unsigned)listing->blocks[b].succ[s],
                          listing->blocks[b].n_succ == 2 && listing->blocks[b].succ[s] == b + 1
                              ? " [style=dashed]"
                              : "");
    clab_str_add(out, "}\n");
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), wanted = strlen(ending);
    return n > wanted && strcmp(text + n - wanted, ending) == 0;
}

static clab_status draw(const char *dot_path, const char *kind, const char *path, struct clab_error *error)
{
    char option[16], output[4100], words[4096];
    struct clab_process process;
    int status = 0;
    snprintf(option, sizeof option, "-T%s", kind);
    snprintf(output, sizeof output, "-o%s", path);
    const char *const argv[] = {"dot", option, output, dot_path, NULL};
    if (clab_process_start(&process, argv, NULL, true) != 0) {
        clab_error_set(error, CLAB_NO_TOOLKIT, "cannot draw %s: graphviz's program dot: %s", path,
                       strerror(errno));
        return clab_error_remedy(error, "install graphviz (apt-get install graphviz), or name a .dot file");
    }
    const bool ended = clab_process_wait(&process, DOT_LIMIT_MS, &status) == 1;
    const ssize_t bytes = ended ? read(process.error_fd, words, sizeof words) : 0;
    clab_process_kill(&process);
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLAB_OK;
    /* What the exec of a program that is not there ends with. */
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        clab_error_set(error, CLAB_NO_TOOLKIT, "cannot draw %s: graphviz's program dot was not found", path);
        return clab_error_remedy(error, "install graphviz (apt-get install graphviz), or name a .dot file");
    }
    clab_error_set(error, CLAB_OUTPUT, ended ? "dot could not draw %s" : "dot gave no picture %s within 30 s",
                   path);
    if (bytes > 0)
        clab_error_log(error, words, (size_t)bytes);
    return CLAB_OUTPUT;
}

/* What dot is asked for, "" for a file in graphviz's own language, NULL for no picture. */
static const char *kind_of(const char *path)
{
    static const char *const kinds[] = {"svg", "pdf", "png"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char ending[8];
        snprintf(ending, sizeof ending, ".%s", kinds[i]);
        if (ends_with(path, ending))
            return kinds[i];
    }
    return ends_with(path, ".dot") || ends_with(path, ".gv") ? "" : NULL;
}

clab_status clab_graph_check(const char *path, struct clab_error *error)
{
    return kind_of(path) != NULL
               ? CLAB_OK
               : clab_error_set(error, CLAB_USAGE,
                                "--control-flow draws .svg, .pdf, .png or .dot files, not %s", path);
}

clab_status clab_graph_write(const struct clab_listing *listing, const char *path, struct clab_error *error)
{
    const char *kind = kind_of(path);
    char temporary[4096] = "";
    if (kind == NULL)
        return clab_graph_check(path, error);
    const bool is_drawn = kind[0] != '\0';
    if (is_drawn && clab_temporary_file("graph", temporary, sizeof temporary) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                              clab_temporary_root(), strerror(errno));
    struct clab_str text = {0};
    clab_graph_dot(listing, &text);
    const char *target = is_drawn ? temporary : path;
    clab_status status = CLAB_OK;
    if (text.failed)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the graph of '%s'", listing->entry);
    else if (clab_file_write_atomic(target, text.text, text.bytes) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", target, strerror(errno));
    if (status == CLAB_OK && is_drawn)
        status = draw(temporary, kind, path, error);
    if (temporary[0] != '\0')
        (void)unlink(temporary);
    clab_str_free(&text);
    return status;
}
