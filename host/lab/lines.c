/* From a field path to a line: a tokenizer for Lua 5.4 (manual §3.1) and just enough of its grammar to walk
   table constructors. It never fails: what it cannot follow gives the line of the last step that it could.
   Left out: fields set by assignment, metatables, values returned by other functions than the one in place.
 */
#include "lab/lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind { END, NAME, STRING, NUMBER, SYMBOL };

struct token {
    enum kind kind;
    const char *text; /* a STRING's content, quotes excluded (escapes are left as they are) */
    size_t bytes;
    uint32_t line;
};

struct scan {
    struct token *tokens; /* the last one is END */
    size_t count;
};

/* Length of a long bracket's opening "[==[" at p, with its level; 0: there is none. */
static size_t long_open(const char *p, const char *end, size_t *level)
{
    const char *q = p + 1;
    while (q < end && *q == '=')
        q++;
    *level = (size_t)(q - p) - 1;
    return *p == '[' && q < end && *q == '[' ? *level + 2 : 0;
}

/* End of the long bracket's content that starts at p; *after is past its closing bracket. */
static const char *long_close(const char *p, const char *end, size_t level, uint32_t *line,
                              const char **after)
{
    for (; p < end; p++) {
        if (*p == '\n')
            ++*line;
        if (*p != ']')
            continue;
        const char *q = p + 1;
        while (q < end && *q == '=')
            q++;
        if ((size_t)(q - p) - 1 == level && q < end && *q == ']') {
            *after = q + 1;
            return p;
        }
    }
    *after = end;
    return end;
}

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool tokenize(const char *text, size_t bytes, struct scan *scan)
{
    const char *p = text, *end = text + bytes;
    uint32_t line = 1;
    scan->count = 0;
    scan->tokens = malloc((bytes + 1) * sizeof *scan->tokens);
    if (scan->tokens == NULL)
        return false;
    while (p < end) {
        struct token token = {SYMBOL, p, 1, line};
        size_t level, opening;
        if (*p == '\n')
            line++;
        if (isspace((unsigned char)*p)) {
            p++;
            continue;
        }
        if (end - p >= 2 && p[0] == '-' && p[1] == '-') {
            p += 2;
            if (p < end && (opening = long_open(p, end, &level)) != 0)
                long_close(p + opening, end, level, &line, &p);
            else
                while (p < end && *p != '\n')
                    p++;
            continue;
        }
        if (*p == '"' || *p == '\'') {
            char quote = *p++;
            token.kind = STRING;
            token.text = p;
            while (p < end && *p != quote && *p != '\n')
                p += *p == '\\' && end - p > 1 ? 2 : 1;
            token.bytes = (size_t)(p - token.text);
            p += p < end && *p == quote;
        } else if ((opening = long_open(p, end, &level)) != 0) {
            token.kind = STRING;
            token.text = p + opening;
            token.bytes = (size_t)(long_close(p + opening, end, level, &line, &p) - token.text);
        } else if (name_char(*p)) {
            token.kind = isdigit((unsigned char)*p) ? NUMBER : NAME;
            while (p < end && (name_char(*p) || (token.kind == NUMBER && *p == '.')))
                p++;
            token.bytes = (size_t)(p - token.text);
        } else {
            if (end - p >= 2 && p[1] == '=' && strchr("=~<>", *p) != NULL)
                token.bytes = 2; /* so that == is no assignment */
            p += token.bytes;
        }
        scan->tokens[scan->count++] = token;
    }
    scan->tokens[scan->count] = (struct token){END, end, 0, line};
    return true;
}

static bool is(const struct token *token, const char *text)
{
    return (token->kind == NAME || token->kind == SYMBOL) && strlen(text) == token->bytes &&
           memcmp(token->text, text, token->bytes) == 0;
}

/* +1 for a token that opens a block or bracket, -1 for one that closes it. `while` and `for` open with their
 * `do`. */
static int nesting(const struct token *token)
{
    static const char *const opening[] = {"(", "{", "[", "function", "if", "do", "repeat"};
    static const char *const closing[] = {")", "}", "]", "end", "until"};
    for (size_t i = 0; i < sizeof opening / sizeof *opening; i++)
        if (is(token, opening[i]))
            return 1;
    for (size_t i = 0; i < sizeof closing / sizeof *closing; i++)
        if (is(token, closing[i]))
            return -1;
    return 0;
}

/* First token at or after `at` that ends the expression there: a separator or closing bracket at its own
 * depth. */
static size_t skip_expression(const struct scan *scan, size_t at)
{
    int depth = 0;
    for (; scan->tokens[at].kind != END; at++) {
        const struct token *token = &scan->tokens[at];
        if (depth == 0 && (is(token, ",") || is(token, ";")))
            break;
        depth += nesting(token);
        if (depth < 0)
            break;
    }
    return at;
}

/* The value of one field of the constructor whose '{' is at `at`; 0: no such field. *out_line: of its key. */
static size_t find_field(const struct scan *scan, size_t at, const struct clab_step *step, uint32_t *out_line)
{
    const struct token *t = scan->tokens;
    long long position = 0;
    for (at++; t[at].kind != END && !is(&t[at], "}");) {
        size_t value = at;
        const struct token *key = NULL;
        if (t[at].kind == NAME && is(&t[at + 1], "=")) {
            key = &t[at];
            value = at + 2;
        } else if (is(&t[at], "[") && t[at + 1].kind == STRING && is(&t[at + 2], "]")) {
            key = &t[at + 1];
            value = at + 4;
        } else if (is(&t[at], "[")) {
            value = skip_expression(scan, at + 1) + 2;
            if (value >= scan->count)
                return 0;
            key = &t[at + 1];
        } else {
            position++;
        }
        bool found = step->key != NULL
                         ? key != NULL && key->kind != NUMBER && strlen(step->key) == key->bytes &&
                               memcmp(step->key, key->text, key->bytes) == 0
                         : key == NULL && position == step->index;
        if (found && value < scan->count) {
            *out_line = t[at].line;
            return value;
        }
        at = skip_expression(scan, value);
        if (is(&t[at], ",") || is(&t[at], ";"))
            at++;
        else if (!is(&t[at], "}"))
            return 0;
    }
    return 0;
}

/* Where the last `return` at the top of the block that starts at `at` has its expression; 0: none. */
static size_t find_return(const struct scan *scan, size_t at, bool in_function)
{
    size_t found = 0;
    int depth = 0;
    for (; scan->tokens[at].kind != END; at++) {
        depth += nesting(&scan->tokens[at]);
        if (in_function && depth < 0)
            break;
        if (is(&scan->tokens[at], "return") && (depth == 0 || found == 0))
            found = at + 1;
    }
    return found;
}

/* From an expression to the '{' of the constructor that makes its value; 0: not followed. */
static size_t find_constructor(const struct scan *scan, size_t at, int fuel)
{
    const struct token *t = scan->tokens;
    if (fuel == 0 || at >= scan->count)
        return 0;
    if (is(&t[at], "{"))
        return at;
    if (is(&t[at], "function")) {
        size_t value = find_return(scan, at + 1, true);
        return value != 0 ? find_constructor(scan, value, fuel - 1) : 0;
    }
    if (t[at].kind != NAME)
        return 0;
    if (is(&t[at + 1], "{"))
        return at + 1;
    if (is(&t[at + 1], "("))
        return is(&t[at + 2], "{") ? at + 2 : 0;
    for (size_t i = at; i-- > 0;) { /* a variable or function: where it was last given its value */
        if (t[i].kind != NAME || t[i].bytes != t[at].bytes || memcmp(t[i].text, t[at].text, t[i].bytes) != 0)
            continue;
        if (is(&t[i + 1], "="))
            return find_constructor(scan, i + 2, fuel - 1);
        if (i > 0 && is(&t[i - 1], "function"))
            return find_constructor(scan, i - 1, fuel - 1);
    }
    return 0;
}

uint32_t clab_line_find(const char *text, size_t bytes, uint32_t function_line, const struct clab_step *steps,
                        size_t n_steps)
{
    struct scan scan;
    if (!tokenize(text, bytes, &scan))
        return function_line;
    size_t at = 0;
    uint32_t line = function_line;
    if (function_line == 0) {
        at = find_return(&scan, 0, false);
        line = at != 0 ? scan.tokens[at].line : 0;
    } else {
        while (scan.tokens[at].kind != END &&
               !(scan.tokens[at].line == function_line && is(&scan.tokens[at], "function")))
            at++;
    }
    for (size_t i = 0; i < n_steps && at < scan.count; i++) {
        size_t table = find_constructor(&scan, at, 16);
        at = table != 0 ? find_field(&scan, table, &steps[i], &line) : 0;
        if (at == 0)
            break;
    }
    free(scan.tokens);
    return line;
}
