/* Matching: which rows of insn.def take an opcode's qualifiers (each qualifier in exactly one slot, each
   mandatory slot filled), which of them take the operands, and whether the module's .version and .target have
   that row. Type rules: PTX ISA 9.0, 9.2 "Type Information for Instructions and Operands", as ptxas 13.0
   applies them. */
#include "ptx/match.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ptx/checks.h"

enum { MAX_WORDS = PTX_MAX_MODS + PTX_MAX_TYPES + PTX_MAX_SPACES, MAX_STEPS = 20000, MAX_CANDIDATES = 64 };

struct words {
    ptx_word words[MAX_WORDS];
    unsigned count;
};

/* --- qualifiers against slots */

struct assignment {
    const struct words *words;
    const struct ptx_variant *variant;
    const struct ptx_choice *chosen[MAX_WORDS]; /* by slot */
    unsigned steps;
};

static const struct ptx_choice *choice_of(const struct ptx_slot *slot, ptx_word word)
{
    for (unsigned i = 0; i < slot->n_choices; i++)
        if (slot->choices[i].word == word)
            return &slot->choices[i];
    return NULL;
}

/* Places words[at..): each in a free slot; types after the previous type's slot, spaces after the previous
 * space's. */
static bool assign(struct assignment *a, unsigned at, unsigned least_type, unsigned least_space)
{
    if (at == a->words->count) {
        for (unsigned i = 0; i < a->variant->n_slots; i++)
            if (!a->chosen[i] && !a->variant->slots[i].optional)
                return false;
        return true;
    }
    if (a->steps++ > MAX_STEPS)
        return false;
    ptx_word word = a->words->words[at];
    unsigned kind = word & PTX_WORD_KIND;
    unsigned first = kind == PTX_WORD_TYPE ? least_type : kind == PTX_WORD_SPACE ? least_space : 0;
    for (unsigned i = first; i < a->variant->n_slots; i++) {
        if (a->chosen[i] || a->variant->slots[i].fixed)
            continue;
        a->chosen[i] = choice_of(&a->variant->slots[i], word);
        if (!a->chosen[i])
            continue;
        if (assign(a, at + 1, kind == PTX_WORD_TYPE ? i + 1 : least_type,
                   kind == PTX_WORD_SPACE ? i + 1 : least_space))
            return true;
        a->chosen[i] = NULL;
    }
    return false;
}

/* The fixed slots take the first words in order; the others are placed freely. */
static bool assign_all(struct assignment *a)
{
    unsigned at = 0;
    for (unsigned i = 0; i < a->variant->n_slots && a->variant->slots[i].fixed; i++) {
        const struct ptx_slot *slot = &a->variant->slots[i];
        a->chosen[i] = at < a->words->count ? choice_of(slot, a->words->words[at]) : NULL;
        if (a->chosen[i])
            at++;
        else if (!slot->optional)
            return false;
    }
    return assign(a, at, 0, 0);
}

static struct ptx_candidate candidate_of(const struct assignment *a)
{
    const struct ptx_row_info *row = &ptx_rows[a->variant->row];
    struct ptx_candidate result = {.row = a->variant->row, .isa = row->isa, .sm = row->sm};
    result.on[0] = (uint8_t)row->on;
    result.on[1] = PTX_ON_ALL_FROM;
    for (unsigned i = 0; i < a->variant->n_slots; i++) {
        const struct ptx_choice *choice = a->chosen[i];
        if (!choice)
            continue;
        if (choice->isa > result.isa) {
            result.isa = choice->isa;
            result.isa_word = choice->word;
        }
        if (choice->sm > result.sm) {
            result.sm = choice->sm;
            result.sm_word = choice->word;
        }
        if (choice->on != PTX_ON_ALL_FROM) {
            result.on[1] = choice->on;
            result.on_word = choice->word;
        }
    }
    return result;
}

/* Why no variant of the root takes the words: the first word that no slot of the closest variant takes, or
   the first mandatory slot that stays empty. */
static const char *qualifier_fault(struct clab_arena *arena, const struct ptx_root *root,
                                   const struct words *words)
{
    unsigned best_score = 0;
    const struct ptx_variant *best = NULL;
    ptx_word bad = 0, best_bad = 0;
    const struct ptx_slot *missing = NULL, *best_missing = NULL;
    for (unsigned v = 0; v < root->n_variants; v++) {
        const struct ptx_variant *variant = &root->variants[v];
        bool used[MAX_WORDS] = {false};
        unsigned score = 1;
        bad = 0;
        for (unsigned w = 0; w < words->count; w++) {
            unsigned i = 0;
            while (i < variant->n_slots && (used[i] || !choice_of(&variant->slots[i], words->words[w])))
                i++;
            if (i < variant->n_slots) {
                used[i] = true;
                score += 3;
            } else if (!bad) {
                bad = words->words[w];
            }
        }
        missing = NULL;
        for (unsigned i = 0; i < variant->n_slots; i++) {
            if (!used[i] && !variant->slots[i].optional) {
                missing = &variant->slots[i];
                score = score > 1 ? score - 1 : score;
            }
        }
        if (score > best_score) {
            best_score = score;
            best = variant;
            best_bad = bad;
            best_missing = missing;
        }
    }
    if (!best)
        return clab_arena_printf(arena, "no form of '%s' is known", root->name);
    struct clab_str text = {0};
    if (best_bad && best_missing)
        clab_str_addf(&text, "'.%s' does not belong to '%s'; expected ", ptx_word_text(best_bad), root->name);
    else if (best_bad)
        clab_str_addf(&text, "'.%s' does not belong to '%s' with these qualifiers", ptx_word_text(best_bad),
                      root->name);
    else if (best_missing)
        clab_str_addf(&text, "'%s' lacks ", root->name);
    else
        clab_str_addf(&text, "the qualifiers of '%s' are in an order that has no meaning", root->name);
    for (unsigned i = 0; best_missing && i < best_missing->n_choices && i < 24; i++)
        clab_str_addf(&text, "%s.%s",
                      i == 0                             ? ""
                      : i + 1 == best_missing->n_choices ? " or "
                                                         : ", ",
                      ptx_word_text(best_missing->choices[i].word));
    clab_str_addf(&text, " (form: %s)", ptx_rows[best->row].syntax);
    const char *result =
        text.text ? clab_arena_strndup(arena, text.text, text.bytes < 900 ? text.bytes : 900) : NULL;
    clab_str_free(&text);
    return result;
}

static bool is_repeatable(ptx_word word)
{
    const enum ptx_mod mod = (enum ptx_mod)ptx_word_index(word);
    return (word & PTX_WORD_KIND) == PTX_WORD_MOD &&
           (mod == PTX_MOD_SAT || mod == PTX_MOD_SYNC || mod == PTX_MOD_CC || mod == PTX_MOD_NAN);
}

static bool words_read(struct clab_arena *arena, struct ptx_opcode *opcode, const char *text, size_t bytes,
                       bool suggest, struct words *out)
{
    const struct ptx_forms *forms = ptx_forms_get();
    size_t at = 0;
    while (at < bytes && text[at] != '.')
        at++;
    const struct ptx_root *root = ptx_root_get(forms, text, at);
    if (!root) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", at < sizeof name ? (int)at : (int)sizeof name - 1, text);
        const char *near = suggest ? clab_nearest_name(name, forms->root_names, forms->n_roots) : NULL;
        opcode->fault =
            near ? clab_arena_printf(arena, "unknown instruction '%s'; did you mean '%s'?", name, near)
                 : clab_arena_printf(arena, "unknown instruction '%s'", name);
        return false;
    }
    struct ptx_insn *pattern = &opcode->pattern;
    while (at < bytes) {
        size_t start = ++at;
        while (at < bytes && text[at] != '.')
            at++;
        ptx_word word = ptx_word_get(text + start, at - start);
        if (!word) {
            char name[64];
            size_t length = at - start;
            snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name - 1,
                     text + start);
            const char *near = suggest ? clab_nearest_name(name, forms->word_names, forms->n_words) : NULL;
            opcode->fault =
                near ? clab_arena_printf(arena, "unknown qualifier '.%s' of '%s'; did you mean '.%s'?", name,
                                         root->name, near)
                     : clab_arena_printf(arena, "unknown qualifier '.%s' of '%s'", name, root->name);
            return false;
        }
        unsigned index = ptx_word_index(word);
        bool fits = true;
        switch (word & PTX_WORD_KIND) {
        case PTX_WORD_TYPE:
            if ((fits = pattern->n_types < PTX_MAX_TYPES))
                pattern->types[pattern->n_types++] = (uint8_t)index;
            break;
        case PTX_WORD_SPACE:
            if ((fits = pattern->n_spaces < PTX_MAX_SPACES))
                pattern->spaces[pattern->n_spaces++] = (uint8_t)index;
            break;
        default:
            if ((fits = pattern->n_mods < PTX_MAX_MODS)) {
                pattern->mods[pattern->n_mods++] = (uint16_t)index;
                pattern->mod_bits[index / 64] |= UINT64_C(1) << (index % 64);
            }
        }
        if (!fits) {
            opcode->fault = clab_arena_printf(arena, "'%s' has too many qualifiers", root->name);
            return false;
        }
        if (is_repeatable(word)) { /* ptxas 13.0 does not count these */
            unsigned i = 0;
            while (i < out->count && out->words[i] != word)
                i++;
            if (i < out->count)
                continue;
        }
        out->words[out->count++] = word;
    }
    opcode->root = root;
    return true;
}

struct ptx_opcode *ptx_opcode_read(struct clab_arena *arena, const char *text, size_t bytes, bool suggest)
{
    struct ptx_opcode *opcode = clab_arena_alloc(arena, sizeof *opcode);
    if (!opcode || !ptx_forms_get())
        return NULL;
    struct words words = {.count = 0};
    opcode->vector = 1;
    if (!words_read(arena, opcode, text, bytes, suggest, &words)) {
        opcode->root = NULL;
        return opcode->fault ? opcode : NULL;
    }
    if (ptx_has(&opcode->pattern, PTX_MOD_V2))
        opcode->vector = 2;
    else if (ptx_has(&opcode->pattern, PTX_MOD_V4))
        opcode->vector = 4;
    else if (ptx_has(&opcode->pattern, PTX_MOD_V8))
        opcode->vector = 8;
    const struct ptx_root *root = opcode->root;
    struct ptx_candidate found[MAX_CANDIDATES];
    for (unsigned v = 0; v < root->n_variants && opcode->n_candidates < MAX_CANDIDATES; v++) {
        struct assignment a = {.words = &words, .variant = &root->variants[v]};
        if (assign_all(&a))
            found[opcode->n_candidates++] = candidate_of(&a);
    }
    if (opcode->n_candidates == 0) {
        opcode->fault = qualifier_fault(arena, root, &words);
        opcode->root = NULL;
        return opcode->fault ? opcode : NULL;
    }
    struct ptx_candidate *kept = clab_arena_array(arena, opcode->n_candidates, sizeof *kept);
    if (!kept)
        return NULL;
    memcpy(kept, found, opcode->n_candidates * sizeof *kept);
    opcode->candidates = kept;
    return opcode;
}

/* --- version and target */

static void feature_name(const struct ptx_opcode *opcode, const struct ptx_candidate *candidate,
                         ptx_word word, char *out, size_t size)
{
    if (word)
        snprintf(out, size, "qualifier '.%s' of '%s'", ptx_word_text(word), opcode->root->name);
    else
        snprintf(out, size, "instruction '%.*s'", (int)strcspn(ptx_rows[candidate->row].syntax, " {"),
                 ptx_rows[candidate->row].syntax);
}

static bool available(const struct ptx_match_context *context, const struct ptx_opcode *opcode,
                      const struct ptx_candidate *candidate, char *why, size_t size)
{
    static const char *const set_text[] = {
#define PTX_ON(id, text) text,
#include "ptx/targets.def"
#undef PTX_ON
    };
    char name[128], suffix[2] = {context->target.suffix, 0};
    if (context->target.sm < candidate->sm) {
        feature_name(opcode, candidate, candidate->sm_word, name, sizeof name);
        snprintf(why, size, "%s requires .target sm_%u or higher, not sm_%u%s", name, candidate->sm,
                 context->target.sm, suffix);
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (!ptx_target_in((enum ptx_targets)candidate->on[i], context->target)) {
            feature_name(opcode, candidate, i ? candidate->on_word : 0, name, sizeof name);
            snprintf(why, size, "%s is not supported on .target sm_%u%s; it needs %s", name,
                     context->target.sm, suffix, set_text[candidate->on[i]]);
            return false;
        }
    }
    if (context->version < candidate->isa) {
        feature_name(opcode, candidate, candidate->isa_word, name, sizeof name);
        snprintf(why, size, "%s requires PTX ISA .version %u.%u or later, not %u.%u", name,
                 candidate->isa / 10, candidate->isa % 10, context->version / 10, context->version % 10);
        return false;
    }
    return true;
}

bool ptx_match(const struct ptx_match_context *context, const struct ptx_opcode *opcode,
               struct ptx_insn *insn, char *why, size_t size, uint32_t *out_operand)
{
    struct ptx_attempt attempt = {.context = context, .opcode = opcode, .insn = insn, .operand = UINT32_MAX};
    bool operands_good = false, any = false;
    uint32_t furthest = 0;
    *out_operand = UINT32_MAX;
    for (uint32_t i = 0; i < opcode->n_candidates; i++) {
        const struct ptx_candidate *candidate = &opcode->candidates[i];
        if (ptx_operands_fit(&attempt, candidate->row)) {
            if (available(context, opcode, candidate, attempt.why, sizeof attempt.why)) {
                insn->row = candidate->row;
                return true;
            }
            if (!operands_good)
                snprintf(why, size, "%s", attempt.why);
            *out_operand = UINT32_MAX;
            operands_good = true;
        } else if (!operands_good &&
                   (!any || (attempt.operand != UINT32_MAX && attempt.operand > furthest))) {
            snprintf(why, size, "%s", attempt.why);
            *out_operand = attempt.operand;
            furthest = attempt.operand == UINT32_MAX ? 0 : attempt.operand;
            any = true;
        }
    }
    return false;
}
