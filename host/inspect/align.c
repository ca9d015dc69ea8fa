/* Which instructions of two listings belong together. A global alignment by dynamic programming (Needleman
   and Wunsch) over all instructions finds insertions and deletions; where it would need too much memory the
   problem is halved at A's middle first (Hirschberg). Blocks that it left alone on both sides are then
   matched with each other: those moved. */
#include <stdlib.h>
#include <string.h>

#include "inspect/diff.h"

#define MATRIX_LIMIT ((size_t)16 << 20) /* cells, a byte each */
#define NO_PAIR      (-1)

/* What matters for a match, precomputed: hashes of the opcode, of its first word, and of the operands' shape.
 */
struct key {
    uint64_t opcode, root, shape;
    enum clab_group group;
    bool leads, guarded;
};

struct aligner {
    const struct clab_listing *const *sides;
    struct key *keys[2];
    uint32_t *partner[2];
    uint8_t *matrix;
    int32_t *scores; /* four lines */
    size_t line_cells;
};

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static const uint64_t hash_start = UINT64_C(0xcbf29ce484222325);

static uint64_t shape_of(const struct clab_listing *listing, const char *operands)
{
    uint64_t hash = hash_start;
    bool is_name;
    for (const char *at = operands; *at != '\0';) {
        const size_t bytes = clab_token(at, &is_name);
        const struct clab_name name = is_name ? clab_name_get(listing, at, bytes) : (struct clab_name){0};
        if (is_name && name.kind != CLAB_NAME_OTHER)
            hash = hash_bytes(hash, name.prefix, strlen(name.prefix)) * 31 +
                   (name.kind == CLAB_NAME_PARAMETER ? name.ordinal : 0);
        else
            hash = hash_bytes(hash, at, bytes);
        at += bytes;
    }
    return hash;
}

static struct key *make_keys(const struct clab_listing *listing, struct clab_arena *arena)
{
    struct key *keys = clab_arena_array(arena, (size_t)listing->n_insns + 1, sizeof *keys);
    for (uint32_t i = 0; keys != NULL && i < listing->n_insns; i++) {
        const struct clab_code_insn *insn = &listing->insns[i];
        char text[256];
        const char *opcode = clab_canonical_opcode(insn, text, sizeof text);
        keys[i] = (struct key){
            .opcode = hash_bytes(hash_start, opcode, strlen(opcode)),
            .root = hash_bytes(hash_start, insn->opcode, strcspn(insn->opcode, ".")),
            .shape = shape_of(listing, insn->operands),
            .group = insn->group,
            .leads = listing->blocks[insn->block].first == i,
            .guarded = insn->guard[0] != '\0',
        };
    }
    return keys;
}

/* How well two instructions fit; NO_PAIR when they do not. */
static int fit(const struct key *a, const struct key *b)
{
    if (a->root != b->root)
        return NO_PAIR;
    const int extra = (a->leads == b->leads) + (a->guarded == b->guarded);
    if (a->opcode != b->opcode)
        return 2 + (a->group == b->group) + extra;
    return 8 + extra + (a->shape == b->shape ? 4 : 0);
}

static void pair(struct aligner *al, uint32_t a, uint32_t b)
{
    al->partner[0][a] = b;
    al->partner[1][b] = a;
}

enum { STEP_NONE, STEP_A, STEP_B, STEP_PAIR };

/* The whole matrix: a0..a1 against b0..b1. */
static void align_matrix(struct aligner *al, uint32_t a0, uint32_t a1, uint32_t b0, uint32_t b1)
{
    const size_t columns = (size_t)(b1 - b0) + 1;
    int32_t *before = al->scores, *line = al->scores + al->line_cells;
    memset(before, 0, columns * sizeof *before);
    memset(al->matrix, STEP_B, columns);
    for (uint32_t i = a0; i < a1; i++) {
        uint8_t *steps = al->matrix + (size_t)(i - a0 + 1) * columns;
        line[0] = 0;
        steps[0] = STEP_A;
        for (uint32_t j = b0; j < b1; j++) {
            const size_t c = j - b0 + 1;
            const int score = fit(&al->keys[0][i], &al->keys[1][j]);
            int32_t best = before[c];
            steps[c] = STEP_A;
            if (line[c - 1] >= best) {
                best = line[c - 1];
                steps[c] = STEP_B;
            }
            if (score != NO_PAIR && before[c - 1] + score >= best) {
                best = before[c - 1] + score;
                steps[c] = STEP_PAIR;
            }
            line[c] = best;
        }
        int32_t *swap = before;
        before = line;
        line = swap;
    }
    for (uint32_t i = a1, j = b1; i > a0 || j > b0;) {
        const uint8_t step = i == a0   ? STEP_B
                             : j == b0 ? STEP_A
                                       : al->matrix[(size_t)(i - a0) * columns + (j - b0)];
        if (step == STEP_PAIR)
            pair(al, --i, --j);
        else if (step == STEP_A)
            i--;
        else
            j--;
    }
}

/* Scores of a0..a1 against every beginning (forwards) or end (backwards) of b0..b1, into al->scores line
 * `to`. */
static int32_t *score_line(struct aligner *al, uint32_t a0, uint32_t a1, uint32_t b0, uint32_t b1,
                           bool backwards, unsigned to)
{
    const uint32_t n = a1 - a0, m = b1 - b0;
    int32_t *before = al->scores + to * 2 * al->line_cells, *line = before + al->line_cells;
    memset(before, 0, ((size_t)m + 1) * sizeof *before);
    for (uint32_t i = 0; i < n; i++) {
        line[0] = 0;
        for (uint32_t j = 0; j < m; j++) {
            const int score = fit(&al->keys[0][backwards ? a1 - 1 - i : a0 + i],
                                  &al->keys[1][backwards ? b1 - 1 - j : b0 + j]);
            int32_t best = before[j + 1] > line[j] ? before[j + 1] : line[j];
            if (score != NO_PAIR && before[j] + score > best)
                best = before[j] + score;
            line[j + 1] = best;
        }
        int32_t *swap = before;
        before = line;
        line = swap;
    }
    return before;
}

static void align_range(struct aligner *al, uint32_t a0, uint32_t a1, uint32_t b0, uint32_t b1)
{
    while (a0 < a1 && b0 < b1 && fit(&al->keys[0][a0], &al->keys[1][b0]) == 14)
        pair(al, a0++, b0++);
    while (a0 < a1 && b0 < b1 && fit(&al->keys[0][a1 - 1], &al->keys[1][b1 - 1]) == 14)
        pair(al, --a1, --b1);
    if (a0 == a1 || b0 == b1)
        return;
    if (((size_t)(a1 - a0) + 1) * ((size_t)(b1 - b0) + 1) <= MATRIX_LIMIT || a1 - a0 == 1) {
        align_matrix(al, a0, a1, b0, b1);
        return;
    }
    const uint32_t middle = a0 + (a1 - a0) / 2;
    const int32_t *front = score_line(al, a0, middle, b0, b1, false, 0);
    const int32_t *back = score_line(al, middle, a1, b0, b1, true, 1);
    uint32_t cut = b0;
    int32_t best = -1;
    for (uint32_t j = 0; j <= b1 - b0; j++)
        if (front[j] + back[b1 - b0 - j] > best) {
            best = front[j] + back[b1 - b0 - j];
            cut = b0 + j;
        }
    align_range(al, a0, middle, b0, cut);
    align_range(al, middle, a1, cut, b1);
}

/* Whether a side's block found hardly any partner. */
static bool is_alone(const struct aligner *al, unsigned side, uint32_t block)
{
    const struct clab_code_block *at = &al->sides[side]->blocks[block];
    uint32_t paired = 0;
    for (uint32_t i = at->first; i < at->first + at->count; i++)
        paired += al->partner[side][i] != CLAB_NOWHERE;
    return at->count >= 3 && paired * 3 <= at->count;
}

/* Share of the blocks' instructions that have an equal opcode in the other, in order of neither. */
static double likeness(const struct aligner *al, uint32_t a, uint32_t b)
{
    const struct clab_code_block *x = &al->sides[0]->blocks[a], *y = &al->sides[1]->blocks[b];
    if (x->count > 2 * y->count + 2 || y->count > 2 * x->count + 2 || y->count > 4096)
        return 0;
    bool used[4096] = {false};
    uint32_t common = 0;
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t j = 0; j < y->count; j++)
            if (!used[j] && al->keys[0][x->first + i].opcode == al->keys[1][y->first + j].opcode) {
                used[j] = true;
                common++;
                break;
            }
    return 2.0 * common / (x->count + y->count);
}

static void forget(struct aligner *al, unsigned side, const struct clab_code_block *block)
{
    for (uint32_t i = block->first; i < block->first + block->count; i++)
        if (al->partner[side][i] != CLAB_NOWHERE) {
            al->partner[!side][al->partner[side][i]] = CLAB_NOWHERE;
            al->partner[side][i] = CLAB_NOWHERE;
        }
}

static bool find_moves(struct aligner *al, struct clab_arena *arena, struct clab_alignment *out)
{
    const uint32_t n_b = al->sides[1]->n_blocks;
    bool *taken = clab_arena_array(arena, (size_t)n_b + 1, sizeof *taken);
    if (taken == NULL)
        return false;
    for (uint32_t a = 0; a < al->sides[0]->n_blocks; a++) {
        uint32_t best = CLAB_NOWHERE;
        double best_likeness = 0.7;
        for (uint32_t b = 0; is_alone(al, 0, a) && b < n_b; b++) {
            if (taken[b] || !is_alone(al, 1, b))
                continue;
            const double alike = likeness(al, a, b);
            if (alike >= best_likeness) {
                best = b;
                best_likeness = alike;
            }
        }
        if (best == CLAB_NOWHERE)
            continue;
        const struct clab_code_block *x = &al->sides[0]->blocks[a], *y = &al->sides[1]->blocks[best];
        taken[best] = true;
        forget(al, 0, x);
        forget(al, 1, y);
        align_range(al, x->first, x->first + x->count, y->first, y->first + y->count);
        out->n_moves++;
        for (uint32_t i = x->first; i < x->first + x->count; i++)
            if (al->partner[0][i] != CLAB_NOWHERE)
                out->move[i] = out->n_moves;
    }
    return true;
}

bool clab_align(const struct clab_listing *const sides[2], struct clab_arena *arena,
                struct clab_alignment *out)
{
    const uint32_t n = sides[0]->n_insns, m = sides[1]->n_insns;
    struct aligner al = {.sides = sides};
    struct clab_arena scratch = {0};
    for (unsigned side = 0; side < 2; side++) {
        const uint32_t count = sides[side]->n_insns;
        al.keys[side] = make_keys(sides[side], &scratch);
        al.partner[side] = out->partner[side] = clab_arena_array(arena, (size_t)count + 1, sizeof(uint32_t));
        for (uint32_t i = 0; al.partner[side] != NULL && i < count; i++)
            al.partner[side][i] = CLAB_NOWHERE;
    }
    const size_t cells = ((size_t)n + 1) * ((size_t)m + 1);
    al.line_cells = (size_t)m + 1;
    al.matrix = clab_arena_alloc(&scratch, (cells < MATRIX_LIMIT ? cells : MATRIX_LIMIT) + 2 * al.line_cells);
    al.scores = clab_arena_array(&scratch, 4 * al.line_cells, sizeof *al.scores);
    out->move = clab_arena_array(arena, (size_t)n + 1, sizeof *out->move);
    out->n_moves = 0;
    bool good = al.keys[0] != NULL && al.keys[1] != NULL && al.partner[0] != NULL && al.partner[1] != NULL &&
                al.matrix != NULL && al.scores != NULL && out->move != NULL;
    if (good) {
        align_range(&al, 0, n, 0, m);
        good = find_moves(&al, &scratch, out);
    }
    clab_arena_free(&scratch);
    return good;
}
