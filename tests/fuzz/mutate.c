/* See mutate.h. A text is cut into tokens; a mutation works on one or two of them, or on lines. */
#include "mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind { BLANK, LINE_END, WORD, DOTTED, REGISTER, NUMBER, OTHER };

struct token {
    uint32_t at, length; /* in `text`, or with `word` set in that */
    const char *word;    /* replaces it */
    enum kind kind;
    bool gone;
};

struct mutation {
    const char *text;
    struct token *tokens;
    uint32_t n;
    uint64_t state;
};

static uint32_t below(struct mutation *m, uint32_t limit)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return limit ? (uint32_t)(m->state >> 20) % limit : 0;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static struct token cut(const char *text, uint32_t at, uint32_t bytes)
{
    struct token token = {.at = at, .length = 1, .kind = OTHER};
    const char c = text[at];
    uint32_t end = at + 1;
    if (c == '\n') {
        token.kind = LINE_END;
    } else if (c == ' ' || c == '\t') {
        token.kind = BLANK;
    } else if (c == '/' && end < bytes && text[end] == '/') {
        token.kind = BLANK;
        while (end < bytes && text[end] != '\n')
            end++;
    } else if (isdigit((unsigned char)c)) {
        token.kind = NUMBER;
    } else if (c == '.' || c == '%' || is_word(c)) {
        token.kind = c == '.' ? DOTTED : c == '%' ? REGISTER : WORD;
    }
    if (token.kind == NUMBER || token.kind == DOTTED || token.kind == REGISTER || token.kind == WORD)
        while (end < bytes &&
               (is_word(text[end]) ||
                (text[end] == ':' && end + 1 < bytes && text[end + 1] == ':' && token.kind == DOTTED) ||
                (text[end] == ':' && text[end - 1] == ':' && token.kind == DOTTED)))
            end++;
    token.length = end - at;
    return token;
}

/* Some token of a kind, or UINT32_MAX. */
static uint32_t pick(struct mutation *m, enum kind kind)
{
    const uint32_t start = below(m, m->n);
    for (uint32_t i = 0; i < m->n && i < 4000; i++) {
        const uint32_t at = (start + i) % m->n;
        if (m->tokens[at].kind == kind && !m->tokens[at].gone)
            return at;
    }
    return UINT32_MAX;
}

/* [first, end) of the line of a token, its end with it. */
static void line_of(const struct mutation *m, uint32_t at, uint32_t *first, uint32_t *end)
{
    *first = *end = at;
    while (*first > 0 && m->tokens[*first - 1].kind != LINE_END)
        --*first;
    while (*end < m->n && m->tokens[*end].kind != LINE_END)
        ++*end;
    *end += *end < m->n;
}

static void put(struct token *token, const char *word)
{
    token->word = word;
    token->length = (uint32_t)strlen(word);
}

static void number(struct mutation *m)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "4",
                                          "7",
                                          "8",
                                          "15",
                                          "16",
                                          "31",
                                          "32",
                                          "33",
                                          "63",
                                          "64",
                                          "127",
                                          "128",
                                          "255",
                                          "256",
                                          "1023",
                                          "1024",
                                          "4095",
                                          "4096",
                                          "65535",
                                          "65536",
                                          "1048576",
                                          "16777216",
                                          "0x7fffffff",
                                          "0x80000000",
                                          "0xffffffff",
                                          "0x100000000",
                                          "0x7fffffffffffffff",
                                          "0x8000000000000000",
                                          "0xffffffffffffffff",
                                          "0f00000000",
                                          "0f7FC00000",
                                          "0f7F800000",
                                          "0d7FF0000000000000",
                                          "100000",
                                          "99999999999999999999",
                                          "1.5",
                                          "017",
                                          "0b101"};
    const uint32_t at = pick(m, NUMBER);
    if (at != UINT32_MAX)
        put(&m->tokens[at], numbers[below(m, sizeof numbers / sizeof numbers[0])]);
}

static void dotted(struct mutation *m)
{
    static const char *const types[] = {".u8",    ".u16", ".u32",   ".u64",  ".s8",     ".s16",
                                        ".s32",   ".s64", ".b8",    ".b16",  ".b32",    ".b64",
                                        ".b128",  ".f16", ".f16x2", ".bf16", ".bf16x2", ".f32",
                                        ".f32x2", ".f64", ".pred",  ".v2",   ".v4",     ".v8"};
    static const char *const spaces[] = {".global",      ".shared", ".shared::cta", ".shared::cluster",
                                         ".local",       ".const",  ".param",       ".param::entry",
                                         ".param::func", ".reg",    ".tex"};
    static const char *const others[] = {
        ".volatile", ".relaxed", ".acquire",  ".release", ".acq_rel", ".sys",    ".gpu",     ".cta",
        ".cluster",  ".wide",    ".hi",       ".lo",      ".sat",     ".ftz",    ".rn",      ".rz",
        ".rm",       ".rp",      ".rni",      ".eq",      ".ne",      ".lt",     ".geu",     ".nan",
        ".aligned",  ".sync",    ".uni",      ".approx",  ".full",    ".extern", ".visible", ".weak",
        ".align",    ".ptr",     ".noreturn", ".maxntid", ".reqntid"};
    const uint32_t at = pick(m, DOTTED);
    if (at == UINT32_MAX)
        return;
    switch (below(m, 4)) {
    case 0:
        put(&m->tokens[at], spaces[below(m, sizeof spaces / sizeof spaces[0])]);
        break;
    case 1:
        put(&m->tokens[at], others[below(m, sizeof others / sizeof others[0])]);
        break;
    default:
        put(&m->tokens[at], types[below(m, sizeof types / sizeof types[0])]);
    }
}

/* One token becomes what another of its kind says. */
static void exchange(struct mutation *m, enum kind kind)
{
    const uint32_t a = pick(m, kind), b = pick(m, kind);
    if (a == UINT32_MAX || b == UINT32_MAX)
        return;
    const struct token old = m->tokens[a];
    m->tokens[a] = m->tokens[b];
    if (below(m, 3) == 0)
        m->tokens[b] = old;
}

/* The letters of a register's name: %rd12 is another kind of register than %r12. */
static uint32_t prefix(const struct mutation *m, uint32_t at)
{
    const struct token *token = &m->tokens[at];
    uint32_t n = 1;
    while (!token->word && n < token->length && isalpha((unsigned char)m->text[token->at + n]))
        n++;
    return n;
}

/* A register becomes another of its kind: what comes out still parses. */
static void other_register(struct mutation *m)
{
    const uint32_t a = pick(m, REGISTER);
    for (unsigned tries = 0; a != UINT32_MAX && tries < 30; tries++) {
        const uint32_t b = pick(m, REGISTER), n = prefix(m, a);
        if (b == UINT32_MAX || m->tokens[a].word || m->tokens[b].word || prefix(m, b) != n ||
            memcmp(m->text + m->tokens[a].at, m->text + m->tokens[b].at, n) != 0 ||
            (m->tokens[a].length == m->tokens[b].length &&
             memcmp(m->text + m->tokens[a].at, m->text + m->tokens[b].at, m->tokens[a].length) == 0))
            continue;
        m->tokens[a] = m->tokens[b];
        return;
    }
}

static void line(struct mutation *m, uint32_t what)
{
    uint32_t a, a_end, b, b_end;
    line_of(m, below(m, m->n), &a, &a_end);
    line_of(m, below(m, m->n), &b, &b_end);
    if (what == 0) {
        for (uint32_t i = a; i < a_end; i++)
            m->tokens[i].gone = true;
        return;
    }
    /* One line over the other, as far as there is room. */
    for (uint32_t i = 0; a + i < a_end && b + i < b_end; i++) {
        const struct token old = m->tokens[a + i];
        m->tokens[a + i] = m->tokens[b + i];
        if (what == 1)
            m->tokens[b + i] = old;
    }
}

static void mutate_once(struct mutation *m)
{
    static const char *const odd[] = {"{",
                                      "}",
                                      "(",
                                      ")",
                                      "[",
                                      "]",
                                      ",",
                                      ";",
                                      "|",
                                      "!",
                                      "-",
                                      "+",
                                      "@%p1",
                                      "_",
                                      "ret;",
                                      "bra",
                                      "exit;",
                                      "\"",
                                      "/*",
                                      "<4>",
                                      "<100000>",
                                      "= {1, 2}",
                                      ".target sm_100a",
                                      "trap;"};
    uint32_t at;
    switch (below(m, 24)) {
    case 0:
    case 1:
    case 2:
        number(m);
        break;
    case 3:
    case 4:
        dotted(m);
        break;
    case 5:
    case 6:
        exchange(m, REGISTER);
        break;
    case 7:
    case 8:
        exchange(m, WORD);
        break;
    case 9:
        exchange(m, DOTTED);
        break;
    case 10:
        line(m, 0);
        break;
    case 11:
        line(m, 1);
        break;
    case 12:
        line(m, 2);
        break;
    case 13:
        at = below(m, m->n);
        m->tokens[at].gone = m->tokens[at].kind != LINE_END;
        break;
    case 14:
    case 15:
    case 16:
        exchange(m, NUMBER);
        break;
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
    case 22:
        other_register(m);
        break;
    default:
        at = pick(m, below(m, 2) ? OTHER : BLANK);
        if (at != UINT32_MAX)
            put(&m->tokens[at], odd[below(m, sizeof odd / sizeof odd[0])]);
    }
}

/* A comment that fuzz_run reads. */
static const char *launch_comment(struct mutation *m)
{
    static const char *const launches[] = {"// grid=1 block=32 how=0\n",
                                           "// grid=4 block=64 cluster=2 how=0\n",
                                           "// grid=2 block=33 how=32\n",
                                           "// grid=8 block=128 cluster=4 how=288\n",
                                           "// grid=3 block=1024 smem=4096 how=1\n",
                                           "// grid=16 block=32 cluster=16 arch=sm_100 how=4\n",
                                           "// grid=5 block=96 arch=sm_120 how=40\n",
                                           "// grid=4 block=32 arch=sm_100 how=25\n",
                                           "// grid=2 block=256 cluster=2 smem=65536 how=3\n"};
    return below(m, 3) == 0 ? launches[below(m, sizeof launches / sizeof launches[0])] : "";
}

size_t fuzz_mutate(uint64_t seed, const char *text, size_t bytes, char *out, size_t capacity)
{
    struct mutation m = {.text = text, .state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1};
    size_t length = 0;
    m.tokens = malloc((bytes + 1) * sizeof *m.tokens);
    if (m.tokens == NULL)
        return 0;
    for (uint32_t at = 0; at < bytes; at += m.tokens[m.n++].length)
        m.tokens[m.n] = cut(text, at, (uint32_t)bytes);
    for (uint32_t left = m.n ? 1 + below(&m, 5) : 0; left > 0; left--)
        mutate_once(&m);
    const char *comment = launch_comment(&m);
    if (strlen(comment) < capacity) {
        length = strlen(comment);
        memcpy(out, comment, length);
    }
    for (uint32_t i = 0; i < m.n; i++) {
        const struct token *token = &m.tokens[i];
        if (token->gone)
            continue;
        if (token->length > capacity - length)
            break;
        memcpy(out + length, token->word ? token->word : text + token->at, token->length);
        length += token->length;
    }
    free(m.tokens);
    return length;
}
