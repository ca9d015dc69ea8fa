/* Compiles insn.def's syntax and roles columns (their notation is in its header) into the tables of forms.h,
   once per process. Implements nothing of the manual itself. The tables are built in one arena, reachable
   from one static pointer, and are read-only afterwards. */
#include "ptx/forms.h"

#include <pthread.h>
#include <string.h>

enum { HASH_SIZE = 2048 };
_Static_assert(PTX_MOD_COUNT + (unsigned)PTX_TYPE_COUNT + (unsigned)PTX_SPACE_COUNT < HASH_SIZE / 2,
               "hash too small");

static struct tables {
    pthread_once_t once;
    struct clab_arena arena;
    struct ptx_forms forms;
    ptx_word words[HASH_SIZE];
    uint16_t roots[HASH_SIZE]; /* index + 1 */
    bool built;
} tables = {.once = PTHREAD_ONCE_INIT};

static uint32_t hash(const char *text, size_t bytes)
{
    uint32_t value = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ (unsigned char)text[i]) * 16777619u;
    return value ^ value >> 15;
}

const char *ptx_word_text(ptx_word word)
{
    unsigned index = ptx_word_index(word);
    switch (word & PTX_WORD_KIND) {
    case PTX_WORD_TYPE:
        return ptx_types[index].text;
    case PTX_WORD_SPACE:
        return ptx_space_text[index];
    default:
        return ptx_mod_text[index];
    }
}

static bool same(const char *name, const char *text, size_t bytes)
{
    return strncmp(name, text, bytes) == 0 && name[bytes] == 0;
}

static void word_add(unsigned word, const char *text)
{
    uint32_t at = hash(text, strlen(text)) % HASH_SIZE;
    while (tables.words[at])
        at = (at + 1) % HASH_SIZE;
    tables.words[at] = (ptx_word)word;
}

ptx_word ptx_word_get(const char *text, size_t bytes)
{
    if (!ptx_forms_get())
        return 0;
    for (uint32_t at = hash(text, bytes) % HASH_SIZE; tables.words[at]; at = (at + 1) % HASH_SIZE)
        if (same(ptx_word_text(tables.words[at]), text, bytes))
            return tables.words[at];
    return 0;
}

const struct ptx_root *ptx_root_get(const struct ptx_forms *forms, const char *text, size_t bytes)
{
    for (uint32_t at = hash(text, bytes) % HASH_SIZE; tables.roots[at]; at = (at + 1) % HASH_SIZE)
        if (same(forms->roots[tables.roots[at] - 1].name, text, bytes))
            return &forms->roots[tables.roots[at] - 1];
    return NULL;
}

/* --- syntax column */

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

static ptx_word word_find(const char *text, size_t bytes) /* ptx_word_get before the tables are complete */
{
    for (uint32_t at = hash(text, bytes) % HASH_SIZE; tables.words[at]; at = (at + 1) % HASH_SIZE)
        if (same(ptx_word_text(tables.words[at]), text, bytes))
            return tables.words[at];
    return 0;
}

static unsigned number(const char **at)
{
    unsigned value = 0;
    while (**at >= '0' && **at <= '9')
        value = value * 10 + (unsigned)(*(*at)++ - '0');
    return value;
}

static bool targets_get(const char **at, uint8_t *out)
{
    static const struct {
        const char *name;
        uint8_t on;
    } sets[] = {
#define PTX_ON(id, text) {#id, PTX_ON_##id},
#include "ptx/targets.def"
#undef PTX_ON
    };
    const char *end = *at;
    while (word_char(*end))
        end++;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (same(sets[i].name, *at, (size_t)(end - *at))) {
            *out = sets[i].on;
            *at = end;
            return true;
        }
    }
    return false;
}

/* word{@isa{/sm-or-set}} at *at. */
static bool choice_read(const char **at, struct ptx_choice *choice)
{
    const char *end = *at;
    while (word_char(*end))
        end++;
    *choice = (struct ptx_choice){.word = word_find(*at, (size_t)(end - *at)), .on = PTX_ON_ALL_FROM};
    *at = end;
    if (!choice->word)
        return false;
    if (**at != '@')
        return true;
    (*at)++;
    choice->isa = (uint16_t)number(at);
    if (**at != '/')
        return true;
    (*at)++;
    if (targets_get(at, &choice->on))
        return true;
    choice->sm = (uint16_t)number(at);
    return choice->sm != 0;
}

/* a|b|c up to `end`. */
static bool choices_read(const char *at, const char *end, bool optional, struct ptx_slot *slot)
{
    unsigned count = 1;
    for (const char *p = at; p < end; p++)
        count += *p == '|';
    struct ptx_choice *choices = clab_arena_array(&tables.arena, count, sizeof *choices);
    if (!choices)
        return false;
    *slot = (struct ptx_slot){.choices = choices, .n_choices = (uint16_t)count, .optional = optional};
    for (unsigned i = 0; i < count; i++) {
        if (i && *at++ != '|')
            return false;
        if (*at == '.')
            at++;
        if (!choice_read(&at, &choices[i]))
            return false;
    }
    return at == end;
}

static const char *brace_end(const char *open)
{
    unsigned depth = 0;
    for (const char *at = open; *at; at++) {
        depth += *at == '{';
        if (*at == '}' && --depth == 0)
            return at;
    }
    return NULL;
}

enum { MAX_SLOTS = 32, MAX_SYNTAX = 2048, MAX_VARIANTS = 4096 };
struct expansion {
    struct ptx_variant *variants;
    unsigned n_variants;
    enum ptx_row row;
};

/* Appends the variants of the qualifiers text[at..) after the `count` slots already read. Groups recurse:
   each once without and once with its contents. */
static bool expand(struct expansion *out, const char *text, struct ptx_slot *slots, unsigned count)
{
    const char *at = text;
    while (*at && *at != ' ') {
        if (*at == '!') {
            for (unsigned i = 0; i < count; i++)
                slots[i].fixed = true;
            at++;
            continue;
        }
        if (count >= MAX_SLOTS)
            return false;
        if (at[0] == '.' && at[1] == '{') {
            const char *close = brace_end(at + 1);
            if (!close || !choices_read(at + 2, close, false, &slots[count++]))
                return false;
            at = close + 1;
        } else if (at[0] == '.') {
            const char *end = at + 1;
            while (word_char(*end) || *end == '@' || *end == '/')
                end++;
            if (!choices_read(at + 1, end, false, &slots[count++]))
                return false;
            at = end;
        } else if (at[0] == '{') {
            const char *close = brace_end(at);
            if (!close)
                return false;
            bool group = false;
            for (const char *p = at + 2; p < close; p++)
                group |= *p == '{' || *p == '.';
            if (!group) {
                if (!choices_read(at + 1, close, true, &slots[count++]))
                    return false;
                at = close + 1;
                continue;
            }
            struct ptx_slot *copy = clab_arena_array(&tables.arena, MAX_SLOTS, sizeof *copy);
            size_t inner = (size_t)(close - at - 1), rest = strlen(close + 1);
            char *spliced = clab_arena_alloc(&tables.arena, inner + rest + 1);
            if (!copy || !spliced)
                return false;
            memcpy(copy, slots, count * sizeof *copy);
            memcpy(spliced, at + 1, inner);
            memcpy(spliced + inner, close + 1, rest);
            return expand(out, close + 1, slots, count) && expand(out, spliced, copy, count);
        } else {
            return false;
        }
    }
    if (out->n_variants >= MAX_VARIANTS)
        return false;
    struct ptx_slot *kept = clab_arena_array(&tables.arena, count ? count : 1, sizeof *kept);
    if (!kept)
        return false;
    memcpy(kept, slots, count * sizeof *kept);
    out->variants[out->n_variants++] = (struct ptx_variant){out->row, kept, (uint16_t)count};
    return true;
}

/* --- roles column */

static bool role_type_read(const char **at, struct ptx_role *role)
{
    if (**at == '*') {
        role->by = PTX_ROLE_ANY;
        (*at)++;
    } else if ((*at)[0] == '2' && (*at)[1] == 'x') {
        role->by = PTX_ROLE_DOUBLE;
        *at += 2;
    } else if (**at >= '0' && **at <= '9') {
        role->by = PTX_ROLE_INDEX;
        role->type = (uint8_t)number(at);
    } else {
        const char *end = *at;
        while (word_char(*end))
            end++;
        ptx_word word = word_find(*at, (size_t)(end - *at));
        if ((word & PTX_WORD_KIND) != PTX_WORD_TYPE)
            return false;
        role->by = PTX_ROLE_FIXED;
        role->type = (uint8_t)ptx_word_index(word);
        *at = end;
    }
    return true;
}

/* + _ - . h b after the letter or after the type. */
static void role_flags_read(const char **at, struct ptx_role *role)
{
    for (; **at && strchr("+_-.hb", **at); (*at)++) {
        role->widens |= **at == '+';
        role->sinks |= **at == '_';
        role->negates |= **at == '-';
        role->selects = **at == '.' ? 1 : **at == 'h' ? 2 : **at == 'b' ? 4 : role->selects;
    }
}

static bool role_read(const char **at, struct ptx_role *role)
{
    *role = (struct ptx_role){0};
    if (**at == '{') {
        role->optional = true;
        (*at)++;
    }
    if (!strchr("wxreailfupksyg", **at))
        return false;
    role->letter = *(*at)++;
    if (**at == 'v') {
        role->vector = PTX_ROLE_BY_MOD;
        (*at)++;
    } else if (**at == '[') {
        (*at)++;
        if (**at == '*') {
            role->vector = PTX_ROLE_CLASS;
            (*at)++;
        } else {
            role->vector = (uint8_t)number(at);
        }
        if (*(*at)++ != ']')
            return false;
    }
    role_flags_read(at, role);
    if (**at == ':') {
        (*at)++;
        if (!role_type_read(at, role))
            return false;
    }
    role_flags_read(at, role);
    if (**at == '=') { /* =4|8|16 or =24..256/8 */
        do {
            (*at)++;
            bool minus = **at == '-';
            *at += minus;
            if (role->n_values >= sizeof role->values / sizeof role->values[0])
                return false;
            int32_t value = (int32_t)number(at);
            role->values[role->n_values++] = minus ? -value : value;
        } while (**at == '|');
        if ((*at)[0] == '.' && (*at)[1] == '.') {
            *at += 2;
            role->has_range = true;
            role->values[1] = (int32_t)number(at);
            role->values[2] = 1;
            if (**at == '/') {
                (*at)++;
                role->values[2] = (int32_t)number(at);
            }
            role->n_values = 3;
        }
    }
    if (**at == '?') {
        (*at)++;
        const char *end = *at;
        while (word_char(*end))
            end++;
        role->when = word_find(*at, (size_t)(end - *at));
        *at = end;
        if (!role->when)
            return false;
    }
    bool optional_pair = (*at)[0] == '{' && (*at)[1] == '|';
    if (optional_pair || **at == '|') {
        *at += optional_pair ? 2 : 1;
        struct ptx_role second = {0};
        if (*(*at)++ != 'w' || *(*at)++ != ':' || !role_type_read(at, &second) || second.by != PTX_ROLE_FIXED)
            return false;
        role->pair = optional_pair ? 1 : 2;
        role->pair_type = (enum ptx_type)second.type;
        if (optional_pair && *(*at)++ != '}')
            return false;
    }
    if (role->optional && *(*at)++ != '}')
        return false;
    return true;
}

static bool roles_read(const char *text, struct ptx_form *form)
{
    unsigned count = 0;
    for (const char *at = text; *at; at++)
        count += *text && (at == text || *at == ' ');
    struct ptx_role *roles = clab_arena_array(&tables.arena, count ? count : 1, sizeof *roles);
    if (!roles)
        return false;
    form->roles = roles;
    const char *at = text;
    for (unsigned i = 0; i < count; i++) {
        if (i && *at++ != ' ')
            return false;
        if (!role_read(&at, &roles[i]))
            return false;
        form->n_required = (uint8_t)(form->n_required + !roles[i].optional);
    }
    form->n_roles = (uint8_t)count;
    return *at == 0;
}

/* --- all of it */

static size_t root_length(const char *syntax)
{
    return strcspn(syntax, ".{! ");
}

static bool roots_build(void)
{
    struct ptx_root *roots = clab_arena_array(&tables.arena, PTX_ROW_COUNT, sizeof *roots);
    const char **names = clab_arena_array(&tables.arena, PTX_ROW_COUNT, sizeof *names);
    unsigned *row_root = clab_arena_array(&tables.arena, PTX_ROW_COUNT, sizeof *row_root);
    struct ptx_variant *variants = clab_arena_array(&tables.arena, MAX_VARIANTS, sizeof *variants);
    enum ptx_row *rows = clab_arena_array(&tables.arena, PTX_ROW_COUNT, sizeof *rows);
    if (!roots || !names || !row_root || !variants || !rows)
        return false;
    unsigned n_roots = 0;
    for (unsigned row = 0; row < PTX_ROW_COUNT; row++) {
        const char *syntax = ptx_rows[row].syntax;
        size_t bytes = root_length(syntax);
        uint32_t at = hash(syntax, bytes) % HASH_SIZE;
        while (tables.roots[at] && !same(roots[tables.roots[at] - 1].name, syntax, bytes))
            at = (at + 1) % HASH_SIZE;
        if (!tables.roots[at]) {
            names[n_roots] = roots[n_roots].name = clab_arena_strndup(&tables.arena, syntax, bytes);
            if (!names[n_roots])
                return false;
            tables.roots[at] = (uint16_t)++n_roots;
        }
        row_root[row] = tables.roots[at] - 1u;
    }
    struct expansion out = {.variants = variants};
    unsigned n_rows = 0;
    for (unsigned root = 0; root < n_roots; root++) {
        roots[root].rows = rows + n_rows;
        roots[root].variants = variants + out.n_variants;
        for (unsigned row = 0; row < PTX_ROW_COUNT; row++) {
            if (row_root[row] != root)
                continue;
            struct ptx_slot slots[MAX_SLOTS];
            out.row = (enum ptx_row)row;
            rows[n_rows++] = out.row;
            if (!expand(&out, ptx_rows[row].syntax + root_length(ptx_rows[row].syntax), slots, 0)) {
                tables.forms.fault = ptx_rows[row].name;
                return true;
            }
        }
        roots[root].n_rows = (uint16_t)(rows + n_rows - roots[root].rows);
        roots[root].n_variants = (uint16_t)(variants + out.n_variants - roots[root].variants);
    }
    tables.forms.roots = roots;
    tables.forms.root_names = names;
    tables.forms.n_roots = (uint16_t)n_roots;
    return true;
}

static void build(void)
{
    unsigned n_words = 0;
    const char **names = clab_arena_array(
        &tables.arena, PTX_MOD_COUNT + (size_t)PTX_TYPE_COUNT + PTX_SPACE_COUNT, sizeof *names);
    struct ptx_form *forms = clab_arena_array(&tables.arena, PTX_ROW_COUNT, sizeof *forms);
    if (!names || !forms)
        return;
    for (unsigned i = 0; i < PTX_MOD_COUNT; i++)
        word_add(PTX_WORD_MOD | i, names[n_words++] = ptx_mod_text[i]);
    for (unsigned i = 1; i < PTX_TYPE_COUNT; i++)
        word_add(PTX_WORD_TYPE | i, names[n_words++] = ptx_types[i].text);
    for (unsigned i = 1; i < PTX_SPACE_COUNT; i++)
        word_add(PTX_WORD_SPACE | i, names[n_words++] = ptx_space_text[i]);
    tables.forms.word_names = names;
    tables.forms.n_words = (uint16_t)n_words;
    if (!roots_build())
        return;
    for (unsigned row = 0; row < PTX_ROW_COUNT && !tables.forms.fault; row++)
        if (!roles_read(ptx_rows[row].roles, &forms[row]))
            tables.forms.fault = ptx_rows[row].name;
    tables.forms.forms = forms;
    tables.built = true;
}

const struct ptx_forms *ptx_forms_get(void)
{
    pthread_once(&tables.once, build);
    return tables.built ? &tables.forms : NULL;
}
