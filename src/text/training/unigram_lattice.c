/* Segmentations of a word into pieces: sums over all of them (forward and backward), and the best.
 *
 * Sums are probabilities, not logarithms, which is several times as fast. So that they do not
 * underflow in long words, all sums that can still change are multiplied by 2^SCALE when they have
 * all become small; how often this was done so far belongs to each sum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/training/unigram_trainer.h"
#include "text/unicode/characters.h"

enum { SCALE = 200 };

KilnStatus kiln_unigram_lattice_set(KilnUnigramLattice *lattice, const KilnUnigramPiece *pieces,
                                    size_t n, KilnError *err)
{
    double least = INFINITY;

    free(lattice->probabilities);
    kiln_trie_release(&lattice->trie);
    lattice->pieces = pieces;
    lattice->n = n;
    lattice->longest = 4; /* an unknown character */
    lattice->probabilities = malloc((n + 1) * sizeof(*lattice->probabilities));
    if (lattice->probabilities == NULL)
        return kiln_error_nomem(err, n * sizeof(*lattice->probabilities));
    for (size_t i = n; i-- > 0;) { /* frequent ones last, so that they are found first */
        if (!kiln_trie_add(&lattice->trie, pieces[i].text, (int32_t)i))
            return kiln_error_nomem(err, lattice->trie.capacity * sizeof(KilnTrieNode));
        lattice->probabilities[i] = exp(pieces[i].score);
        least = fmin(least, pieces[i].score);
        if (pieces[i].text.length > lattice->longest)
            lattice->longest = pieces[i].text.length;
    }
    lattice->unknown = (n > 0 ? least : 0.0) - KILN_UNIGRAM_UNK_PENALTY;
    lattice->probabilities[n] = exp(lattice->unknown);
    return KILN_OK;
}

void kiln_unigram_lattice_release(KilnUnigramLattice *lattice)
{
    kiln_trie_release(&lattice->trie);
    free(lattice->probabilities);
    free(lattice->before);
    free(lattice->after);
    free(lattice->scale);
    free(lattice->path);
    *lattice = (KilnUnigramLattice) { 0 };
}

/* ---- Pieces at a place ----------------------------------------------------------------------- */

/* A walk over the pieces that begin at a place: those of the trie, then an unknown character if no
 * piece is the single character. */
typedef struct Walk {
    const KilnUnigramLattice *lattice;
    KilnString word;
    size_t end, single; /* single: where the character ends; 0: there is a piece of it */
    int32_t node;
    size_t id;
} Walk;

static Walk begin_walk(const KilnUnigramLattice *lattice, KilnString word, size_t at)
{
    uint32_t c;

    return (Walk) { .lattice = lattice,
                    .word = word,
                    .end = at,
                    .single = at + kiln_utf8_read(word.data + at, &c),
                    .node = lattice->trie.first[(uint8_t)word.data[at]] };
}

/* The next piece: its id and end; false: there is none left. */
static bool next_piece(Walk *walk)
{
    const KilnTrie *trie = &walk->lattice->trie;

    while (walk->node > 0) {
        const KilnTrieNode *node = &trie->nodes[walk->node];
        const int32_t id = node->id;

        walk->end++;
        walk->node = walk->end < walk->word.length
                         ? kiln_trie_sibling(trie, node->child, (uint8_t)walk->word.data[walk->end])
                         : 0;
        if (id < 0)
            continue;
        walk->id = (size_t)id;
        if (walk->end == walk->single)
            walk->single = 0;
        return true;
    }
    if (walk->single == 0)
        return false;
    walk->id = walk->lattice->n;
    walk->end = walk->single;
    walk->single = 0;
    return true;
}

/* ---- All segmentations ----------------------------------------------------------------------- */

/* Multiply the sums from `at` on that can still change by 2^SCALE if all of them are small; returns
 * whether it did. */
static bool scale_up(const KilnUnigramLattice *lattice, double *sums, KilnString word, size_t at)
{
    const size_t rest = word.length - at;
    const size_t n = (lattice->longest < rest ? lattice->longest : rest) + 1;
    double most = 0.0;

    sums += at;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, sums[i]);
    if (most == 0.0 || most > 0x1p-200)
        return false;
    for (size_t i = 0; i < n; i++)
        sums[i] = ldexp(sums[i], SCALE);
    return true;
}

static void sum_before(KilnUnigramLattice *lattice, KilnString word)
{
    double *sums = lattice->before;
    int scale = 0;

    memset(sums, 0, (word.length + 1) * sizeof(*sums));
    sums[0] = 1.0;
    for (size_t at = 0; at < word.length; at++) {
        if (((uint8_t)word.data[at] & 0xc0) == 0x80)
            continue; /* within a character */
        if (sums[at] < 0x1p-200)
            scale += scale_up(lattice, sums, word, at);
        lattice->scale[at] = scale;
        for (Walk walk = begin_walk(lattice, word, at); next_piece(&walk);)
            sums[walk.end] += sums[at] * lattice->probabilities[walk.id];
    }
    lattice->scale[word.length] = scale;
}

/* The sums after each place, and with them how often each piece is expected. */
static void sum_after(KilnUnigramLattice *lattice, KilnString word, double count, double *expected)
{
    double *sums = lattice->after;
    const double factor = count / lattice->before[word.length];
    int scale = 0;

    memset(sums, 0, (word.length + 1) * sizeof(*sums));
    sums[word.length] = 1.0;
    for (size_t at = word.length; at-- > 0;) {
        if (((uint8_t)word.data[at] & 0xc0) == 0x80)
            continue;
        const int shift = SCALE * (lattice->scale[word.length] - lattice->scale[at] - scale);
        const double here = factor *
                            (shift == 0 ? lattice->before[at] : ldexp(lattice->before[at], shift));
        for (Walk walk = begin_walk(lattice, word, at); next_piece(&walk);) {
            const double part = sums[walk.end] * lattice->probabilities[walk.id];

            sums[at] += part;
            expected[walk.id] += here * part;
        }
        if (sums[at] < 0x1p-200)
            scale += scale_up(lattice, sums, word, at);
    }
}

bool kiln_unigram_expect(KilnUnigramLattice *lattice, KilnString word, double count,
                         double *expected)
{
    const size_t n = word.length + 1;

    if (!KILN_RESERVE(lattice->before, lattice->before_capacity, n) ||
        !KILN_RESERVE(lattice->after, lattice->after_capacity, n) ||
        !KILN_RESERVE(lattice->scale, lattice->scale_capacity, n))
        return false;
    sum_before(lattice, word);
    sum_after(lattice, word, count, expected);
    return true;
}

/* ---- The best segmentation ------------------------------------------------------------------- */

size_t kiln_unigram_best(KilnUnigramLattice *lattice, KilnString word, bool parts)
{
    size_t n = 0;

    if (!KILN_RESERVE(lattice->path, lattice->path_capacity, word.length + 1))
        return 0;
    lattice->path[0] = (KilnPathNode) { 0 };
    for (size_t i = 1; i <= word.length; i++)
        lattice->path[i].start = -1;
    for (size_t at = 0; at < word.length; at++) {
        if (lattice->path[at].start < 0)
            continue;
        for (Walk walk = begin_walk(lattice, word, at); next_piece(&walk);) {
            const double score = lattice->path[at].score + (walk.id < lattice->n
                                                                ? lattice->pieces[walk.id].score
                                                                : lattice->unknown);
            KilnPathNode *end = &lattice->path[walk.end];

            if (parts && at == 0 && walk.end == word.length)
                continue;
            if (end->start < 0 || score > end->score)
                *end = (KilnPathNode) { score, (int32_t)at, (int32_t)walk.id };
        }
    }
    if (lattice->path[word.length].start < 0)
        return 0;
    for (size_t at = word.length; at > 0; at = (size_t)lattice->path[at].start)
        n++;
    return n;
}
