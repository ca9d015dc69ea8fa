/* A timeline as a picture that needs nothing else: a panel for each row, a line for each SM, bars for what it
   did. What is not covered by a bar was idle, and stands out. Panels of the same parameters share one scale,
   so that a tail that one variant has and another has not is seen at once; a dashed line is the lower bound.
   Bars are strokes of a few long paths, one for each shade, and bars too narrow to tell apart are drawn as
   one: the picture of 130,000 items stays small. */
#include "report/timeline.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH     1200.0
#define LEFT      46.0
#define RIGHT     20.0
#define HEAD      64.0 /* of the picture */
#define TITLE     26.0 /* of a panel */
#define AXIS      30.0
#define PLOT      (WIDTH - LEFT - RIGHT)
#define LEAST_GAP 0.35 /* pixels: less between two bars is no gap */
#define NARROW    1.5  /* pixels: narrower bars are merged when there is no gap */
#define SHADES    4    /* by duration; and one for time that another kernel held */

static const char *const shades[SHADES + 1] = {"#86b6e0", "#3f86c6", "#1f5a99", "#0c2f5c", "#9a9a9a"};

struct bar {
    double start, end; /* ns */
    long long sm;
    unsigned shade;
};

struct panel {
    const json_t *row, *summary;
    struct bar *bars;
    size_t n_bars;
    long long *sms; /* ids that were seen, ascending */
    size_t n_sms, n_lines;
    double first, last, scale_first, scale_last; /* ns */
    double line;                                 /* pixels an SM */
};

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static void put_escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '>')
            fputs("&gt;", file);
        else
            fputc(*text, file);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;
    if (x->sm != y->sm)
        return x->sm < y->sm ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* Bars of equal length have one shade; the longest of the panel the darkest. */
static unsigned shade_of(double took, double longest)
{
    const double share = longest > 0 ? took / longest : 0;
    return share > 0.75 ? 3 : share > 0.4 ? 2 : share > 0.15 ? 1 : 0;
}

static bool panel_init(struct panel *panel, const json_t *entry)
{
    const json_t *slots = json_object_get(entry, "slots");
    const size_t n = json_array_size(slots) / 6;
    panel->row = json_object_get(entry, "row");
    panel->summary = json_object_get(panel->row, "timeline");
    panel->bars = calloc(n + 1, sizeof *panel->bars);
    panel->sms = calloc(n + 1, sizeof *panel->sms);
    if (panel->bars == NULL || panel->sms == NULL)
        return false;
    double words[6];
    const double longest = number_of(panel->summary, "longest_ns");
    /* One shade when all are alike: the middle one. */
    const bool alike = number_of(panel->summary, "shortest_ns") > 0.7 * longest;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 6; k++)
            words[k] = json_number_value(json_array_get(slots, 6 * i + k));
        struct bar *bar = &panel->bars[panel->n_bars++];
        *bar = (struct bar){.start = words[1], .end = words[2], .sm = (long long)words[3]};
        bar->shade = words[5] != 0 ? SHADES : alike ? 1 : shade_of(words[2] - words[1], longest);
        panel->first = i == 0 || bar->start < panel->first ? bar->start : panel->first;
        panel->last = i == 0 || bar->end > panel->last ? bar->end : panel->last;
    }
    qsort(panel->bars, panel->n_bars, sizeof *panel->bars, by_place);
    for (size_t i = 0; i < panel->n_bars; i++)
        if (i == 0 || panel->bars[i].sm != panel->bars[i - 1].sm)
            panel->sms[panel->n_sms++] = panel->bars[i].sm;
    const size_t device = (size_t)json_integer_value(json_object_get(entry, "sms"));
    panel->n_lines = device > panel->n_sms ? device : panel->n_sms;
    panel->line = panel->n_lines > 100 ? 2 : panel->n_lines > 40 ? 4 : 8;
    return true;
}

static double panel_height(const struct panel *panel)
{
    return TITLE + panel->line * (double)panel->n_lines + AXIS;
}

/* Rows of the same parameters are compared: one scale. */
static void share_scales(struct panel *panels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        panels[i].scale_first = panels[i].first;
        panels[i].scale_last = panels[i].last;
        for (size_t j = 0; j < n; j++)
            if (json_equal(json_object_get(panels[i].row, "params"),
                           json_object_get(panels[j].row, "params"))) {
                panels[i].scale_first = fmin(panels[i].scale_first, panels[j].first);
                panels[i].scale_last = fmax(panels[i].scale_last, panels[j].last);
            }
    }
}

static double place(const struct panel *panel, double ns)
{
    const double span = panel->scale_last - panel->scale_first;
    return LEFT + (span > 0 ? (ns - panel->scale_first) / span * PLOT : 0);
}

static void put_bars(FILE *file, const struct panel *panel, double top, unsigned shade)
{
    const double thick = panel->line > 4 ? panel->line - 1 : panel->line * 0.86;
    size_t line = 0, drawn = SIZE_MAX; /* the line that the path is on, and where */
    double at = 0;
    bool begun = false;
    for (size_t i = 0; i < panel->n_bars; i++) {
        const struct bar *bar = &panel->bars[i];
        while (line + 1 < panel->n_sms && panel->sms[line] != bar->sm)
            line++;
        if (bar->shade != shade)
            continue;
        const double from = place(panel, bar->start);
        double to = place(panel, bar->end);
        bool merged = false;
        while (i + 1 < panel->n_bars && panel->bars[i + 1].sm == bar->sm &&
               panel->bars[i + 1].shade == shade && to - place(panel, panel->bars[i].start) < NARROW &&
               place(panel, panel->bars[i + 1].start) - to < LEAST_GAP) {
            to = place(panel, panel->bars[++i].end);
            merged = true;
        }
        /* A sliver of the ground tells neighbours apart. */
        const double width = to - from - (!merged && to - from > 2 * NARROW ? 0.4 : 0);
        if (!begun)
            fprintf(file, "<path stroke=\"%s\" stroke-width=\"%.2f\" fill=\"none\" d=\"", shades[shade],
                    thick);
        begun = true;
        /* Tenths of a pixel, from the end of the last bar on the same line: a smaller picture. */
        if (drawn == line) {
            const double step = round((from - at) * 10) / 10;
            fprintf(file, "m%g 0", step);
            at += step;
        } else {
            fprintf(file, "M%.1f %g", from, top + panel->line * ((double)line + 0.5));
            at = round(from * 10) / 10;
        }
        const double length = width > 0.1 ? round(width * 10) / 10 : 0.1;
        fprintf(file, "h%g", length);
        at += length;
        drawn = line;
    }
    if (begun)
        fputs("\"/>\n", file);
}

/* 1, 2 or 5 times a power of ten, for about eight ticks. */
static double tick_step(double span)
{
    const double rough = span / 8, power = pow(10, floor(log10(rough > 0 ? rough : 1)));
    const double times = rough / power;
    return (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1) * power;
}

static void put_axis(FILE *file, const struct panel *panel, double bottom)
{
    const double step = tick_step(panel->scale_last - panel->scale_first);
    const double unit = panel->scale_last >= 2e6 ? 1e6 : 1e3;
    fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, bottom + 13,
            unit > 1e3 ? "ms" : "us");
    for (double ns = ceil(panel->scale_first / step) * step; ns <= panel->scale_last; ns += step)
        fprintf(file,
                "<path d=\"M%.1f %.1fv4\" stroke=\"#444\"/><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%g</text>\n",
                place(panel, ns), bottom, place(panel, ns), bottom + 14, ns / unit + 0.0);
}

static void put_title(FILE *file, const struct panel *panel, double top)
{
    const json_t *params = json_object_get(panel->row, "params");
    const char *key;
    json_t *value;
    const double makespan = number_of(panel->summary, "makespan_ns");
    fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" class=\"t\">", LEFT, top + 17);
    put_escaped(file, text_of(panel->row, "variant"));
    json_object_foreach((json_t *)(uintptr_t)params, key, value)
    {
        if (json_is_string(value)) {
            fputs(", ", file);
            put_escaped(file, json_string_value(value));
        }
    }
    fprintf(file, "</text>\n<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s: %.3f ms", WIDTH - RIGHT,
            top + 17, text_of(panel->summary, "kind"), makespan / 1e6);
    if (json_is_number(json_object_get(panel->summary, "over_bound")))
        fprintf(file, ", %.3f x the lower bound", number_of(panel->summary, "over_bound"));
    fprintf(file, ", SMs idle at the end %.1f %%</text>\n", 100 * number_of(panel->summary, "idle_end"));
}

static void put_panel(FILE *file, const struct panel *panel, double top)
{
    const double plot = top + TITLE, height = panel->line * (double)panel->n_lines, bottom = plot + height;
    put_title(file, panel, top);
    /* The ground: idle until the kernel's own end, nothing after it. */
    fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#f4c9c0\"/>\n",
            place(panel, panel->first), plot, place(panel, panel->last) - place(panel, panel->first), height);
    for (unsigned shade = 0; shade <= SHADES; shade++)
        put_bars(file, panel, plot, shade);
    const double bound = number_of(panel->summary, "bound_ns");
    if (bound > 0)
        fprintf(file,
                "<path d=\"M%.1f %.1fv%.1f\" stroke=\"#d0021b\" stroke-dasharray=\"5 3\" fill=\"none\"/>\n",
                place(panel, bound), plot - 4, height + 8);
    fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">SM</text>\n", LEFT - 6, plot + 10);
    put_axis(file, panel, bottom);
}

static void put_head(FILE *file, const json_t *rows)
{
    static const char *const names[] = {"short", "", "", "long", "held by another kernel"};
    const json_t *first = json_array_get(rows, 0), *row = json_object_get(first, "row");
    const char *kind = text_of(json_object_get(row, "timeline"), "kind");
    fprintf(file, "<text x=\"%.0f\" y=\"22\" class=\"h\">", LEFT);
    put_escaped(file, text_of(first, "experiment"));
    fputs(" on ", file);
    put_escaped(file, text_of(json_object_get(row, "device"), "name"));
    fprintf(file, "</text>\n<text x=\"%.0f\" y=\"40\">%s</text>\n", LEFT,
            strcmp(kind, "measured") == 0
                ? "Time is measured: %globaltimer on the GPU."
                : "Time is MODELLED by the emulator's schedule `fair`; nothing here was measured.");
    double x = LEFT;
    for (unsigned i = 0; i <= SHADES; i++) {
        fprintf(file, "<rect x=\"%.0f\" y=\"48\" width=\"18\" height=\"9\" fill=\"%s\"/>", x, shades[i]);
        x += 22;
        if (names[i][0] != '\0') {
            fprintf(file, "<text x=\"%.0f\" y=\"56\">%s</text>\n", x, names[i]);
            x += 10 + 6.2 * (double)strlen(names[i]);
        }
    }
    fprintf(file,
            "<rect x=\"%.0f\" y=\"48\" width=\"18\" height=\"9\" fill=\"#f4c9c0\"/><text x=\"%.0f\" "
            "y=\"56\">idle</text>\n"
            "<path d=\"M%.0f 52h18\" stroke=\"#d0021b\" stroke-dasharray=\"5 3\"/><text x=\"%.0f\" "
            "y=\"56\">lower bound: all "
            "work / SMs, or the longest item</text>\n",
            x, x + 22, x + 60, x + 82);
}

bool clab_timelines_svg(FILE *file, const json_t *rows)
{
    const size_t n = json_array_size(rows);
    struct panel *panels = calloc(n + 1, sizeof *panels);
    bool complete = panels != NULL;
    double height = HEAD;
    for (size_t i = 0; i < n && complete; i++) {
        complete = panel_init(&panels[i], json_array_get(rows, i));
        height += complete ? panel_height(&panels[i]) : 0;
    }
    if (complete) {
        share_scales(panels, n);
        fprintf(file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
                "%.0f\">\n"
                "<style>text{font:11px sans-serif;fill:#222}.h{font-size:17px;font-weight:bold}"
                ".t{font-size:13px;font-weight:bold}</style>\n<rect width=\"100%%\" height=\"100%%\" "
                "fill=\"#fff\"/>\n",
                WIDTH, height, WIDTH, height);
        put_head(file, rows);
        double top = HEAD;
        for (size_t i = 0; i < n; i++) {
            put_panel(file, &panels[i], top);
            top += panel_height(&panels[i]);
        }
        fputs("</svg>\n", file);
    }
    for (size_t i = 0; i < n && panels != NULL; i++) {
        free(panels[i].bars);
        free(panels[i].sms);
    }
    free(panels);
    return complete && ferror(file) == 0;
}
