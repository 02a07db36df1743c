/* chrF of a corpus (Popović 2015) and chrF++ (word_order 2; Popović 2017): the F-score of n-grams
 * of characters and words, the number that sacrebleu prints, from 0 to 100. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ORDERS = 16 };

typedef struct Opts {
    int64_t char_order, word_order;
    double beta;
    bool whitespace, eps_smoothing;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, char_order, "6", 1, MOST_ORDERS, "longest n-grams of characters"),
    KILN_FIELD_I64(Opts, word_order, "0", 0, MOST_ORDERS,
                   "longest n-grams of words: 0 is chrF, 2 is chrF++"),
    KILN_FIELD_F64(Opts, beta, "2.0", 0.0, 100.0, "how many times as much recall counts"),
    KILN_FIELD_BOOL(Opts, whitespace, "false", "white space is characters, too"),
    KILN_FIELD_BOOL(Opts, eps_smoothing, "false",
                    "the mean of the orders' F-scores, as chrF++.py, Moses and NLTK"),
    KILN_FIELD_END,
};

static int64_t orders_of(const Opts *opts)
{
    return opts->char_order + opts->word_order;
}

/* ---- Symbols ----------------------------------------------------------------------------------
 */

/* The characters or words of one text: ids that are equal where they are. */
typedef struct Symbols {
    int64_t *ids;
    int64_t n;
} Symbols;

/* The bytes of the character at s[0..n); of an invalid byte 1. */
static size_t character_at(const char *s, size_t n)
{
    const unsigned char first = (unsigned char)s[0];
    const size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    return bytes <= n ? bytes : n;
}

static KilnStatus characters_of(const char *text, bool whitespace, Symbols *ret, KilnError *err)
{
    const size_t n = strlen(text);

    ret->ids = malloc((n + 1) * sizeof(*ret->ids));
    if (ret->ids == NULL)
        return kiln_error_nomem(err, n * sizeof(*ret->ids));
    for (size_t i = 0; i < n;) {
        const size_t space = whitespace ? 0 : kiln_space_at(text + i, n - i);
        const size_t bytes = space > 0 ? space : character_at(text + i, n - i);
        int64_t id = 0;

        for (size_t b = 0; b < bytes; b++)
            id = id << 8 | (unsigned char)text[i + b];
        if (space == 0)
            ret->ids[ret->n++] = id;
        i += bytes;
    }
    return KILN_OK;
}

static bool is_punctuation(char c)
{
    return c != '\0' && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c) != NULL;
}

/* A word of either text of a pair. */
typedef struct Word {
    const char *text;
    size_t length;
    Symbols *of;
    int64_t at;
} Word;

typedef struct Words {
    Word *list;
    size_t n, capacity;
} Words;

static bool add_word(Words *words, Symbols *of, const char *text, size_t length)
{
    if (!KILN_RESERVE(words->list, words->capacity, words->n + 1))
        return false;
    words->list[words->n++] = (Word) { text, length, of, of->n++ };
    return true;
}

/* A word without the punctuation at its end, else at its beginning, which is a word of its own. */
static bool add_parts(Words *words, Symbols *of, const char *word, size_t n)
{
    if (character_at(word, n) == n)
        return add_word(words, of, word, n);
    if (is_punctuation(word[n - 1]))
        return add_word(words, of, word, n - 1) && add_word(words, of, word + n - 1, 1);
    if (is_punctuation(word[0]))
        return add_word(words, of, word, 1) && add_word(words, of, word + 1, n - 1);
    return add_word(words, of, word, n);
}

static bool add_text(Words *words, Symbols *of, const char *text)
{
    const size_t n = strlen(text);

    for (size_t i = 0; i < n;) {
        const size_t start = i;

        while (i < n && kiln_space_at(text + i, n - i) == 0)
            i += character_at(text + i, n - i);
        if (i > start && !add_parts(words, of, text + start, i - start))
            return false;
        if (i < n)
            i += kiln_space_at(text + i, n - i);
    }
    return true;
}

static int compare_words(const void *left, const void *right)
{
    const Word *a = left, *b = right;
    const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);

    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static KilnStatus words_of(const char *const texts[2], Symbols ret[2], KilnError *err)
{
    Words words = { 0 };
    bool good = add_text(&words, &ret[0], texts[0]) && add_text(&words, &ret[1], texts[1]);

    for (int t = 0; t < 2 && good; t++) {
        ret[t].ids = malloc((size_t)(ret[t].n + 1) * sizeof(*ret[t].ids));
        good = ret[t].ids != NULL;
    }
    if (good && words.n > 0)
        qsort(words.list, words.n, sizeof(*words.list), compare_words);
    for (size_t i = 0, id = 0; i < words.n && good; i++) {
        id += i > 0 && compare_words(&words.list[i - 1], &words.list[i]) != 0;
        words.list[i].of->ids[words.list[i].at] = (int64_t)id;
    }
    free(words.list);
    return good ? KILN_OK : kiln_error_nomem(err, words.n * sizeof(*words.list));
}

/* ---- N-grams -----------------------------------------------------------------------------------
 */

/* What is counted of an order: n-grams of the text, of the reference, and of both. */
enum { TEXT, REFERENCE, MATCHES, COUNTS };

/* An n-gram: the id of its first symbols and the last one. */
typedef struct Gram {
    int64_t head, tail, at;
    int side;
} Gram;

static int compare_grams(const void *left, const void *right)
{
    const Gram *a = left, *b = right;

    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    return (a->tail > b->tail) - (a->tail < b->tail);
}

/* Count the n-grams of an order. heads[side][i] is the id of the (n-1)-gram at i, and becomes that
 * of the n-gram. */
static void count_order(const Symbols symbols[2], int64_t *const heads[2], int64_t order,
                        Gram *grams, int64_t *counts)
{
    size_t n = 0;

    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i + order < symbols[side].n; i++)
            grams[n++] = (Gram) { heads[side][i], symbols[side].ids[i + order], i, side };
    if (n > 0)
        qsort(grams, n, sizeof(*grams), compare_grams);
    for (size_t i = 0, id = 0; i < n; id++) {
        const size_t first = i;
        int64_t here[2] = { 0, 0 };

        for (; i < n && compare_grams(&grams[first], &grams[i]) == 0; i++) {
            here[grams[i].side]++;
            heads[grams[i].side][grams[i].at] = (int64_t)id;
        }
        counts[TEXT] += here[0];
        counts[REFERENCE] += here[1];
        counts[MATCHES] += here[0] < here[1] ? here[0] : here[1];
    }
    if (counts[REFERENCE] == 0)
        counts[TEXT] = 0;
}

static KilnStatus count_orders(const Symbols symbols[2], int64_t orders, int64_t *counts,
                               KilnError *err)
{
    const size_t n = (size_t)(symbols[0].n + symbols[1].n) + 1;
    int64_t *heads = calloc(n, sizeof(*heads));
    Gram *grams = malloc(n * sizeof(*grams));
    KilnStatus status = KILN_OK;

    if (heads == NULL || grams == NULL)
        status = kiln_error_nomem(err, n * sizeof(*grams));
    for (int64_t order = 0; order < orders && status >= 0; order++)
        count_order(symbols, (int64_t *[]) { heads, heads + symbols[0].n }, order, grams,
                    counts + COUNTS * order);
    free(heads);
    free(grams);
    return status;
}

/* counts[COUNTS * orders], zeroed, of a text and one reference. */
static KilnStatus count_pair(const Opts *opts, const char *const texts[2], int64_t *counts,
                             KilnError *err)
{
    Symbols characters[2] = { 0 }, words[2] = { 0 };
    KilnStatus status = KILN_OK;

    for (int t = 0; t < 2 && status >= 0; t++)
        status = characters_of(texts[t], opts->whitespace, &characters[t], err);
    if (status >= 0)
        status = count_orders(characters, opts->char_order, counts, err);
    if (status >= 0 && opts->word_order > 0)
        status = words_of(texts, words, err);
    if (status >= 0 && opts->word_order > 0)
        status = count_orders(words, opts->word_order, counts + COUNTS * opts->char_order, err);
    for (int t = 0; t < 2; t++) {
        free(characters[t].ids);
        free(words[t].ids);
    }
    return status;
}

/* ---- The score ---------------------------------------------------------------------------------
 */

static double score(const Opts *opts, const int64_t *counts)
{
    const double eps = 1e-16, factor = opts->beta * opts->beta;
    const int64_t orders = orders_of(opts);
    double sum = 0.0, precision = 0.0, recall = 0.0;
    int64_t effective = 0;

    for (int64_t order = 0; order < orders; order++, counts += COUNTS) {
        const double found = (double)counts[MATCHES];
        const double p = counts[TEXT] > 0 ? found / (double)counts[TEXT] : eps;
        const double r = counts[REFERENCE] > 0 ? found / (double)counts[REFERENCE] : eps;
        const double below = factor * p + r;

        sum += below > 0.0 ? (1.0 + factor) * p * r / below : eps;
        if (counts[TEXT] > 0 && counts[REFERENCE] > 0) {
            precision += p;
            recall += r;
            effective++;
        }
    }
    if (opts->eps_smoothing)
        return 100.0 * sum / (double)orders;
    if (effective == 0 || precision + recall <= 0.0)
        return 0.0;
    precision /= (double)effective;
    recall /= (double)effective;
    return 100.0 * (1.0 + factor) * precision * recall / (factor * precision + recall);
}

/* ---- The metric ---------------------------------------------------------------------------------
 */

/* Add the counts with the best of a row's references to `counts`. */
static KilnStatus update_row(const Opts *opts, const KilnSequence *sequence,
                             const KilnSequence *references, int64_t n_references, int64_t *counts,
                             KilnError *err)
{
    const int64_t n = COUNTS * orders_of(opts);
    int64_t best[COUNTS * 2 * MOST_ORDERS] = { 0 };
    double best_score = -1.0;

    for (int64_t r = 0; r < n_references; r++) {
        int64_t own[COUNTS * 2 * MOST_ORDERS] = { 0 };

        if (sequence->text == NULL || references[r].text == NULL)
            return kiln_error_set(err, KILN_E_SHAPE, "chrF compares texts, not ids");
        KilnStatus status = count_pair(
            opts, (const char *const[]) { sequence->text, references[r].text }, own, err);
        if (status < 0)
            return status;
        const double value = score(opts, own);
        if (value > best_score) {
            best_score = value;
            memcpy(best, own, sizeof(best));
        }
    }
    for (int64_t i = 0; i < n; i++)
        counts[i] += best[i];
    return KILN_OK;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "counts", COUNTS * orders_of(opts), &counts,
                                                 err);

    for (int64_t i = 0; i < rows->count && status >= 0; i++)
        status = update_row(opts, &rows->sequences[i], rows->references + i * rows->n_references,
                            rows->n_references, counts, err);
    return status;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "counts", COUNTS * orders_of(opts), &counts,
                                                 err);

    if (status < 0)
        return status;
    return kiln_metric_state_report(
        state, NULL, kiln_metric_state_rows(state) > 0 ? score(opts, counts) : (double)NAN, err);
}

static void signature(const KilnInstance *self, int64_t n_references, char *ret, size_t size)
{
    const Opts *opts = kiln_opts(self);

    snprintf(ret, size, "nrefs:%lld|case:mixed|eff:%s|nc:%lld|nw:%lld|space:%s|version:2.6.0",
             (long long)n_references, opts->eps_smoothing ? "no" : "yes",
             (long long)opts->char_order, (long long)opts->word_order,
             opts->whitespace ? "yes" : "no");
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_SEQUENCES,
    .mode = KILN_MODE_MAX,
    .update = update,
    .compute = compute,
    .signature = signature,
};

const KilnComponent kiln_metric_chrf = {
    .kind = KILN_KIND_METRIC,
    .name = "chrf",
    .summary = "chrF and chrF++ of a corpus, as sacrebleu",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_chrf, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
