/* Mangled names, read by recursive descent over the grammar of the Itanium C++ ABI. Every production appends
   what it reads to one text; a substitution or a template argument is a piece of that text, kept by value.
   Not read: expressions and decltype (X, DT), vendor qualifiers, special names (virtual tables, guards). */
#include "base/demangle.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 64u
#define MOST_TEXT  65536u
#define MOST_KEPT  512u
#define MOST_STEPS 4096u /* a function type is read twice, and so is what it holds */

struct list {
    char *of[MOST_KEPT]; /* heap */
    size_t n;
};

struct reader {
    const char *at;
    char *text; /* heap */
    size_t n, capacity;
    unsigned depth;  /* of types in types */
    unsigned nested; /* of names and arguments in such */
    unsigned steps;  /* types read so far */
    bool failed;
    struct list substitutions;
    struct list arguments; /* of the template that was read last: what T_ means */
};

static bool type(struct reader *r);
static bool name(struct reader *r, bool *out_template);
static bool encoding(struct reader *r);
static bool argument(struct reader *r);

static bool fail(struct reader *r)
{
    r->failed = true;
    return false;
}

static bool add_bytes(struct reader *r, const char *bytes, size_t n)
{
    if (r->n + n + 1 > r->capacity) {
        const size_t capacity = 2 * (r->n + n + 64);
        char *grown = capacity <= MOST_TEXT ? realloc(r->text, capacity) : NULL;
        if (!grown) {
            return fail(r);
        }
        r->text = grown;
        r->capacity = capacity;
    }
    memcpy(r->text + r->n, bytes, n);
    r->n += n;
    r->text[r->n] = '\0';
    return true;
}

static bool add(struct reader *r, const char *text)
{
    return add_bytes(r, text, strlen(text));
}

/* Takes back what was appended since `from`. */
static void back(struct reader *r, size_t from)
{
    r->n = from;
    if (r->text) {
        r->text[from] = '\0';
    }
}

static bool take(struct reader *r, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0) {
        return false;
    }
    r->at += n;
    return true;
}

/* What was appended since `from`. */
static bool keep(struct reader *r, struct list *list, size_t from)
{
    const size_t bytes = r->n - from;
    char *copy = list->n < MOST_KEPT && r->text ? malloc(bytes + 1) : NULL;
    if (!copy) {
        return fail(r);
    }
    memcpy(copy, r->text + from, bytes);
    copy[bytes] = '\0';
    list->of[list->n++] = copy;
    return true;
}

static void list_clear(struct list *list)
{
    while (list->n) {
        free(list->of[--list->n]);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "_", "0_", "1_", ...: 0, 1, 2, ...; in base 36 for substitutions. */
static bool sequence(struct reader *r, unsigned base, size_t *out)
{
    size_t value = 0;
    bool any = false;
    for (; *r->at && *r->at != '_'; r->at++) {
        const char c = *r->at;
        const unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                               : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10
                                                      : 99;
        if (digit >= base || value > MOST_KEPT) {
            return fail(r);
        }
        value = value * base + digit;
        any = true;
    }
    *out = any ? value + 1 : 0;
    return take(r, "_") || fail(r);
}

static bool source_name(struct reader *r)
{
    size_t n = 0;
    while (is_digit(*r->at) && n < MOST_TEXT) {
        n = 10 * n + (size_t)(*r->at++ - '0');
    }
    if (n == 0 || memchr(r->at, '\0', n)) {
        return fail(r);
    }
    const char *word = r->at;
    r->at += n;
    /* nvcc's namespaces of internal linkage are called after the file. */
    const bool unnamed = strncmp(word, "_GLOBAL__N", 10) == 0 || strncmp(word, "_INTERNAL_", 10) == 0 ||
                         strncmp(word, "_NV_ANON_NAMESPACE", 18) == 0;
    return unnamed ? add(r, "(anonymous namespace)") : add_bytes(r, word, n);
}

static const char *const builtins[26] = {
    ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
    ['b' - 'a'] = "bool",        ['c' - 'a'] = "char",
    ['a' - 'a'] = "signed char", ['h' - 'a'] = "unsigned char",
    ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
    ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
    ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
    ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
    ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
    ['f' - 'a'] = "float",       ['d' - 'a'] = "double",
    ['e' - 'a'] = "long double", ['g' - 'a'] = "__float128",
    ['z' - 'a'] = "...",
};

/* The text of a number, with the sign that mangling writes as n. */
static bool number(struct reader *r, const char *after)
{
    if (take(r, "n") && !add(r, "-")) {
        return false;
    }
    const char *start = r->at;
    while (is_digit(*r->at) || (*r->at >= 'a' && *r->at <= 'f')) { /* floats are in hexadecimal */
        r->at++;
    }
    return r->at > start && add_bytes(r, start, (size_t)(r->at - start)) && add(r, after) ? true : fail(r);
}

/* After L. */
static bool literal(struct reader *r)
{
    if (take(r, "_Z")) {
        return encoding(r) && (take(r, "E") || fail(r));
    }
    if (take(r, "b0E") || take(r, "b1E")) {
        return add(r, r->at[-2] == '1' ? "true" : "false");
    }
    if (take(r, "DnE") || take(r, "Dn0E")) {
        return add(r, "nullptr");
    }
    const char *after = "";
    if (*r->at == 'i' || *r->at == 'j' || *r->at == 'l' || *r->at == 'm' || *r->at == 'x' || *r->at == 'y') {
        const char c = *r->at++;
        after = c == 'j' ? "u" : c == 'l' ? "l" : c == 'm' ? "ul" : c == 'x' ? "ll" : c == 'y' ? "ull" : "";
    } else if (!add(r, "(") || !type(r) || !add(r, ")")) {
        return fail(r);
    }
    return number(r, after) && (take(r, "E") || fail(r));
}

static bool argument_inside(struct reader *r)
{
    if (take(r, "J")) { /* a pack */
        for (bool first = true; !take(r, "E"); first = false) {
            if ((!first && !add(r, ", ")) || !argument(r)) {
                return fail(r);
            }
        }
        return true;
    }
    return take(r, "L") ? literal(r) : *r->at == 'X' ? fail(r) : type(r);
}

/* After I. */
static bool argument(struct reader *r)
{
    if (r->failed || ++r->nested > MOST_DEPTH) {
        return fail(r);
    }
    const bool ok = argument_inside(r);
    r->nested--;
    return ok;
}

static bool arguments(struct reader *r)
{
    struct list own = {.n = 0};
    bool any = false;
    add(r, "<");
    while (!r->failed && !take(r, "E")) {
        const size_t comma = r->n;
        if (any) {
            add(r, ", ");
        }
        const size_t from = r->n;
        argument(r);
        if (!r->failed) {
            keep(r, &own, from);
        }
        if (r->n == from) { /* an empty pack */
            back(r, comma);
        }
        any |= r->n > from;
    }
    if (r->depth == 0) {
        list_clear(&r->arguments);
        r->arguments = own;
    } else { /* inside a type: T_ means the function's all the same */
        list_clear(&own);
    }
    return !r->failed && add(r, ">");
}

static bool operator_name(struct reader *r)
{
    static const char names[][2][10] = {
        {"nw", " new"}, {"dl", " delete"}, {"na", " new[]"}, {"da", " delete[]"}, {"pl", "+"},  {"mi", "-"},
        {"ml", "*"},    {"dv", "/"},       {"rm", "%"},      {"an", "&"},         {"or", "|"},  {"eo", "^"},
        {"aS", "="},    {"pL", "+="},      {"mI", "-="},     {"mL", "*="},        {"dV", "/="}, {"ls", "<<"},
        {"rs", ">>"},   {"eq", "=="},      {"ne", "!="},     {"lt", "<"},         {"gt", ">"},  {"le", "<="},
        {"ge", ">="},   {"nt", "!"},       {"aa", "&&"},     {"oo", "||"},        {"pp", "++"}, {"mm", "--"},
        {"cm", ","},    {"pt", "->"},      {"cl", "()"},     {"ix", "[]"},        {"ng", "-"},  {"ad", "&"},
        {"de", "*"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (take(r, names[i][0])) {
            return add(r, "operator") && add(r, names[i][1]);
        }
    }
    if (take(r, "cv")) {
        return add(r, "operator ") && type(r);
    }
    return fail(r);
}

/* A name without its scope; `scope`: where that starts in the text, for constructors. */
static bool unqualified(struct reader *r, size_t scope)
{
    size_t number_of;
    (void)take(r, "L"); /* internal linkage */
    if (is_digit(*r->at)) {
        source_name(r);
    } else if (take(r, "Ut")) {
        add(r, "(unnamed type)");
        sequence(r, 10, &number_of);
    } else if (take(r, "Ul")) {
        while (!r->failed && !take(r, "E")) { /* its parameters */
            const size_t from = r->n;
            type(r);
            back(r, from);
        }
        add(r, "(lambda)");
        sequence(r, 10, &number_of);
    } else if ((*r->at == 'C' || *r->at == 'D') && is_digit(r->at[1])) {
        const bool destructor = *r->at == 'D';
        size_t end = r->n >= 2 ? r->n - 2 : 0, depth = 0, start = end; /* before the last :: */
        while (start > scope && (depth || r->text[start - 1] != ':')) {
            start--;
            depth += r->text[start] == '>';
            depth -= r->text[start] == '<' && depth;
        }
        char *class = end > start ? malloc(end - start + 1) : NULL;
        if (!class) {
            return fail(r);
        }
        memcpy(class, r->text + start, end - start);
        class[end - start] = '\0';
        class[strcspn(class, "<")] = '\0';
        r->at += 2;
        add(r, destructor ? "~" : "");
        add(r, class);
        free(class);
    } else {
        operator_name(r);
    }
    while (!r->failed && take(r, "B")) { /* an ABI tag */
        const size_t from = r->n;
        source_name(r);
        back(r, from);
    }
    return !r->failed;
}

/* After S. */
static bool substitution(struct reader *r, bool *out_std)
{
    static const char *const std_names[][2] = {{"a", "std::allocator"}, {"b", "std::basic_string"},
                                               {"s", "std::string"},    {"i", "std::istream"},
                                               {"o", "std::ostream"},   {"d", "std::iostream"}};
    size_t which;
    *out_std = take(r, "t");
    if (*out_std) {
        return add(r, "std");
    }
    for (size_t i = 0; i < sizeof std_names / sizeof std_names[0]; i++) {
        if (take(r, std_names[i][0])) {
            return add(r, std_names[i][1]);
        }
    }
    return sequence(r, 36, &which) && which < r->substitutions.n ? add(r, r->substitutions.of[which])
                                                                 : fail(r);
}

/* After T. */
static bool parameter(struct reader *r)
{
    size_t which;
    return sequence(r, 10, &which) && which < r->arguments.n ? add(r, r->arguments.of[which]) : fail(r);
}

/* After N. */
static bool nested(struct reader *r, bool *out_template)
{
    const size_t scope = r->n;
    bool first = true, is_std = false;
    while (*r->at && strchr("rVKRO", *r->at)) { /* of member functions */
        r->at++;
    }
    *out_template = false;
    while (!r->failed && !take(r, "E")) {
        if (take(r, "I")) {
            if (first || !arguments(r)) {
                return fail(r);
            }
            *out_template = true;
            is_std = false;
        } else {
            is_std = false;
            *out_template = false;
            if (!first) {
                add(r, "::");
            }
            if (take(r, "S")) {
                substitution(r, &is_std);
                is_std = true; /* or what was kept before: it is not kept again */
            } else if (take(r, "T")) {
                parameter(r);
            } else {
                unqualified(r, scope);
            }
        }
        first = false;
        if (!r->failed && !is_std && *r->at != 'E') {
            keep(r, &r->substitutions, scope);
        }
    }
    return !r->failed && !first;
}

/* A discriminator: _0, or __10_. */
static void discriminator(struct reader *r)
{
    if (r->at[0] == '_' && is_digit(r->at[1])) {
        r->at += 2;
    } else if (r->at[0] == '_' && r->at[1] == '_' && is_digit(r->at[2])) {
        r->at += 2;
        while (is_digit(*r->at)) {
            r->at++;
        }
        (void)take(r, "_");
    }
}

static bool name_inside(struct reader *r, bool *out_template)
{
    *out_template = false;
    if (take(r, "N")) {
        return nested(r, out_template);
    }
    if (take(r, "Z")) {
        if (!encoding(r) || !take(r, "E")) {
            return fail(r);
        }
        if (take(r, "s")) { /* a string literal */
            discriminator(r);
            return add(r, "::(string)");
        }
        if (!add(r, "::") || !name(r, out_template)) {
            return fail(r);
        }
        discriminator(r);
        return true;
    }
    const size_t from = r->n;
    bool is_std = false, kept = false;
    if (*r->at == 'S' && r->at[1] != 't') {
        r->at++;
        substitution(r, &is_std);
        kept = true;
    } else {
        if (take(r, "St")) {
            add(r, "std::");
        }
        unqualified(r, from);
    }
    if (!r->failed && *r->at == 'I') {
        r->at++;
        if (!kept) {
            keep(r, &r->substitutions, from);
        }
        *out_template = true;
        return !r->failed && arguments(r);
    }
    return !r->failed;
}

static bool name(struct reader *r, bool *out_template)
{
    *out_template = false;
    if (r->failed || ++r->nested > MOST_DEPTH) {
        return fail(r);
    }
    const bool ok = name_inside(r, out_template);
    r->nested--;
    return ok;
}

/* A function's name, or an object's; the types that follow a function's are read up to E and left out. */
static bool encoding(struct reader *r)
{
    bool is_template;
    if (!name(r, &is_template)) {
        return fail(r);
    }
    const size_t from = r->n;
    while (!r->failed && *r->at && *r->at != 'E') {
        type(r);
    }
    back(r, from);
    return !r->failed;
}

/* After F: "void (int, float)", or of what points to one "void (*)(int, float)". */
static bool function_type(struct reader *r, const char *pointer)
{
    (void)take(r, "Y");
    if (!type(r) || !add(r, " ") || !add(r, pointer) || !add(r, "(")) {
        return fail(r);
    }
    for (bool first = true; !take(r, "E"); first = false) {
        if (take(r, "v")) {
            continue;
        }
        if ((!first && !add(r, ", ")) || !type(r)) {
            return fail(r);
        }
    }
    return add(r, ")");
}

/* After A: "float [10]", or of what refers to one "float (&) [10]". */
static bool array_type(struct reader *r, const char *pointer)
{
    const char *size = r->at;
    while (is_digit(*r->at)) {
        r->at++;
    }
    const size_t digits = (size_t)(r->at - size);
    return take(r, "_") && type(r) && add(r, *pointer ? " " : "") && add(r, pointer) && add(r, " [") &&
                   add_bytes(r, size, digits) && add(r, "]")
               ? true
               : fail(r);
}

/* What stands behind the type; arrays and functions have it in their midst. */
static bool suffixed(struct reader *r, const char *suffix, const char *amidst)
{
    const size_t from = r->n;
    if (amidst && (*r->at == 'F' || *r->at == 'A')) { /* which may be substituted themselves, alone */
        const struct reader before = *r;
        const size_t kept = r->substitutions.n;
        const bool function = *r->at++ == 'F';
        if (!(function ? function_type(r, "") : array_type(r, "")) || !keep(r, &r->substitutions, from)) {
            return fail(r);
        }
        char *alone = r->substitutions.of[--r->substitutions.n];
        while (r->substitutions.n > kept) {
            free(r->substitutions.of[--r->substitutions.n]);
        }
        r->at = before.at + 1;
        back(r, from);
        const bool ok = function ? function_type(r, amidst) : array_type(r, amidst);
        if (!ok || r->substitutions.n == MOST_KEPT) {
            free(alone);
            return fail(r);
        }
        r->substitutions.of[r->substitutions.n++] = alone;
        return true;
    }
    return type(r) && add(r, suffix);
}

/* Types that begin with D. */
static bool extended_type(struct reader *r)
{
    static const char *const names[][2] = {{"Dn", "decltype(nullptr)"}, {"Dh", "_Float16"},
                                           {"Di", "char32_t"},          {"Ds", "char16_t"},
                                           {"Du", "char8_t"},           {"Da", "auto"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (take(r, names[i][0])) {
            return add(r, names[i][1]);
        }
    }
    if (take(r, "Dp")) {
        return type(r);
    }
    if (take(r, "DF16b")) {
        return add(r, "__bf16");
    }
    if (take(r, "DF16_")) {
        return add(r, "_Float16");
    }
    return fail(r);
}

static bool type_inside(struct reader *r)
{
    const size_t from = r->n;
    const char c = *r->at;
    bool is_template, is_std;
    if (c >= 'a' && c <= 'z' && c != 'u' && builtins[c - 'a'] && c != 'r') {
        r->at++;
        return add(r, builtins[c - 'a']);
    }
    if (c == 'S' && r->at[1] != 't') {
        r->at++;
        if (!substitution(r, &is_std)) {
            return false;
        }
        if (*r->at != 'I') {
            return true; /* it is kept already */
        }
        r->at++;
        return arguments(r) && keep(r, &r->substitutions, from);
    }
    bool ok;
    switch (c) {
    case 'P':
        r->at++;
        ok = suffixed(r, "*", "(*)");
        break;
    case 'R':
        r->at++;
        ok = suffixed(r, "&", "(&)");
        break;
    case 'O':
        r->at++;
        ok = suffixed(r, "&&", "(&&)");
        break;
    case 'K':
        r->at++;
        ok = suffixed(r, " const", NULL);
        break;
    case 'V':
        r->at++;
        ok = suffixed(r, " volatile", NULL);
        break;
    case 'r':
        r->at++;
        ok = suffixed(r, " restrict", NULL);
        break;
    case 'F':
        r->at++;
        ok = function_type(r, "");
        break;
    case 'A':
        r->at++;
        ok = array_type(r, "");
        break;
    case 'T':
        r->at++;
        ok = parameter(r);
        if (ok && *r->at == 'I') { /* a template of templates */
            keep(r, &r->substitutions, from);
            r->at++;
            ok = arguments(r);
        }
        break;
    case 'D':
        if (r->at[1] != 'p') {
            return extended_type(r); /* never substituted */
        }
        ok = extended_type(r);
        break;
    case 'u':
        r->at++;
        ok = source_name(r);
        break;
    default:
        ok = name(r, &is_template);
        break;
    }
    return ok && keep(r, &r->substitutions, from);
}

static bool type(struct reader *r)
{
    if (r->failed || ++r->depth > MOST_DEPTH || ++r->steps > MOST_STEPS) {
        return fail(r);
    }
    const bool ok = type_inside(r);
    r->depth--;
    return ok;
}

/* Template arguments that stand inside `depth` others become "...". */
static void collapse(const char *from, unsigned depth, char *to)
{
    unsigned inside = 0;
    for (; *from; from++) {
        const bool opens = *from == '<' && from[1] != '=' && from[1] != '<';
        if (*from == '>' && inside) {
            inside--;
        }
        if (inside <= depth) {
            *to++ = *from;
        }
        if (opens) {
            if (inside == depth) {
                memcpy(to, "...", 3);
                to += 3;
            }
            inside++;
        }
    }
    *to = '\0';
}

/* The whole, or as much of both ends as there is room for. */
static void shorten(const char *text, char *out, size_t bytes)
{
    const size_t n = strlen(text);
    if (n < bytes) {
        memcpy(out, text, n + 1);
        return;
    }
    const size_t room = bytes - 4, head = room / 2, tail = room - head;
    memcpy(out, text, head);
    memcpy(out + head, "...", 3);
    memcpy(out + head + 3, text + n - tail, tail + 1);
}

const char *clab_demangle(const char *symbol, char *out, size_t bytes)
{
    struct reader *r = calloc(1, sizeof *r);
    bool ok = r && strncmp(symbol, "_Z", 2) == 0;
    if (ok) {
        bool is_template;
        r->at = symbol + 2; /* what follows the name are types */
        ok = name(r, &is_template) && r->text;
    }
    const char *text = ok ? r->text : symbol;
    char *shorter = NULL;
    if (ok && strlen(text) >= bytes && (shorter = malloc(4 * strlen(text) + 1)) != NULL) {
        for (unsigned depth = 4; depth-- > 0;) {
            collapse(text, depth, shorter);
            if (strlen(shorter) < bytes) {
                break;
            }
        }
        text = shorter;
    }
    shorten(text, out, bytes);
    free(shorter);
    if (r) {
        list_clear(&r->substitutions);
        list_clear(&r->arguments);
        free(r->text);
    }
    free(r);
    return out;
}
