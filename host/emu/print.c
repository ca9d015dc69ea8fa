/* vprintf: a format string and a block of arguments, both in the kernel's memory. CUDA C++ Programming Guide,
   "Formatted Output": flags, width, precision and sizes as in C; arguments lie one after the other, each at a
   multiple of its own size, floats widened to double. A conversion that the guide does not have is printed as
   it stands, as there.

   Leaves out: the 1 MiB buffer whose oldest text a GPU drops; nothing is lost here. */
#include "emu/print.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "emu/access.h"

#define PRINT_FORMAT_BYTES 4096
#define PRINT_FIELD_MAX    4096 /* widest field, and largest precision */

bool emu_print_string(struct emu_warp *warp, const struct emu_op *op, unsigned lane, uint64_t address,
                      char *out_text, size_t size)
{
    if (!address) {
        snprintf(out_text, size, "(null)");
        return true;
    }
    for (size_t i = 0; i + 1 < size; i++) {
        enum clab_space_id space;
        const unsigned char *at =
            emu_access_lane(warp, op, lane, EMU_REACH_GENERIC, address + i, 1, EMU_LOAD, &space);
        if (!at) {
            return false;
        }
        out_text[i] = (char)*at;
        if (!*at) {
            return true;
        }
    }
    out_text[size - 1] = 0;
    return true;
}

/* Where the next argument is read. */
struct arguments {
    struct emu_warp *warp;
    const struct emu_op *op;
    unsigned lane;
    uint64_t base, used;
    int32_t count;
};

static bool argument_read(struct arguments *arguments, unsigned bytes, uint64_t *out_value)
{
    enum clab_space_id space;
    arguments->used = (arguments->used + bytes - 1) / bytes * bytes;
    const unsigned char *at =
        emu_access_lane(arguments->warp, arguments->op, arguments->lane, EMU_REACH_GENERIC,
                        arguments->base + arguments->used, bytes, EMU_LOAD, &space);
    if (!at) {
        return false;
    }
    *out_value = 0;
    memcpy(out_value, at, bytes);
    arguments->used += bytes;
    arguments->count++;
    return true;
}

/* A number or `*` of a width or precision; -1 for none. */
static bool field_read(struct arguments *arguments, const char **at, int *out_value)
{
    *out_value = -1;
    if (**at == '*') {
        uint64_t value;
        ++*at;
        if (!argument_read(arguments, 4, &value)) {
            return false;
        }
        *out_value = (int32_t)value;
    } else if (isdigit((unsigned char)**at)) {
        *out_value = (int)strtol(*at, (char **)(uintptr_t)at, 10);
    }
    if (*out_value > PRINT_FIELD_MAX || *out_value < -1) {
        *out_value = PRINT_FIELD_MAX;
    }
    return true;
}

struct conversion {
    char flags[8];
    int width, precision;
    unsigned bytes; /* of an integer argument */
    char letter;
};

/* Reads what follows a `%`; *at is left behind the conversion's letter. */
static bool conversion_read(struct arguments *arguments, const char **at, struct conversion *out)
{
    size_t n = 0;
    while (**at && strchr("-+ #0", **at)) {
        if (n + 1 < sizeof out->flags && !memchr(out->flags, **at, n)) {
            out->flags[n++] = **at;
        }
        ++*at;
    }
    out->flags[n] = 0;
    out->precision = -1;
    if (!field_read(arguments, at, &out->width)) {
        return false;
    }
    if (**at == '.') {
        ++*at;
        if (!field_read(arguments, at, &out->precision)) {
            return false;
        }
        out->precision = out->precision < 0 ? 0 : out->precision;
    }
    out->bytes = 4;
    while (**at && strchr("hlzjt", **at)) {
        out->bytes = **at == 'h' ? out->bytes : 8;
        ++*at;
    }
    out->letter = **at;
    *at += **at != 0;
    return true;
}

/* The C specification with the length modifier of the value passed. */
static void specification(const struct conversion *conversion, const char *length, char out_text[48])
{
    char width[12] = "", precision[12] = "";
    if (conversion->width >= 0) {
        snprintf(width, sizeof width, "%d", conversion->width);
    }
    if (conversion->precision >= 0) {
        snprintf(precision, sizeof precision, ".%d", conversion->precision);
    }
    snprintf(out_text, 48, "%%%s%s%s%s%c", conversion->flags, width, precision, length, conversion->letter);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* specifications are made of checked parts */
static bool conversion_print(struct arguments *arguments, const struct conversion *conversion,
                             struct clab_str *out)
{
    char spec[48], text[PRINT_FORMAT_BYTES];
    uint64_t value;
    switch (conversion->letter) {
    case 'd':
    case 'i':
        if (!argument_read(arguments, conversion->bytes, &value)) {
            return false;
        }
        specification(conversion, "ll", spec);
        clab_str_addf(out, spec, conversion->bytes == 4 ? (long long)(int32_t)value : (long long)value);
        return true;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (!argument_read(arguments, conversion->bytes, &value)) {
            return false;
        }
        specification(conversion, "ll", spec);
        clab_str_addf(out, spec, (unsigned long long)value);
        return true;
    case 'p':
        if (!argument_read(arguments, 8, &value)) {
            return false;
        }
        specification(conversion, "", spec);
        clab_str_addf(out, spec, (void *)(uintptr_t)value);
        return true;
    case 'c':
        if (!argument_read(arguments, 4, &value)) {
            return false;
        }
        specification(conversion, "", spec);
        clab_str_addf(out, spec, (int)(value & 0xff));
        return true;
    case 's':
        if (!argument_read(arguments, 8, &value) ||
            !emu_print_string(arguments->warp, arguments->op, arguments->lane, value, text, sizeof text)) {
            return false;
        }
        specification(conversion, "", spec);
        clab_str_addf(out, spec, text);
        return true;
    default: {
        double number;
        if (!argument_read(arguments, 8, &value)) {
            return false;
        }
        memcpy(&number, &value, sizeof number);
        specification(conversion, "", spec);
        clab_str_addf(out, spec, number);
        return true;
    }
    }
}
#pragma GCC diagnostic pop

bool emu_print(struct emu_warp *warp, const struct emu_op *op, unsigned lane, uint64_t format,
               uint64_t arguments, int32_t *out_count)
{
    char text[PRINT_FORMAT_BYTES];
    struct arguments values = {warp, op, lane, arguments, 0, 0};
    struct clab_str out = {0};
    *out_count = -1;
    if (!format) {
        return true;
    }
    if (!emu_print_string(warp, op, lane, format, text, sizeof text)) {
        return false;
    }
    bool good = true;
    for (const char *at = text; good && *at;) {
        if (*at != '%') {
            const size_t run = strcspn(at, "%");
            clab_str_add_bytes(&out, at, run);
            at += run;
            continue;
        }
        const char *start = at++;
        struct conversion conversion;
        if (*at == '%') {
            clab_str_add(&out, "%");
            at++;
            continue;
        }
        good = conversion_read(&values, &at, &conversion);
        if (good && conversion.letter && strchr("diuoxXpcsaAeEfFgG", conversion.letter)) {
            good = conversion_print(&values, &conversion, &out);
        } else if (good) {
            clab_str_add_bytes(&out, start, (size_t)(at - start));
        }
    }
    if (good && out.bytes) {
        fwrite(out.text, 1, out.bytes, stdout);
    }
    *out_count = values.count;
    clab_str_free(&out);
    return good;
}
