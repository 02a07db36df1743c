/* BLEU of a corpus (Papineni et al. 2002), the number that sacrebleu prints: from 0 to
 * 100, texts tokenized as mteval-v13a.pl does, several references, smoothing after
 * Chen and Cherry (2014). Sequences of ids are compared as they are. */
#include "kiln.h"
#include "kiln/tools/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENIZE_13A, TOKENIZE_NONE, TOKENIZE_INTL, TOKENIZE_CHAR };
enum { SMOOTH_NONE, SMOOTH_FLOOR, SMOOTH_ADD_K, SMOOTH_EXP };
enum { MOST_ORDERS = 16 };

typedef struct Opts {
    int64_t tokenize, smooth, max_order;
    double *smooth_value;
    bool effective_order;
} Opts;

static const KilnChoice tokenizers[] = {
    { "13a", TOKENIZE_13A },
    { "none", TOKENIZE_NONE },
    { "intl", TOKENIZE_INTL },
    { "char", TOKENIZE_CHAR },
    { NULL, 0 },
};
static const KilnChoice smoothings[] = {
    { "none", SMOOTH_NONE },
    { "floor", SMOOTH_FLOOR },
    { "add_k", SMOOTH_ADD_K },
    { "exp", SMOOTH_EXP },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(
        Opts, tokenize, "13a", tokenizers,
        "tokenizer: 13a, as WMT; none: white space; intl: at all punctuation and symbols of "
        "Unicode (mteval-v14); char: characters"),
    KILN_FIELD_ENUM(Opts, smooth, "exp", smoothings, "smoothing of precisions that are 0"),
    KILN_FIELD_F64_OPT(Opts, smooth_value, "null", 0.0, 1e6,
                       "of floor (null: 0.1) and add_k (null: 1)"),
    KILN_FIELD_I64(Opts, max_order, "4", 1, MOST_ORDERS, "longest n-grams"),
    KILN_FIELD_BOOL(Opts, effective_order, "false",
                    "leave out orders for which no sequence is long enough"),
    KILN_FIELD_END,
};

/* ---- Tokenizing ------------------------------------------------------------------------ */

/* Length of `s` without white space at its end. */
static size_t stripped(const char *s, size_t n)
{
    for (size_t width = 1; width <= 3;) {
        if (n >= width && kiln_space_at(s + n - width, width) == width) {
            n -= width;
            width = 1;
        } else {
            width++;
        }
    }
    return n;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

static bool is_symbol(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/* The passes of mteval-v13a over text[0..n) into `out`; pairs that match don't overlap. */
typedef void Pass(const char *text, size_t n, KilnText *out);

static void part_symbols(const char *text, size_t n, KilnText *out)
{
    for (size_t i = 0; i < n; i++) {
        if (is_symbol(text[i]))
            kiln_text_char(out, ' ');
        kiln_text_char(out, text[i]);
        if (is_symbol(text[i]))
            kiln_text_char(out, ' ');
    }
}

static void part_stops_after(const char *text, size_t n, KilnText *out)
{
    for (size_t i = 0; i < n; i++) {
        kiln_text_char(out, text[i]);
        if (i + 1 < n && !is_digit(text[i]) && is_stop(text[i + 1])) {
            kiln_text_char(out, ' ');
            kiln_text_char(out, text[++i]);
            kiln_text_char(out, ' ');
        }
    }
}

static void part_stops_before(const char *text, size_t n, KilnText *out)
{
    for (size_t i = 0; i < n; i++) {
        bool parted = i + 1 < n && is_stop(text[i]) && !is_digit(text[i + 1]);

        if (parted)
            kiln_text_char(out, ' ');
        kiln_text_char(out, text[i]);
        if (parted) {
            kiln_text_char(out, ' ');
            kiln_text_char(out, text[++i]);
        }
    }
}

static void part_dashes(const char *text, size_t n, KilnText *out)
{
    for (size_t i = 0; i < n; i++) {
        kiln_text_char(out, text[i]);
        if (i + 1 < n && is_digit(text[i]) && text[i + 1] == '-') {
            kiln_text_char(out, ' ');
            kiln_text_char(out, text[++i]);
            kiln_text_char(out, ' ');
        }
    }
}

/* The passes of mteval-v14, international: a space on both sides of the second of two characters
 * that are no number and punctuation, of the first of punctuation and no number, and of symbols. */
static void part_pairs(const char *text, size_t n, bool stop_first, KilnText *out)
{
    for (size_t i = 0, length, next_length; i < n; i += length) {
        const char first = kiln_category_at(text + i, n - i, &length);
        const size_t next = i + length;
        const char second = next < n ? kiln_category_at(text + next, n - next, &next_length) : 0;

        if (second == 0 ||
            (stop_first ? first != 'P' || second == 'N' : first == 'N' || second != 'P')) {
            kiln_text_append_n(out, text + i, length);
            continue;
        }
        kiln_text_append_n(out, " ", stop_first);
        kiln_text_append_n(out, text + i, length);
        kiln_text_char(out, ' ');
        kiln_text_append_n(out, text + next, next_length);
        kiln_text_append_n(out, " ", !stop_first);
        length += next_length;
    }
}

static void part_punctuation_after(const char *text, size_t n, KilnText *out)
{
    part_pairs(text, n, false, out);
}

static void part_punctuation_before(const char *text, size_t n, KilnText *out)
{
    part_pairs(text, n, true, out);
}

static void part_all_symbols(const char *text, size_t n, KilnText *out)
{
    for (size_t i = 0, length; i < n; i += length) {
        const bool symbol = kiln_category_at(text + i, n - i, &length) == 'S';

        kiln_text_append_n(out, " ", symbol);
        kiln_text_append_n(out, text + i, length);
        kiln_text_append_n(out, " ", symbol);
    }
}

static void part_characters(const char *text, size_t n, KilnText *out)
{
    for (size_t i = 0, length; i < n; i += length) {
        (void)kiln_category_at(text + i, n - i, &length);
        kiln_text_append_n(out, text + i, length);
        kiln_text_char(out, ' ');
    }
}

static void swap(KilnText *a, KilnText *b)
{
    KilnText kept = *a;

    *a = *b;
    *b = kept;
}

/* Replace in `text`, through `room`. */
static void replace(KilnText *text, const char *from, const char *to, KilnText *room)
{
    size_t length = strlen(from);

    room->length = 0;
    for (size_t i = 0; i < text->length; i++)
        if (text->length - i >= length && memcmp(text->data + i, from, length) == 0) {
            kiln_text_append_n(room, to, strlen(to));
            i += length - 1;
        } else {
            kiln_text_char(room, text->data[i]);
        }
    swap(text, room);
}

/* What mteval-v13a does first: line breaks, and characters that are written as entities. */
static void undo_escapes(KilnText *text, KilnText *room)
{
    static const char *const replaced[][2] = {
        { "<skipped>", "" }, { "-\n", "" },   { "\n", " " },   { "&quot;", "\"" },
        { "&amp;", "&" },    { "&lt;", "<" }, { "&gt;", ">" },
    };

    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
        replace(text, replaced[i][0], replaced[i][1], room);
}

/* `s` with spaces between words, into `text`. */
static void tokenize(const char *s, int64_t how, KilnText *text, KilnText *room)
{
    static Pass *const passes[][5] = {
        [TOKENIZE_13A] = { part_symbols, part_stops_after, part_stops_before, part_dashes },
        [TOKENIZE_INTL] = { part_punctuation_after, part_punctuation_before, part_all_symbols },
        [TOKENIZE_CHAR] = { part_characters },
    };

    text->length = 0;
    if (how == TOKENIZE_13A)
        kiln_text_char(text, ' ');
    kiln_text_append_n(text, s, stripped(s, strlen(s)));
    if (how == TOKENIZE_13A) {
        undo_escapes(text, room);
        kiln_text_char(text, ' ');
    }
    for (size_t i = 0; passes[how][i] != NULL; i++) {
        room->length = 0;
        passes[how][i](text->data, text->length, room);
        swap(text, room);
    }
}

/* ---- Words --------------------------------------------------------------------------------- */

/* A word as text, or as an id with text NULL; `at` is its place in the row. */
typedef struct Word {
    char *text; /* of Row.texts */
    size_t length;
    int32_t id;
    int64_t at;
} Word;

/* n-grams of one order: the id of their first words and the last word. */
typedef struct Gram {
    int64_t head, tail, sequence, at;
} Gram;

/* A sequence and its references, one after the other. */
typedef struct Row {
    int64_t n_sequences;
    int64_t *ends; /* of each sequence in words */
    char **texts;  /* tokenized; of each */
    Word *words;
    int64_t n, capacity;
    int64_t *ids, *heads; /* equal words, and equal n-grams of the last order, have equal ids */
    Gram *grams;
    KilnText text, room;
} Row;

static void release(Row *row)
{
    for (int64_t i = 0; row->texts != NULL && i < row->n_sequences; i++)
        free(row->texts[i]);
    free(row->texts);
    free(row->ends);
    free(row->words);
    free(row->ids);
    free(row->heads);
    free(row->grams);
    kiln_text_release(&row->text);
    kiln_text_release(&row->room);
}

static KilnStatus add_word(Row *row, Word word, KilnError *err)
{
    if (row->n == row->capacity) {
        int64_t capacity = row->capacity > 0 ? 2 * row->capacity : 64;
        Word *more = realloc(row->words, (size_t)capacity * sizeof(*more));

        if (more == NULL)
            return kiln_error_nomem(err, (size_t)capacity * sizeof(*more));
        row->words = more;
        row->capacity = capacity;
    }
    word.at = row->n;
    row->words[row->n++] = word;
    return KILN_OK;
}

static KilnStatus add_text(Row *row, int64_t sequence, KilnError *err)
{
    size_t n = row->text.length;
    char *text = malloc(n + 1);
    KilnStatus status = KILN_OK;

    if (text == NULL || row->text.failed || row->room.failed) {
        free(text);
        return kiln_error_nomem(err, n + 1);
    }
    if (n > 0)
        memcpy(text, row->text.data, n);
    row->texts[sequence] = text;
    for (size_t i = 0; i < n && status >= 0;) {
        size_t start = i, space;

        while (i < n && kiln_space_at(text + i, n - i) == 0)
            i++;
        if (i > start)
            status = add_word(row, (Word) { .text = text + start, .length = i - start }, err);
        space = i < n ? kiln_space_at(text + i, n - i) : 0;
        i += space;
    }
    return status;
}

static KilnStatus add_sequence(Row *row, const Opts *opts, const KilnSequence *sequence,
                               int64_t index, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (sequence->ids == NULL && sequence->text == NULL && sequence->count > 0)
        return kiln_error_set(err, KILN_E_SHAPE, "a sequence has neither ids nor text");
    for (int64_t i = 0; sequence->ids != NULL && i < sequence->count && status >= 0; i++)
        status = add_word(row, (Word) { .id = sequence->ids[i] }, err);
    if (sequence->ids == NULL && sequence->text != NULL) {
        tokenize(sequence->text, opts->tokenize, &row->text, &row->room);
        status = add_text(row, index, err);
    }
    row->ends[index] = row->n;
    return status;
}

static int compare_words(const void *left, const void *right)
{
    const Word *a = left, *b = right;

    if (a->text == NULL || b->text == NULL) {
        if ((a->text == NULL) != (b->text == NULL))
            return a->text == NULL ? -1 : 1;
        return (a->id > b->id) - (a->id < b->id);
    }
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static KilnStatus name_words(Row *row, KilnError *err)
{
    size_t n = (size_t)row->n + 1;

    row->ids = calloc(n, sizeof(*row->ids));
    row->heads = calloc(n, sizeof(*row->heads));
    row->grams = calloc(n, sizeof(*row->grams));
    if (row->ids == NULL || row->heads == NULL || row->grams == NULL)
        return kiln_error_nomem(err, n * sizeof(*row->grams));
    if (row->n > 0)
        qsort(row->words, (size_t)row->n, sizeof(*row->words), compare_words);
    for (int64_t i = 0, id = 0; i < row->n; i++) {
        id += i > 0 && compare_words(&row->words[i - 1], &row->words[i]) != 0;
        row->ids[row->words[i].at] = id;
    }
    return KILN_OK;
}

static KilnStatus open_row(const Opts *opts, const KilnMetricRows *rows, int64_t i, Row *ret,
                           KilnError *err)
{
    KilnStatus status;

    ret->n_sequences = 1 + rows->n_references;
    ret->ends = calloc((size_t)ret->n_sequences, sizeof(*ret->ends));
    ret->texts = calloc((size_t)ret->n_sequences, sizeof(*ret->texts));
    if (ret->ends == NULL || ret->texts == NULL)
        return kiln_error_nomem(err, (size_t)ret->n_sequences * sizeof(*ret->ends));
    status = add_sequence(ret, opts, &rows->sequences[i], 0, err);
    for (int64_t r = 0; r < rows->n_references && status >= 0; r++)
        status = add_sequence(ret, opts, &rows->references[i * rows->n_references + r], 1 + r, err);
    return status >= 0 ? name_words(ret, err) : status;
}

/* ---- Counting ----------------------------------------------------------------------- */

/* What is counted: lengths, then per order how many n-grams there are and are found. */
enum { LENGTH, REFERENCE_LENGTH, TOTALS };

static int compare_grams(const void *left, const void *right)
{
    const Gram *a = left, *b = right;

    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    if (a->tail != b->tail)
        return a->tail < b->tail ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

/* All n-grams of `order` + 1 words, sorted. */
static int64_t gather(Row *row, int64_t order)
{
    int64_t n = 0, start = 0;

    for (int64_t s = 0; s < row->n_sequences; start = row->ends[s++])
        for (int64_t at = start; at + order < row->ends[s]; at++)
            row->grams[n++] = (Gram) { .head = order > 0 ? row->heads[at] : row->ids[at],
                                       .tail = order > 0 ? row->ids[at + order] : 0,
                                       .sequence = s,
                                       .at = at };
    if (n > 0)
        qsort(row->grams, (size_t)n, sizeof(*row->grams), compare_grams);
    return n;
}

/* Each n-gram of the sequence is found as often as in the reference that has it most. */
static void count_order(Row *row, int64_t order, int64_t *ret_total, int64_t *ret_found)
{
    int64_t n = gather(row, order), id = 0;

    for (int64_t i = 0; i < n; id++) {
        int64_t first = i, own = 0, most = 0, run = 0;

        for (; i < n && row->grams[i].head == row->grams[first].head &&
               row->grams[i].tail == row->grams[first].tail;
             i++) {
            run = i > first && row->grams[i].sequence == row->grams[i - 1].sequence ? run + 1 : 1;
            if (row->grams[i].sequence == 0)
                own = run;
            else if (run > most)
                most = run;
        }
        for (int64_t j = first; j < i; j++)
            row->heads[row->grams[j].at] = id;
        *ret_total += own;
        *ret_found += own < most ? own : most;
    }
}

/* The length of the reference that is closest to the sequence's, the shorter of two. */
static int64_t closest(const Row *row)
{
    int64_t own = row->ends[0], best = -1;

    for (int64_t s = 1; s < row->n_sequences; s++) {
        int64_t length = row->ends[s] - row->ends[s - 1];
        int64_t off = llabs(length - own), best_off = llabs(best - own);

        if (s == 1 || off < best_off || (off == best_off && length < best))
            best = length;
    }
    return best;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "counts", TOTALS + 2 * opts->max_order,
                                                 &counts, err);

    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        Row row = { 0 };

        status = open_row(opts, rows, i, &row, err);
        if (status >= 0) {
            counts[LENGTH] += row.ends[0];
            counts[REFERENCE_LENGTH] += closest(&row);
            for (int64_t order = 0; order < opts->max_order; order++)
                count_order(&row, order, &counts[TOTALS + 2 * order],
                            &counts[TOTALS + 2 * order + 1]);
        }
        release(&row);
    }
    return status;
}

/* ---- The score ---------------------------------------------------------------------- */

/* Log of the precision of an order, in percent; *halved counts orders without a hit. */
static double log_precision(const Opts *opts, double total, double found, double *halved)
{
    double value = opts->smooth_value != NULL ? *opts->smooth_value : 0.1;

    if (found > 0.0)
        return log(100.0 * found / total);
    if (opts->smooth == SMOOTH_EXP) {
        *halved *= 2.0;
        return log(100.0 / (*halved * total));
    }
    return opts->smooth == SMOOTH_FLOOR && value > 0.0 ? log(100.0 * value / total)
                                                       : -(double)INFINITY;
}

static double score(const Opts *opts, const int64_t *counts)
{
    double length = (double)counts[LENGTH], reference = (double)counts[REFERENCE_LENGTH];
    double brevity = length >= reference ? 1.0 : length > 0.0 ? exp(1.0 - reference / length) : 0.0;
    double add = opts->smooth != SMOOTH_ADD_K ? 0.0
                 : opts->smooth_value != NULL ? *opts->smooth_value
                                              : 1.0;
    double sum = 0.0, halved = 1.0;
    int64_t orders = 0, any = 0;

    for (int64_t order = 0; order < opts->max_order; order++)
        any += counts[TOTALS + 2 * order + 1];
    for (; any > 0 && orders < opts->max_order; orders++) {
        double more = orders > 0 ? add : 0.0;
        double total = (double)counts[TOTALS + 2 * orders] + more;

        if (total == 0.0)
            break;
        sum += log_precision(opts, total, (double)counts[TOTALS + 2 * orders + 1] + more, &halved);
    }
    if (any == 0 || (orders < opts->max_order && !opts->effective_order))
        return 0.0;
    return brevity * exp(sum / (double)orders);
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "counts", TOTALS + 2 * opts->max_order,
                                                 &counts, err);

    if (status < 0)
        return status;
    return kiln_metric_state_report(
        state, NULL, kiln_metric_state_rows(state) > 0 ? score(opts, counts) : (double)NAN, err);
}

static void signature(const KilnInstance *self, int64_t n_references, char *ret, size_t size)
{
    const Opts *opts = kiln_opts(self);
    char value[32] = "";

    if (opts->smooth == SMOOTH_FLOOR || opts->smooth == SMOOTH_ADD_K)
        snprintf(value, sizeof(value), "[%.2f]",
                 opts->smooth_value != NULL     ? *opts->smooth_value
                 : opts->smooth == SMOOTH_FLOOR ? 0.1
                                                : 1.0);
    snprintf(ret, size, "nrefs:%lld|case:mixed|eff:%s|tok:%s|smooth:%s%s|version:2.6.0",
             (long long)n_references, opts->effective_order ? "yes" : "no",
             tokenizers[opts->tokenize].name,
             opts->smooth == SMOOTH_ADD_K ? "add-k" : smoothings[opts->smooth].name, value);
}

static const KilnMetricOps ops = {
    .signature = signature,
    .takes = KILN_METRIC_SEQUENCES,
    .mode = KILN_MODE_MAX,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_bleu = {
    .kind = KILN_KIND_METRIC,
    .name = "bleu",
    .summary = "BLEU of a corpus, as sacrebleu",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_bleu, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
