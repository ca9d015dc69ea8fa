/* Tokens of PTX text (PTX ISA 9.0, chapter 4 "Syntax"). The lexer is pulled one token at a time and allocates
 * nothing. */
#ifndef CLAB_PTX_LEX_H
#define CLAB_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_NAME,   /* identifier: %r1, $L__BB0_1, foo, _ */
    PTX_TOKEN_DOT,    /* dotted word, the dot included: .reg, .shared::cta */
    PTX_TOKEN_INT,    /* value; is_unsigned */
    PTX_TOKEN_FLOAT,  /* value: bits of a double, or of a float when is_f32 */
    PTX_TOKEN_STRING, /* with its quotes */
    PTX_TOKEN_PUNCT,  /* punct: a character, or one of the PTX_PUNCT_* */
    PTX_TOKEN_BAD     /* a character or literal that PTX does not have; `what` says why */
};
enum {
    PTX_PUNCT_SHL = 256,
    PTX_PUNCT_SHR,
    PTX_PUNCT_LE,
    PTX_PUNCT_GE,
    PTX_PUNCT_EQ,
    PTX_PUNCT_NE,
    PTX_PUNCT_AND,
    PTX_PUNCT_OR
};

struct ptx_token {
    enum ptx_token_kind kind;
    int punct;
    bool is_unsigned, is_f32;
    const char *text;
    uint32_t bytes;
    uint32_t line, column; /* 1-based */
    uint64_t value;
    const char *what;
};

struct ptx_lexer {
    const char *at, *end, *line_start;
    uint32_t line;
    void *locale; /* a "C" locale for decimal floats, made when first needed */
};

/* text[bytes] must be NUL. */
void ptx_lexer_init(struct ptx_lexer *lexer, const char *text, size_t bytes);
void ptx_lexer_fini(struct ptx_lexer *lexer);
void ptx_lex(struct ptx_lexer *lexer, struct ptx_token *out_token);
/* Skips white space and comments; false at an unterminated comment. */
bool ptx_lex_space(struct ptx_lexer *lexer);
/* May `c` be part of an identifier after its first character? */
bool ptx_name_char(char c);

#endif
