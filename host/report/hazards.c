/* The text of one hazard. Everything in it comes from the record; only source lines are read beside. */
#include "report/hazards.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"

#define SOURCE_LIMIT_BYTES (UINT64_C(1) << 26)

struct paint {
    bool on;
    struct clab_str *out;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static long long number_of(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

/* SGR colours: bold red for hazards, yellow for milder kinds, bold for places, dim for what is quoted. */
static const char *colour(const struct paint *paint, const char *code)
{
    return paint->on ? code : "";
}
#define RED    "\033[1;31m"
#define YELLOW "\033[33m"
#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define PLAIN  "\033[0m"

static void add_triple(struct clab_str *out, const json_t *triple)
{
    for (size_t i = 0; i < 3; i++)
        clab_str_addf(out, "%s%lld", i == 0 ? "(" : ",",
                      (long long)json_integer_value(json_array_get(triple, i)));
    clab_str_add(out, ")");
}

/* "lane 3", "lanes 0-15, 17", "all lanes". */
static void add_lanes(struct clab_str *out, uint32_t lanes)
{
    if (lanes == UINT32_MAX) {
        clab_str_add(out, "all lanes");
        return;
    }
    clab_str_addf(out, "lane%s", (lanes & (lanes - 1)) != 0 ? "s" : "");
    const char *between = " ";
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned last = lane;
        if ((lanes >> lane & 1) == 0)
            continue;
        while (last < 31 && (lanes >> (last + 1) & 1) != 0)
            last++;
        clab_str_addf(out, last > lane ? "%s%u-%u" : "%s%u", between, lane, last);
        between = ", ";
        lane = last;
    }
}

/* One line of a file, without its leading blanks; heap, NULL when it is not there. */
static char *source_line(const char *path, long long line)
{
    size_t bytes;
    char *text = clab_file_read(path, SOURCE_LIMIT_BYTES, &bytes), *at = text, *copy = NULL;
    for (long long i = 1; i < line && at != NULL; i++) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at != NULL) {
        at += strspn(at, " \t");
        copy = strndup(at, strcspn(at, "\r\n"));
    }
    free(text);
    return copy;
}

/* "  file:line" and below it the line itself. False when the place is not known. */
static bool add_place(const struct paint *paint, const json_t *place, const char *instead)
{
    if (!json_is_object(place))
        return false;
    const char *file = clab_path_shown(text_of(place, "file"));
    char *line = source_line(text_of(place, "file"), number_of(place, "line"));
    const char *quoted = line != NULL && line[0] != '\0' ? line : instead;
    clab_str_addf(paint->out, "       %s%s:%lld%s\n", colour(paint, BOLD), file, number_of(place, "line"),
                  colour(paint, PLAIN));
    if (quoted[0] != '\0')
        clab_str_addf(paint->out, "           %s\n", quoted);
    free(line);
    return true;
}

static void add_party(const struct paint *paint, const json_t *party, int number)
{
    struct clab_str *out = paint->out;
    const char *instruction = text_of(party, "instruction");
    if (!json_is_object(party))
        return;
    clab_str_addf(out, "  %d  %s by CTA ", number, text_of(party, "action"));
    add_triple(out, json_object_get(party, "cta"));
    clab_str_addf(out, " rank %lld", number_of(party, "rank"));
    if (json_is_integer(json_object_get(party, "warp"))) {
        clab_str_addf(out, ", warp %lld, ", number_of(party, "warp"));
        add_lanes(out, (uint32_t)number_of(party, "lanes"));
    }
    clab_str_add(out, "\n");
    const json_t *source = json_object_get(party, "source"), *ptx = json_object_get(party, "ptx");
    if (add_place(paint, source, "")) {
        clab_str_addf(out, "           %sPTX line %lld: %s%s\n", colour(paint, DIM), number_of(ptx, "line"),
                      instruction, colour(paint, PLAIN));
        const json_t *caller = json_object_get(party, "caller");
        if (json_is_object(caller))
            clab_str_add(out, "       inlined at\n");
        add_place(paint, caller, "");
    } else if (!add_place(paint, ptx, instruction) && instruction[0] != '\0') {
        clab_str_addf(out, "           %s\n", instruction);
    }
}

/* "tile+8 of rank 1, shared memory, 4 bytes". */
static void add_address(const json_t *hazard, bool owned, struct clab_str *out)
{
    const json_t *address = json_object_get(hazard, "address"), *rank = json_object_get(address, "rank");
    const char *symbol = text_of(address, "symbol");
    char readable[128];
    if (symbol[0] != '\0')
        clab_str_addf(out, "%s+%lld", clab_demangle(symbol, readable, sizeof readable),
                      number_of(address, "offset"));
    else
        clab_str_addf(out, "0x%llx", (unsigned long long)number_of(address, "value"));
    if (owned && json_is_integer(rank))
        clab_str_addf(out, " of rank %lld", (long long)json_integer_value(rank));
}

#define CELL 20 /* columns for one CTA of the picture */

static size_t column_of(const unsigned *ranks, size_t count, unsigned rank)
{
    size_t i = 0;
    while (i < count && ranks[i] != rank)
        i++;
    return i;
}

/* One line of the picture: what a party does, and an arrow to whose memory it does it. */
static void add_arrow(const json_t *party, int number, const unsigned *ranks, size_t count, long long owner,
                      const char *what, struct clab_str *out)
{
    char line[CELL * 4], label[CELL];
    const size_t from = column_of(ranks, count, (unsigned)number_of(party, "rank")) * CELL;
    snprintf(label, sizeof label, "%d %.14s", number, text_of(party, "action"));
    memset(line, ' ', sizeof line);
    memcpy(line + from, label, strlen(label));
    if (owner >= 0 && column_of(ranks, count, (unsigned)owner) < count && owner != number_of(party, "rank") &&
        what[0] != '\0') {
        const size_t to = column_of(ranks, count, (unsigned)owner) * CELL,
                     length = strlen(what) < CELL - 2 ? strlen(what) : CELL - 2;
        memcpy(line + to, what, length);
        const size_t first = from < to ? from + strlen(label) + 1 : to + length + 1,
                     last = from < to ? to - 2 : from - 2;
        for (size_t i = first; i <= last && last < sizeof line; i++)
            line[i] = '-';
        if (first <= last)
            line[from < to ? last : first] = from < to ? '>' : '<';
    }
    size_t end = sizeof line;
    while (end > 0 && line[end - 1] == ' ')
        end--;
    clab_str_addf(out, "       %.*s\n", (int)end, line);
}

/* The CTAs of the cluster that take part, side by side, and what each does to whose memory. */
static void add_picture(const json_t *hazard, unsigned cluster_ctas, struct clab_str *out)
{
    const json_t *parties = json_object_get(hazard, "parties"), *one = json_array_get(parties, 0),
                 *other = json_array_get(parties, 1);
    const json_t *address = json_object_get(hazard, "address"), *rank = json_object_get(address, "rank");
    const long long owner = json_is_integer(rank) ? (long long)json_integer_value(rank) : -1;
    unsigned ranks[3];
    size_t count = 0;
    if (cluster_ctas < 2 || !json_is_object(one))
        return;
    const long long involved[3] = {number_of(one, "rank"),
                                   json_is_object(other) ? number_of(other, "rank") : -1, owner};
    for (size_t i = 0; i < 3; i++) {
        const bool in_range = involved[i] >= 0 && involved[i] < (long long)cluster_ctas;
        if (in_range && column_of(ranks, count, (unsigned)involved[i]) == count)
            ranks[count++] = (unsigned)involved[i];
    }
    if (count < 2 || (json_is_object(other) &&
                      !json_equal(json_object_get(one, "cluster"), json_object_get(other, "cluster"))))
        return;
    for (size_t i = 0; i + 1 < count; i++)
        for (size_t j = 0; j + 1 < count; j++)
            if (ranks[j] > ranks[j + 1]) {
                const unsigned swapped = ranks[j];
                ranks[j] = ranks[j + 1];
                ranks[j + 1] = swapped;
            }
    clab_str_add(out, "\n       ");
    for (size_t i = 0; i < count; i++)
        clab_str_addf(out, i + 1 < count ? "[ rank %-2u ]%*s" : "[ rank %-2u ]", ranks[i], CELL - 11, "");
    clab_str_addf(out, "   cluster ");
    add_triple(out, json_object_get(one, "cluster"));
    clab_str_addf(out, " of %u CTAs\n", cluster_ctas);
    struct clab_str what = {0};
    if (json_is_object(address))
        add_address(hazard, false, &what);
    add_arrow(one, 1, ranks, count, owner, what.text != NULL ? what.text : "", out);
    if (json_is_object(other))
        add_arrow(other, 2, ranks, count, owner, what.text != NULL ? what.text : "", out);
    clab_str_free(&what);
    clab_str_add(out, "\n");
}

static void add_barrier(const json_t *barrier, struct clab_str *out)
{
    if (!json_is_object(barrier))
        return;
    clab_str_addf(out, "     barrier %s%llx: phase %lld, %lld of %lld arrivals pending",
                  number_of(barrier, "id") >= 16 ? "at shared 0x" : "",
                  (unsigned long long)number_of(barrier, "id"), number_of(barrier, "phase"),
                  number_of(barrier, "pending"), number_of(barrier, "expected"));
    if (number_of(barrier, "expected_bytes") != 0 || number_of(barrier, "delivered_bytes") != 0)
        clab_str_addf(out, ", %lld bytes expected, %lld delivered", number_of(barrier, "expected_bytes"),
                      number_of(barrier, "delivered_bytes"));
    clab_str_add(out, "\n");
}

void clab_hazard_print(const json_t *hazard, const char *subject, const char *again, unsigned cluster_ctas,
                       bool is_coloured, struct clab_str *out)
{
    const struct paint paint = {is_coloured, out};
    const bool mild = strcmp(text_of(hazard, "severity"), "mild") == 0;
    const json_t *parties = json_object_get(hazard, "parties");
    const long long count = number_of(hazard, "count");
    const char *space = text_of(hazard, "space"), *within = text_of(hazard, "within");
    clab_str_addf(out, "%s%s  %s%s  in %s", colour(&paint, mild ? YELLOW : RED), mild ? "mild  " : "hazard",
                  text_of(hazard, "kind"), colour(&paint, PLAIN), subject);
    if (json_is_object(json_array_get(parties, 1)))
        clab_str_addf(out, ", within the %s", within);
    clab_str_addf(out, ", %lld time%s\n", count, count == 1 ? "" : "s");
    clab_str_addf(out, "     %s\n", text_of(hazard, "missing"));
    if (json_is_object(json_object_get(hazard, "address"))) {
        clab_str_add(out, "     at ");
        add_address(hazard, true, out);
        clab_str_addf(out, space[0] != '\0' ? ", %s memory" : "%s", space);
        if (number_of(hazard, "bytes") != 0) /* a fault's size stands in its own words */
            clab_str_addf(out, ", %lld byte%s", number_of(hazard, "bytes"),
                          number_of(hazard, "bytes") == 1 ? "" : "s");
        clab_str_add(out, "\n");
    }
    add_barrier(json_object_get(hazard, "barrier"), out);
    add_picture(hazard, cluster_ctas, out);
    add_party(&paint, json_array_get(parties, 0), 1);
    add_party(&paint, json_array_get(parties, 1), 2);
    for (const char *line = text_of(hazard, "detail");
         *line != '\0';) { /* several lines, the last perhaps cut */
        const size_t length = strcspn(line, "\n");
        clab_str_addf(out, "     %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    if (text_of(hazard, "accepted")[0] != '\0')
        clab_str_addf(out, "     accepted by the variant: %s\n", text_of(hazard, "accepted"));
    if (again != NULL)
        clab_str_addf(out, "     %sagain: %s%s\n", colour(&paint, DIM), again, colour(&paint, PLAIN));
    clab_str_add(out, "\n");
}
