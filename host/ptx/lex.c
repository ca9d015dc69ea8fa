/* The lexer: PTX text to tokens (PTX ISA 9.0, 4.1 "Source Format" to 4.5 "Constants"). Comments of both C
   styles are white space, and so are line markers (# 1 "file") and lines that start with @@ (old DWARF
   lines). Left out: macros. */
#include "ptx/lex.h"

#include <float.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 1, START = 2, DIGIT = 4, HEX = 8, SPACE = 16 };

#define LETTER(c)  [c] = NAME | START
#define HEXLET(c)  [c] = NAME | START | HEX
#define DECIMAL(c) [c] = NAME | DIGIT | HEX
static const unsigned char classes[256] = {
    [' '] = SPACE,        ['\t'] = SPACE,       ['\r'] = SPACE, ['\n'] = SPACE, ['\f'] = SPACE,
    ['_'] = NAME | START, ['$'] = NAME | START, ['%'] = START,  HEXLET('a'),    HEXLET('b'),
    HEXLET('c'),          HEXLET('d'),          HEXLET('e'),    HEXLET('f'),    LETTER('g'),
    LETTER('h'),          LETTER('i'),          LETTER('j'),    LETTER('k'),    LETTER('l'),
    LETTER('m'),          LETTER('n'),          LETTER('o'),    LETTER('p'),    LETTER('q'),
    LETTER('r'),          LETTER('s'),          LETTER('t'),    LETTER('u'),    LETTER('v'),
    LETTER('w'),          LETTER('x'),          LETTER('y'),    LETTER('z'),    HEXLET('A'),
    HEXLET('B'),          HEXLET('C'),          HEXLET('D'),    HEXLET('E'),    HEXLET('F'),
    LETTER('G'),          LETTER('H'),          LETTER('I'),    LETTER('J'),    LETTER('K'),
    LETTER('L'),          LETTER('M'),          LETTER('N'),    LETTER('O'),    LETTER('P'),
    LETTER('Q'),          LETTER('R'),          LETTER('S'),    LETTER('T'),    LETTER('U'),
    LETTER('V'),          LETTER('W'),          LETTER('X'),    LETTER('Y'),    LETTER('Z'),
    DECIMAL('0'),         DECIMAL('1'),         DECIMAL('2'),   DECIMAL('3'),   DECIMAL('4'),
    DECIMAL('5'),         DECIMAL('6'),         DECIMAL('7'),   DECIMAL('8'),   DECIMAL('9'),
};
#undef LETTER
#undef HEXLET
#undef DECIMAL

static bool is(char c, int class)
{
    return (classes[(unsigned char)c] & class) != 0;
}

bool ptx_name_char(char c)
{
    return is(c, NAME);
}

void ptx_lexer_init(struct ptx_lexer *lexer, const char *text, size_t bytes)
{
    *lexer = (struct ptx_lexer){.at = text, .end = text + bytes, .line_start = text, .line = 1};
}

void ptx_lexer_fini(struct ptx_lexer *lexer)
{
    if (lexer->locale)
        freelocale((locale_t)lexer->locale);
    lexer->locale = NULL;
}

static void skip_line(struct ptx_lexer *lexer)
{
    const char *newline = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
    lexer->at = newline ? newline : lexer->end;
}

/* A line marker at '#', up to its newline: `# 1 "file" …` or `#line 1 "file" …`, numbers and the name in
   quotes (ptxas 13.0 takes it anywhere between tokens, and no other line with #). NULL: it is none. */
static const char *line_marker(const char *at)
{
    at++;
    if (strncmp(at, "line", 4) == 0 && (at[4] == ' ' || at[4] == '\t'))
        at += 4;
    while (*at == ' ' || *at == '\t')
        at++;
    if (!is(*at, DIGIT))
        return NULL;
    while (is(*at, DIGIT))
        at++;
    while (*at == ' ' || *at == '\t')
        at++;
    if (*at != '"')
        return NULL;
    for (at++; *at && *at != '"' && *at != '\n'; at++)
        ;
    if (*at != '"')
        return NULL;
    for (at++; *at == ' ' || *at == '\t' || *at == '\r' || is(*at, DIGIT); at++)
        ;
    return *at == '\n' || *at == 0 ? at : NULL;
}

bool ptx_lex_space(struct ptx_lexer *lexer)
{
    for (;;) {
        const char *at = lexer->at;
        while (is(*at, SPACE)) {
            if (*at++ == '\n') {
                lexer->line++;
                lexer->line_start = at;
            }
        }
        lexer->at = at;
        if (at[0] == '/' && at[1] == '/') {
            skip_line(lexer);
        } else if (at[0] == '/' && at[1] == '*') {
            at += 2;
            for (; !(at[0] == '*' && at[1] == '/'); at++) {
                if (at >= lexer->end)
                    return false;
                if (*at == '\n') {
                    lexer->line++;
                    lexer->line_start = at + 1;
                }
            }
            lexer->at = at + 2;
        } else if (at[0] == '#' && line_marker(at)) {
            lexer->at = line_marker(at);
        } else if (at == lexer->line_start && at[0] == '@' && at[1] == '@') {
            skip_line(lexer);
        } else {
            return true;
        }
    }
}

static unsigned hex_value(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

/* Digits of `base` into *out, modulo 2^64 as ptxas 13.0 reads longer ones; false when there are none. */
static bool lex_digits(const char **at, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; is(**at, HEX); (*at)++) {
        unsigned digit = hex_value(**at);
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    *out = value;
    return *at != start;
}

/* 0fXXXXXXXX and 0dXXXXXXXXXXXXXXXX: `digits` hexadecimal digits exactly. */
static bool lex_float_bits(const char **at, unsigned digits, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < digits; i++, (*at)++) {
        if (!is(**at, HEX))
            return false;
        value = value << 4 | hex_value(**at);
    }
    *out = value;
    return true;
}

/* Is the decimal number's mantissa zero? (Then a value of 0 is no underflow.) */
static bool all_zero(const char *at, const char *end)
{
    while (at < end && (*at == '0' || *at == '.'))
        at++;
    return at == end || (*at | 32) == 'e';
}

static void lex_number(struct ptx_lexer *lexer, struct ptx_token *token)
{
    const char *at = lexer->at;
    bool good;
    token->kind = PTX_TOKEN_INT;
    char second = (char)(at[1] | 32);
    if (at[0] == '0' && (second == 'f' || second == 'd')) {
        token->kind = PTX_TOKEN_FLOAT;
        token->is_f32 = second == 'f';
        at += 2;
        good = lex_float_bits(&at, token->is_f32 ? 8 : 16, &token->value);
        token->what = token->is_f32 ? "0f needs exactly 8 hexadecimal digits"
                                    : "0d needs exactly 16 hexadecimal digits";
    } else if (at[0] == '0' && second == 'x') {
        at += 2;
        good = lex_digits(&at, 16, &token->value);
        token->what = "hexadecimal number without digits";
    } else if (at[0] == '0' && second == 'b' && (at[2] == '0' || at[2] == '1')) {
        at += 2;
        good = lex_digits(&at, 2, &token->value) && at - lexer->at <= 2 + 64;
        token->what = "binary number of more than 64 digits";
    } else {
        const char *end = at;
        while (is(*end, DIGIT))
            end++;
        bool is_float = *end == '.' || (*end | 32) == 'e';
        if (is_float) {
            if (*end == '.')
                do
                    end++;
                while (is(*end, DIGIT));
            const char *exponent = end;
            if ((*exponent | 32) == 'e') {
                exponent++;
                if (*exponent == '+' || *exponent == '-')
                    exponent++;
                if (is(*exponent, DIGIT)) {
                    while (is(*exponent, DIGIT))
                        exponent++;
                    end = exponent;
                }
            }
            token->kind = PTX_TOKEN_FLOAT;
            if (!lexer->locale)
                lexer->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
            char *stop = NULL;
            double value = lexer->locale ? strtod_l(at, &stop, (locale_t)lexer->locale) : 0.0;
            good = stop == end && value <= DBL_MAX && (value >= DBL_MIN || all_zero(at, end));
            memcpy(&token->value, &value, sizeof value);
            token->what = "malformed decimal number, or one beyond the range of .f64";
            at = end;
        } else {
            good = lex_digits(&at, at[0] == '0' ? 8 : 10, &token->value);
            if (at < end) /* 08 and 09: not octal */
                good = false, at = end;
            token->what = "integer with a digit that its base lacks";
        }
    }
    if (token->kind == PTX_TOKEN_INT && *at == 'U') {
        token->is_unsigned = true;
        at++;
    }
    if (token->value > INT64_MAX)
        token->is_unsigned = true;
    if (is(*at, NAME)) {
        good = false;
        token->what = "number followed by a letter";
        while (is(*at, NAME))
            at++;
    }
    if (!good)
        token->kind = PTX_TOKEN_BAD;
    lexer->at = at;
}

static void lex_punct(struct ptx_lexer *lexer, struct ptx_token *token)
{
    static const struct {
        char text[3];
        short punct;
    } pairs[] = {{"<<", PTX_PUNCT_SHL}, {">>", PTX_PUNCT_SHR}, {"<=", PTX_PUNCT_LE},  {">=", PTX_PUNCT_GE},
                 {"==", PTX_PUNCT_EQ},  {"!=", PTX_PUNCT_NE},  {"&&", PTX_PUNCT_AND}, {"||", PTX_PUNCT_OR}};
    const char *at = lexer->at;
    token->kind = PTX_TOKEN_PUNCT;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (at[0] == pairs[i].text[0] && at[1] == pairs[i].text[1]) {
            token->punct = pairs[i].punct;
            lexer->at = at + 2;
            return;
        }
    }
    token->punct = *at;
    lexer->at = at + 1;
    if (!strchr("()[]{}<>,;:+-*/%&|^~!?=@", *at)) {
        token->kind = PTX_TOKEN_BAD;
        token->what = "character that PTX does not use";
    }
}

void ptx_lex(struct ptx_lexer *lexer, struct ptx_token *token)
{
    bool closed = ptx_lex_space(lexer);
    const char *at = lexer->at;
    token->text = at;
    token->line = lexer->line;
    token->column = (uint32_t)(at - lexer->line_start) + 1;
    token->is_unsigned = token->is_f32 = false;
    token->what = NULL;
    token->value = 0;
    if (!closed || at >= lexer->end) {
        token->kind = closed ? PTX_TOKEN_END : PTX_TOKEN_BAD;
        token->what = "comment without its end";
        lexer->at = lexer->end;
    } else if (is(*at, START) && !((*at == '%' || *at == '$') && !is(at[1], NAME))) {
        token->kind = PTX_TOKEN_NAME;
        for (at++; is(*at, NAME); at++)
            ;
        lexer->at = at;
    } else if (*at == '.' && is(at[1], NAME) && !is(at[1], DIGIT)) {
        token->kind = PTX_TOKEN_DOT;
        for (at++; is(*at, NAME) || (at[0] == ':' && at[1] == ':' && is(at[2], NAME)); at++)
            if (*at == ':')
                at++;
        lexer->at = at;
    } else if (is(*at, DIGIT) || (*at == '.' && is(at[1], DIGIT))) {
        lex_number(lexer, token);
    } else if (*at == '"') {
        const char *quote = at + 1;
        for (; quote < lexer->end && *quote != '"'; quote++) { /* no escapes: ptxas 13.0 */
            if (*quote == '\n') {
                lexer->line++;
                lexer->line_start = quote + 1;
            }
        }
        token->kind = *quote == '"' ? PTX_TOKEN_STRING : PTX_TOKEN_BAD;
        token->what = "string without its end";
        lexer->at = *quote == '"' ? quote + 1 : quote;
        if (lexer->at > lexer->end)
            lexer->at = lexer->end;
    } else {
        lex_punct(lexer, token);
    }
    token->bytes = (uint32_t)(lexer->at - token->text);
}
