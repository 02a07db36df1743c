/* Learns merges: the most frequent pair of symbols becomes a token, again and again. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/training/vocab_trainer.h"
#include "text/unicode/characters.h"

typedef struct Symbol {
    int32_t id, length; /* length: characters */
} Symbol;

typedef struct Word {
    Symbol *symbols;
    size_t n;
    int64_t count;
} Word;

/* Numbers of words, ascending. */
typedef struct WordList {
    int32_t *items;
    size_t n, capacity;
} WordList;

/* A pair of symbols, how often it occurs, and where it appeared since it was last queued. */
typedef struct Pair {
    int32_t left, right; /* left -1: an empty slot */
    int64_t count;
    WordList words;
    bool touched;
} Pair;

/* A candidate for the next merge. */
typedef struct Candidate {
    int32_t left, right;
    int64_t count;
    WordList words;
} Candidate;

typedef struct Trainer {
    const KilnTokenTraining *training;
    const char *prefix, *suffix;
    KilnLearned *learned;
    Word *words;
    size_t n_words;
    Pair *pairs; /* a hash table */
    size_t n_pairs, pairs_size;
    int32_t (*touched)[2]; /* pairs to queue */
    size_t n_touched, touched_capacity;
    Candidate *queue; /* a heap */
    size_t n_queue, queue_capacity;
    bool failed;
} Trainer;

/* ---- Pairs ----------------------------------------------------------------------------------- */

static size_t slot_of(const Trainer *t, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (t->pairs_size - 1);

    while (t->pairs[at].left >= 0 && (t->pairs[at].left != left || t->pairs[at].right != right))
        at = (at + 1) & (t->pairs_size - 1);
    return at;
}

static bool grow_pairs(Trainer *t)
{
    Pair *old = t->pairs;
    const size_t old_size = t->pairs_size, size = old_size == 0 ? 4096 : old_size * 2;

    t->pairs = malloc(size * sizeof(*t->pairs));
    if (t->pairs == NULL) {
        t->pairs = old;
        return false;
    }
    t->pairs_size = size;
    for (size_t i = 0; i < size; i++)
        t->pairs[i].left = -1;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].left >= 0)
            t->pairs[slot_of(t, old[i].left, old[i].right)] = old[i];
    free(old);
    return true;
}

static Pair *pair_of(Trainer *t, int32_t left, int32_t right)
{
    Pair *pair = &t->pairs[slot_of(t, left, right)];

    if (pair->left < 0) {
        *pair = (Pair) { .left = left, .right = right };
        t->n_pairs++;
    }
    return pair;
}

/* Add to a pair's count; a pair that appears in a word will be queued with that word. The table
 * must have room. */
static void change_pair(Trainer *t, int32_t left, int32_t right, int64_t change, size_t word)
{
    Pair *pair = pair_of(t, left, right);

    pair->count += change;
    if (change < 0)
        return;
    if (!pair->touched) {
        if (!KILN_RESERVE(t->touched, t->touched_capacity, t->n_touched + 1)) {
            t->failed = true;
            return;
        }
        t->touched[t->n_touched][0] = left;
        t->touched[t->n_touched++][1] = right;
        pair->touched = true;
    }
    if (pair->words.n > 0 && pair->words.items[pair->words.n - 1] == (int32_t)word)
        return;
    if (!KILN_RESERVE(pair->words.items, pair->words.capacity, pair->words.n + 1))
        t->failed = true;
    else
        pair->words.items[pair->words.n++] = (int32_t)word;
}

/* ---- The queue ------------------------------------------------------------------------------- */

static bool goes_first(const Candidate *a, const Candidate *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static void push(Trainer *t, Candidate item)
{
    if (!KILN_RESERVE(t->queue, t->queue_capacity, t->n_queue + 1)) {
        free(item.words.items);
        t->failed = true;
        return;
    }
    size_t at = t->n_queue++;

    for (; at > 0 && goes_first(&item, &t->queue[(at - 1) / 2]); at = (at - 1) / 2)
        t->queue[at] = t->queue[(at - 1) / 2];
    t->queue[at] = item;
}

static Candidate pop(Trainer *t)
{
    const Candidate top = t->queue[0], last = t->queue[--t->n_queue];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < t->n_queue; at = child) {
        if (child + 1 < t->n_queue && goes_first(&t->queue[child + 1], &t->queue[child]))
            child++;
        if (!goes_first(&t->queue[child], &last))
            break;
        t->queue[at] = t->queue[child];
    }
    t->queue[at] = last;
    return top;
}

/* Queue the pairs that appeared, and hand over their words. */
static void queue_touched(Trainer *t)
{
    for (size_t i = 0; i < t->n_touched; i++) {
        Pair *pair = pair_of(t, t->touched[i][0], t->touched[i][1]);

        pair->touched = false;
        if (pair->count > 0) {
            push(t, (Candidate) { pair->left, pair->right, pair->count, pair->words });
            pair->words = (WordList) { 0 };
        }
        pair->words.n = 0;
    }
    t->n_touched = 0;
}

/* ---- The alphabet ---------------------------------------------------------------------------- */

typedef struct CountedChar {
    uint32_t character;
    int64_t count;
} CountedChar;

static int rarest_first(const void *a, const void *b)
{
    const CountedChar *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->character < y->character ? 1 : -1; /* of equal ones the last is left out first */
}

static int by_character(const void *a, const void *b)
{
    const CountedChar *x = a, *y = b;

    return x->character < y->character ? -1 : x->character > y->character;
}

/* Add the characters of all words in their order, without the rarest beyond the limit. */
static void add_alphabet(Trainer *t, const KilnWordCounts *words)
{
    enum { CHARACTERS = 0x110000 };
    int64_t *counts = calloc(CHARACTERS, sizeof(*counts));
    CountedChar *list = NULL;
    size_t n = 0, capacity = 0, skip = 0;

    if (counts == NULL) {
        t->failed = true;
        return;
    }
    for (size_t i = 0; i < words->words.n; i++)
        for (size_t at = 0; at < words->words.tokens[i].length;) {
            uint32_t c;

            at += kiln_utf8_read(words->words.tokens[i].data + at, &c);
            counts[c] += words->counts[i];
        }
    for (int i = 0; i < 256 && t->training->byte_alphabet; i++) {
        char text[4];
        uint32_t c;

        kiln_byte_char((uint8_t)i, text);
        kiln_utf8_read(text, &c);
        counts[c] = INT64_MAX;
    }
    for (uint32_t c = 0; c < CHARACTERS && !t->failed; c++)
        if (counts[c] > 0) {
            if (KILN_RESERVE(list, capacity, n + 1))
                list[n++] = (CountedChar) { c, counts[c] };
            else
                t->failed = true;
        }
    if (t->training->limit_alphabet > 0 && n > (size_t)t->training->limit_alphabet) {
        skip = n - (size_t)t->training->limit_alphabet;
        qsort(list, n, sizeof(*list), rarest_first);
        qsort(list + skip, n - skip, sizeof(*list), by_character);
    }
    for (size_t i = skip; i < n && !t->failed; i++) {
        char text[4];

        t->failed = kiln_learned_add(t->learned, text, kiln_utf8_write(list[i].character, text)) <
                    0;
    }
    free(counts);
    free(list);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* The symbols of a word: its characters, with the model's prefix or suffix. Characters outside of
 * the alphabet are left out. */
static void read_word(Trainer *t, KilnString text, int64_t count, Word *ret)
{
    KilnText symbol = { 0 };

    ret->count = count;
    ret->symbols = malloc((text.length + 1) * sizeof(*ret->symbols));
    t->failed = t->failed || ret->symbols == NULL;
    for (size_t at = 0, length; at < text.length && !t->failed; at += length) {
        uint32_t c;

        length = kiln_utf8_read(text.data + at, &c);
        if (kiln_vocab_find(&t->learned->vocab, text.data + at, length) < 0)
            continue;
        kiln_text_clear(&symbol);
        if (at > 0)
            kiln_text_append(&symbol, t->prefix);
        kiln_text_append_n(&symbol, text.data + at, length);
        if (at + length == text.length)
            kiln_text_append(&symbol, t->suffix);
        const int32_t id = symbol.failed ? -1
                                         : kiln_learned_add(t->learned, symbol.data, symbol.length);
        t->failed = t->failed || id < 0;
        ret->symbols[ret->n++] = (Symbol) { id, 1 };
    }
    kiln_text_release(&symbol);
}

static void read_words(Trainer *t, const KilnWordCounts *words)
{
    t->words = calloc(words->words.n + 1, sizeof(*t->words));
    t->failed = t->failed || t->words == NULL;
    for (size_t i = 0; i < words->words.n && !t->failed; i++, t->n_words++)
        read_word(t, words->words.tokens[i], words->counts[i], &t->words[i]);
    for (size_t i = 0; i < t->n_words && !t->failed; i++)
        for (size_t k = 0; k + 1 < t->words[i].n && !t->failed; k++) {
            if ((t->n_pairs + 1) * 2 > t->pairs_size && !grow_pairs(t))
                t->failed = true;
            else
                change_pair(t, t->words[i].symbols[k].id, t->words[i].symbols[k + 1].id,
                            t->words[i].count, i);
        }
    queue_touched(t);
}

/* Merge a pair in a word and count the pairs that it makes and unmakes. */
static void merge_in_word(Trainer *t, const Candidate *pair, int32_t id, size_t number)
{
    Word *word = &t->words[number];
    const int64_t most = t->training->max_token_length > 0 ? t->training->max_token_length
                                                           : INT64_MAX;

    for (size_t i = 0; i + 1 < word->n && !t->failed; i++) {
        Symbol *at = &word->symbols[i];

        if (at[0].id != pair->left || at[1].id != pair->right)
            continue;
        const Symbol merged = { id, at[0].length + at[1].length };
        if (i > 0) {
            change_pair(t, at[-1].id, pair->left, -word->count, number);
            if (at[-1].length + merged.length < most)
                change_pair(t, at[-1].id, id, word->count, number);
        }
        *at = merged;
        memmove(at + 1, at + 2, (word->n - i - 2) * sizeof(*at));
        word->n--;
        if (i + 1 < word->n) {
            change_pair(t, pair->right, at[1].id, -word->count, number);
            if (at[1].length + merged.length < most)
                change_pair(t, id, at[1].id, word->count, number);
        }
    }
}

/* ---- Merges ---------------------------------------------------------------------------------- */

static int32_t add_merged(Trainer *t, const Candidate *pair)
{
    const KilnString a = t->learned->vocab.tokens[pair->left];
    const KilnString b = t->learned->vocab.tokens[pair->right];
    const size_t prefix = strlen(t->prefix);
    const bool joins = b.length >= prefix && memcmp(b.data, t->prefix, prefix) == 0;
    KilnText text = { 0 };

    kiln_text_append_n(&text, a.data, a.length);
    kiln_text_append_n(&text, b.data + (joins ? prefix : 0), b.length - (joins ? prefix : 0));
    const int32_t id = text.failed ? -1 : kiln_learned_add(t->learned, text.data, text.length);
    kiln_text_release(&text);
    return id;
}

static void merge(Trainer *t, const Candidate *pair)
{
    KilnLearned *learned = t->learned;
    const int32_t id = add_merged(t, pair);

    if (id < 0 || !KILN_RESERVE(learned->merges, learned->merges_capacity, learned->n_merges + 1)) {
        t->failed = true;
        return;
    }
    learned->merges[learned->n_merges][0] = pair->left;
    learned->merges[learned->n_merges++][1] = pair->right;
    for (size_t i = 0; i < pair->words.n && !t->failed; i++) {
        const size_t number = (size_t)pair->words.items[i];

        while ((t->n_pairs + 4 * t->words[number].n + 4) * 2 > t->pairs_size && !t->failed)
            t->failed = !grow_pairs(t);
        if (!t->failed)
            merge_in_word(t, pair, id, number);
    }
    queue_touched(t);
}

static KilnStatus learn_merges(Trainer *t, const KilnPoll *poll, KilnError *err)
{
    const int64_t size = t->training->vocab_size;
    KilnStatus status = KILN_OK;

    while (t->n_queue > 0 && (int64_t)t->learned->vocab.n < size && !t->failed && status >= 0) {
        Candidate top = pop(t);
        const int64_t count = t->pairs[slot_of(t, top.left, top.right)].count;

        if (top.count != count) {
            top.count = count;
            push(t, top);
            continue;
        }
        const bool frequent = count >= 1 && count >= t->training->min_frequency;
        if (frequent)
            merge(t, &top);
        free(top.words.items);
        if (!frequent)
            break;
        status = kiln_poll_check(poll, "learning merges", (int64_t)t->learned->vocab.n, size, err);
    }
    return status;
}

static void release(Trainer *t)
{
    for (size_t i = 0; i < t->n_words; i++)
        free(t->words[i].symbols);
    for (size_t i = 0; i < t->pairs_size; i++)
        if (t->pairs[i].left >= 0)
            free(t->pairs[i].words.items);
    for (size_t i = 0; i < t->n_queue; i++)
        free(t->queue[i].words.items);
    free(t->words);
    free(t->pairs);
    free(t->touched);
    free(t->queue);
}

KilnStatus kiln_train_bpe(const KilnWordCounts *words, const KilnTokenTraining *training,
                          const char *prefix, const char *suffix, const KilnPoll *poll,
                          KilnLearned *ret, KilnError *err)
{
    Trainer t = { .training = training, .prefix = prefix, .suffix = suffix, .learned = ret };
    KilnStatus status = KILN_OK;

    t.failed = !grow_pairs(&t);
    for (size_t i = 0; i < training->n_special_tokens && !t.failed; i++)
        t.failed = kiln_learned_add(ret, training->special_tokens[i],
                                    strlen(training->special_tokens[i])) < 0;
    if (!t.failed)
        add_alphabet(&t, words);
    if (!t.failed)
        read_words(&t, words);
    if (!t.failed)
        status = learn_merges(&t, poll, err);
    if (t.failed)
        status = kiln_error_nomem(err, t.n_pairs * sizeof(*t.pairs));
    release(&t);
    return status;
}
