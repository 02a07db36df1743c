/* Finds the substrings that Unigram's trainer begins with, by sorting the suffixes of all words. */
#include <math.h>
#include <stdlib.h>

#include "kiln/array.h"
#include "text/training/unigram_trainer.h"
#include "text/unicode/characters.h"

/* A substring that occurs more than once. */
typedef struct Repeat {
    int64_t score;
    uint32_t at, number; /* where it occurs; its place in the order of finding */
    uint32_t length;
} Repeat;

/* A prefix that the suffixes from number `left` on have in common. */
typedef struct Interval {
    uint32_t length, left;
} Interval;

typedef struct Seeds {
    uint32_t *characters; /* of the words, each ends with 0 */
    uint32_t *suffixes;   /* where they begin; those that begin with 0 are left out */
    size_t n, n_suffixes;
    uint32_t depth; /* characters that are compared: one more than a piece may have */
    Repeat *repeats;
    size_t n_repeats, repeats_capacity;
} Seeds;

/* ---- Characters ------------------------------------------------------------------------------ */

static KilnStatus read_words(Seeds *seeds, const KilnWordCounts *words, KilnError *err)
{
    size_t n = words->words.n;

    for (size_t i = 0; i < words->words.n; i++)
        n += kiln_utf8_count(words->words.tokens[i].data, words->words.tokens[i].length);
    if (n >= UINT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "the different words of the texts have %zu characters; Unigram "
                              "training takes at most %u: train on a part of the texts",
                              n, UINT32_MAX);
    seeds->characters = malloc((n + 1) * sizeof(*seeds->characters));
    seeds->suffixes = malloc((n + 1) * sizeof(*seeds->suffixes));
    if (seeds->characters == NULL || seeds->suffixes == NULL)
        return kiln_error_nomem(err, n * sizeof(*seeds->characters));
    for (size_t i = 0; i < words->words.n; i++) {
        const KilnString word = words->words.tokens[i];

        for (size_t at = 0; at < word.length; seeds->n++) {
            seeds->suffixes[seeds->n_suffixes++] = (uint32_t)seeds->n;
            at += kiln_utf8_read(word.data + at, &seeds->characters[seeds->n]);
        }
        seeds->characters[seeds->n++] = 0;
    }
    return KILN_OK;
}

typedef struct CountedCharacter {
    uint32_t character;
    int64_t count;
} CountedCharacter;

static int frequent_first(const void *left, const void *right)
{
    const CountedCharacter *a = left, *b = right;

    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->character < b->character ? -1 : a->character > b->character;
}

/* All characters and how often they occur in the texts, the most frequent first. */
static CountedCharacter *count_characters(const KilnWordCounts *words, size_t *ret_n)
{
    enum { CHARACTERS = 0x110000 };
    CountedCharacter *list = calloc(CHARACTERS, sizeof(*list));
    size_t n = 0;

    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < words->words.n; i++)
        for (size_t at = 0; at < words->words.tokens[i].length;) {
            uint32_t c;

            at += kiln_utf8_read(words->words.tokens[i].data + at, &c);
            list[c].count += words->counts[i];
        }
    for (uint32_t c = 0; c < CHARACTERS; c++)
        if (list[c].count > 0)
            list[n++] = (CountedCharacter) { c, list[c].count };
    qsort(list, n, sizeof(*list), frequent_first);
    *ret_n = n;
    return list;
}

/* ---- Sorting suffixes ------------------------------------------------------------------------ */

static uint32_t median(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t low = a < b ? a : b, high = a < b ? b : a;

    return c < low ? low : c > high ? high : c;
}

/* Sort by the characters from `depth` on up to the word's end, which counts as 0, and up to the
 * most that are compared (Bentley and Sedgewick 1997, multikey quicksort). */
static void sort_suffixes(const Seeds *seeds, uint32_t *list, size_t n, uint32_t depth)
{
    while (n > 1 && depth < seeds->depth) {
        const uint32_t *text = seeds->characters + depth;
        const uint32_t pivot = median(text[list[0]], text[list[n / 2]], text[list[n - 1]]);
        size_t less = 0, at = 0, more = n;

        while (at < more) {
            const uint32_t c = text[list[at]], suffix = list[at];

            if (c < pivot) {
                list[at++] = list[less];
                list[less++] = suffix;
            } else if (c > pivot) {
                list[at] = list[--more];
                list[more] = suffix;
            } else {
                at++;
            }
        }
        sort_suffixes(seeds, list, less, depth);
        sort_suffixes(seeds, list + more, n - more, depth);
        if (pivot == 0)
            return;
        list += less;
        n = more - less;
        depth++;
    }
}

/* How many characters two suffixes have in common, at most `depth`. */
static uint32_t common(const Seeds *seeds, uint32_t a, uint32_t b)
{
    uint32_t n = 0;

    while (n < seeds->depth && seeds->characters[a + n] == seeds->characters[b + n] &&
           seeds->characters[a + n] != 0)
        n++;
    return n;
}

/* ---- Repeats --------------------------------------------------------------------------------- */

static bool add_repeat(Seeds *seeds, uint32_t length, uint32_t left, uint32_t right)
{
    if (length < 2 || length >= seeds->depth)
        return true;
    if (seeds->characters[seeds->suffixes[right - 1] + length] == 0)
        return true; /* the end of a word follows all of them, a node that Hugging Face leaves out
                      */
    if (!KILN_RESERVE(seeds->repeats, seeds->repeats_capacity, seeds->n_repeats + 1))
        return false;
    seeds->repeats[seeds->n_repeats] = (Repeat) {
        .score = (int64_t)(right - left) * length,
        .at = seeds->suffixes[left],
        .number = (uint32_t)seeds->n_repeats,
        .length = length,
    };
    seeds->n_repeats++;
    return true;
}

/* The prefixes that neighbours in the sorted list have in common and no longer ones: the inner
 * nodes of the suffix tree. */
static bool find_repeats(Seeds *seeds)
{
    Interval *stack = calloc((size_t)seeds->depth + 2, sizeof(*stack)); /* begins with no prefix */
    size_t top = 0;
    bool done = true;

    if (stack == NULL)
        return false;
    for (size_t i = 1; i <= seeds->n_suffixes && done; i++) {
        const uint32_t length = i < seeds->n_suffixes
                                    ? common(seeds, seeds->suffixes[i - 1], seeds->suffixes[i])
                                    : 0;
        uint32_t left = (uint32_t)i - 1;

        while (stack[top].length > length && done) {
            left = stack[top].left;
            done = add_repeat(seeds, stack[top].length, left, (uint32_t)i);
            top--;
        }
        if (stack[top].length < length)
            stack[++top] = (Interval) { length, left };
    }
    free(stack);
    return done;
}

static int best_first(const void *left, const void *right)
{
    const Repeat *a = left, *b = right;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->number > b->number ? -1 : a->number < b->number;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static void add_piece(KilnUnigramPieces *pieces, const uint32_t *characters, size_t n,
                      int64_t score)
{
    const size_t begin = pieces->texts.length;

    for (size_t i = 0; i < n; i++) {
        char text[4];

        kiln_text_append_n(&pieces->texts, text, kiln_utf8_write(characters[i], text));
    }
    pieces->items[pieces->n++] = (KilnUnigramPiece) { { NULL, pieces->texts.length - begin },
                                                      (double)score };
}

/* Texts have their places, and scores are logarithms of the shares of the sum. */
static void finish_pieces(KilnUnigramPieces *pieces)
{
    double sum = 0.0;
    size_t at = 0;

    for (size_t i = 0; i < pieces->n; i++) {
        sum += pieces->items[i].score;
        pieces->items[i].text.data = pieces->texts.data + at;
        at += pieces->items[i].text.length;
    }
    for (size_t i = 0; i < pieces->n; i++)
        pieces->items[i].score = log(pieces->items[i].score) - log(sum);
}

static bool add_pieces(const Seeds *seeds, const KilnWordCounts *words, size_t most,
                       KilnUnigramPieces *ret)
{
    CountedCharacter *characters = count_characters(words, &ret->n_characters);
    const size_t n = ret->n_characters + seeds->n_repeats;

    if (characters != NULL)
        ret->items = malloc((n + 1) * sizeof(*ret->items));
    for (size_t i = 0; ret->items != NULL && i < ret->n_characters; i++)
        add_piece(ret, &characters[i].character, 1, characters[i].count);
    for (size_t i = 0; ret->items != NULL && i < seeds->n_repeats && ret->n < most; i++)
        add_piece(ret, seeds->characters + seeds->repeats[i].at, seeds->repeats[i].length,
                  seeds->repeats[i].score);
    free(characters);
    if (ret->items == NULL || ret->texts.failed)
        return false;
    finish_pieces(ret);
    return true;
}

KilnStatus kiln_unigram_seeds(const KilnWordCounts *words, int64_t max_length, size_t most,
                              KilnUnigramPieces *ret, KilnError *err)
{
    Seeds seeds = { .depth = (uint32_t)max_length + 1 };
    KilnStatus status = read_words(&seeds, words, err);

    if (status >= 0) {
        sort_suffixes(&seeds, seeds.suffixes, seeds.n_suffixes, 0);
        bool done = find_repeats(&seeds);
        if (done && seeds.n_repeats > 0)
            qsort(seeds.repeats, seeds.n_repeats, sizeof(*seeds.repeats), best_first);
        if (!done || !add_pieces(&seeds, words, most, ret))
            status = kiln_error_nomem(err, seeds.n * sizeof(*seeds.repeats));
    }
    free(seeds.characters);
    free(seeds.suffixes);
    free(seeds.repeats);
    return status;
}

void kiln_unigram_pieces_release(KilnUnigramPieces *pieces)
{
    free(pieces->items);
    kiln_text_release(&pieces->texts);
    *pieces = (KilnUnigramPieces) { 0 };
}
