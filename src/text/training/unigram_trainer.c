/* Learns a Unigram vocabulary (Kudo 2018) as Hugging Face's UnigramTrainer does: many substrings,
 * whose probabilities are estimated by expectation maximization; those that matter least are left
 * out, until few are left. All sums are made in the order of the words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/training/unigram_trainer.h"
#include "text/unicode/characters.h"

enum { SEEDS = 1000000 };

/* A piece that is expected less often is left out. */
static const double least_expected = 0.5;

typedef struct Trainer {
    const KilnWordCounts *words;
    const KilnUnigramTraining *training;
    const KilnPoll *poll;
    KilnUnigramPieces pieces;
    KilnUnigramLattice lattice;
    double *expected;             /* of the pieces and an unknown character */
    int64_t done, expected_total; /* words that were looked at, and that will be, about */
    KilnError *err;
} Trainer;

static KilnStatus progress(Trainer *t)
{
    if (++t->done % 64 != 0)
        return KILN_OK;
    return kiln_poll_check(t->poll, "learning pieces",
                           t->done < t->expected_total ? t->done : t->expected_total - 1,
                           t->expected_total, t->err);
}

/* ---- Expectation maximization ---------------------------------------------------------------- */

/* The derivative of the logarithm of the gamma function. */
static double digamma(double x)
{
    double result = 0.0;

    for (; x < 7.0; x += 1.0)
        result -= 1.0 / x;
    x -= 0.5;
    const double y = 1.0 / (x * x);

    return result + log(x) +
           y * (1.0 / 24.0 - y * (7.0 / 960.0 - y * (31.0 / 8064.0 - y * 127.0 / 30720.0)));
}

static KilnStatus expect(Trainer *t)
{
    KilnStatus status = kiln_unigram_lattice_set(&t->lattice, t->pieces.items, t->pieces.n, t->err);

    memset(t->expected, 0, (t->pieces.n + 1) * sizeof(*t->expected));
    for (size_t i = 0; i < t->words->words.n && status >= 0; i++) {
        const KilnString word = t->words->words.tokens[i];

        if (!kiln_unigram_expect(&t->lattice, word, (double)t->words->counts[i], t->expected))
            return kiln_error_nomem(t->err, word.length * sizeof(double));
        status = progress(t);
    }
    return status;
}

/* New scores, with a sparse prior (Liang and Klein 2007): exp(digamma(expected)) in place of the
 * expected numbers. */
static void maximize(Trainer *t)
{
    size_t n = 0;
    double sum = 0.0;

    for (size_t i = 0; i < t->pieces.n; i++) {
        if (t->expected[i] < least_expected)
            continue;
        t->pieces.items[n] = t->pieces.items[i];
        t->pieces.items[n++].score = t->expected[i];
        sum += t->expected[i];
    }
    t->pieces.n = n;
    sum = digamma(sum);
    for (size_t i = 0; i < n; i++)
        t->pieces.items[i].score = digamma(t->pieces.items[i].score) - sum;
}

/* ---- Leaving out ----------------------------------------------------------------------------- */

typedef struct Candidate {
    double loss;
    size_t id;
} Candidate;

static int worst_loss_first(const void *left, const void *right)
{
    const Candidate *a = left, *b = right;

    if (a->loss != b->loss)
        return a->loss > b->loss ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* How often each piece occurs in the best segmentations of all words. */
static KilnStatus count_best(Trainer *t, double *counts)
{
    KilnStatus status = KILN_OK;

    memset(counts, 0, (t->pieces.n + 1) * sizeof(*counts));
    for (size_t i = 0; i < t->words->words.n && status >= 0; i++) {
        const KilnString word = t->words->words.tokens[i];

        if (kiln_unigram_best(&t->lattice, word, false) == 0)
            return kiln_error_nomem(t->err, word.length * sizeof(KilnPathNode));
        for (size_t at = word.length; at > 0; at = (size_t)t->lattice.path[at].start)
            counts[t->lattice.path[at].id] += (double)t->words->counts[i];
        status = progress(t);
    }
    return status;
}

/* What leaving out a piece costs, when the pieces of its own best segmentation into others take its
 * place: the loss of the logarithm of the likelihood, for each word of the texts. */
static double loss_of(const Trainer *t, const double *counts, double sum, double n_words, size_t id,
                      size_t parts)
{
    const double count = counts[id];
    const double after = log(sum + count * (double)(parts - 1));
    double others = 0.0;

    for (size_t at = t->pieces.items[id].text.length; at > 0;
         at = (size_t)t->lattice.path[at].start)
        others += log(counts[t->lattice.path[at].id] + count) - after;
    return count / n_words * (log(count) - log(sum) - others);
}

/* Sort the pieces into those that stay (kept) and those that may be left out (candidates). */
static void judge(Trainer *t, const double *counts, size_t *kept, size_t *ret_kept,
                  Candidate *candidates, size_t *ret_candidates)
{
    double sum = 0.0, n_words = 0.0;

    for (size_t i = 0; i <= t->pieces.n; i++)
        sum += counts[i];
    for (size_t i = 0; i < t->words->words.n; i++)
        n_words += (double)t->words->counts[i];
    for (size_t i = 0; i < t->pieces.n; i++) {
        const KilnUnigramPiece *piece = &t->pieces.items[i];
        const size_t parts = kiln_unigram_best(&t->lattice, piece->text, true);
        const bool worse = parts > 0 && t->lattice.path[piece->text.length].score > piece->score;

        if (parts == 0 || (worse && counts[i] > 0.0))
            kept[(*ret_kept)++] = i;
        else if (counts[i] > 0.0)
            candidates[(*ret_candidates)++] =
                (Candidate) { loss_of(t, counts, sum, n_words, i, parts), i };
    }
}

/* Leave out pieces; those that stay are sorted: the ones without an alternative, then by loss. */
static KilnStatus prune(Trainer *t, size_t size)
{
    const size_t n = t->pieces.n;
    KilnUnigramPiece *pieces = malloc((n + 1) * sizeof(*pieces));
    double *counts = malloc((n + 1) * sizeof(*counts));
    size_t *kept = malloc((n + 1) * sizeof(*kept)), n_kept = 0, n_candidates = 0;
    Candidate *candidates = malloc((n + 1) * sizeof(*candidates));
    KilnStatus status = pieces != NULL && counts != NULL && kept != NULL && candidates != NULL
                            ? kiln_unigram_lattice_set(&t->lattice, t->pieces.items, n, t->err)
                            : kiln_error_nomem(t->err, n * sizeof(*pieces));

    if (status >= 0)
        status = count_best(t, counts);
    if (status >= 0) {
        judge(t, counts, kept, &n_kept, candidates, &n_candidates);
        qsort(candidates, n_candidates, sizeof(*candidates), worst_loss_first);
        for (size_t i = 0; i < n_kept; i++)
            pieces[i] = t->pieces.items[kept[i]];
        for (size_t i = 0; i < n_candidates && n_kept < size; i++)
            pieces[n_kept++] = t->pieces.items[candidates[i].id];
        memcpy(t->pieces.items, pieces, n_kept * sizeof(*pieces));
        t->pieces.n = n_kept;
    }
    free(pieces);
    free(counts);
    free(kept);
    free(candidates);
    return status;
}

/* ---- Training -------------------------------------------------------------------------------- */

static KilnStatus learn(Trainer *t)
{
    const KilnUnigramTraining *training = t->training;
    const size_t wanted = (size_t)training->vocab_size * 11 / 10;
    KilnStatus status = KILN_OK;

    for (size_t before = SIZE_MAX; status >= 0;) {
        for (int64_t i = 0; i < training->n_sub_iterations && status >= 0; i++) {
            status = expect(t);
            if (status >= 0)
                maximize(t);
        }
        if (status < 0 || t->pieces.n < wanted || t->pieces.n >= before)
            break;
        before = t->pieces.n;
        const size_t smaller = (size_t)((double)t->pieces.n * training->shrinking_factor);
        status = prune(t, smaller > wanted ? smaller : wanted);
    }
    return status;
}

static int by_score(const void *left, const void *right)
{
    const KilnUnigramPiece *a = left, *b = right;
    const size_t n = a->text.length < b->text.length ? a->text.length : b->text.length;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    const int order = memcmp(a->text.data, b->text.data, n);
    return order != 0 ? order
                      : (a->text.length > b->text.length) - (a->text.length < b->text.length);
}

/* The score has 9 decimal digits: all readers of JSON, also those that may be off by a bit of a
 * long number, then compare sums of scores alike. */
static int32_t add_scored(KilnLearned *learned, KilnString token, double score)
{
    const int32_t id = kiln_learned_add(learned, token.data, token.length);

    if (id < 0 || !KILN_RESERVE(learned->scores, learned->scores_capacity, learned->vocab.n))
        return -1;
    learned->scores[id] = nearbyint(score * 1e9) / 1e9;
    return id;
}

/* The final vocabulary: all characters, and pieces in their order as long as there is room. */
static bool choose(const Trainer *t, const KilnString *characters, size_t n_characters,
                   KilnUnigramPiece *list, size_t *ret_n)
{
    const size_t room = (size_t)t->training->vocab_size - t->training->n_special_tokens;
    KilnVocab found = { 0 };
    double least = 0.0;
    size_t n = 0, n_found = 0;
    bool done = true;

    for (size_t i = 0; i < t->pieces.n && done; i++) {
        const KilnUnigramPiece *piece = &t->pieces.items[i];

        least = fmin(least, piece->score);
        if (kiln_utf8_count(piece->text.data, piece->text.length) != 1)
            continue;
        list[n++] = *piece;
        done = kiln_vocab_add(&found, piece->text, (int32_t)n_found++);
    }
    for (size_t i = 0; i < n_characters && done; i++)
        if (kiln_vocab_find(&found, characters[i].data, characters[i].length) < 0) {
            list[n++] = (KilnUnigramPiece) { characters[i], least };
            least += 0.0001; /* so that their order is certain */
        }
    for (size_t i = 0; i < t->pieces.n && n < room && done; i++)
        if (kiln_utf8_count(t->pieces.items[i].text.data, t->pieces.items[i].text.length) != 1)
            list[n++] = t->pieces.items[i];
    kiln_vocab_release(&found);
    *ret_n = n;
    return done;
}

static KilnStatus finish(const Trainer *t, const KilnString *characters, size_t n_characters,
                         KilnLearned *ret)
{
    const KilnUnigramTraining *training = t->training;
    KilnUnigramPiece *list = malloc((t->pieces.n + n_characters + 1) * sizeof(*list));
    size_t n = 0;
    bool done = list != NULL && choose(t, characters, n_characters, list, &n);

    for (size_t i = 0; i < training->n_special_tokens && done; i++) {
        const char *token = training->special_tokens[i];

        done = add_scored(ret, (KilnString) { token, strlen(token) }, 0.0) >= 0;
    }
    if (done && n > 0)
        qsort(list, n, sizeof(*list), by_score);
    for (size_t i = 0; i < n && done; i++)
        done = add_scored(ret, list[i].text, list[i].score) >= 0;
    free(list);
    return done ? KILN_OK : kiln_error_nomem(t->err, n * sizeof(*list));
}

/* The texts of the first pieces, which are all characters; NULL: memory ran out. */
static KilnString *copy_characters(const KilnUnigramPieces *pieces)
{
    KilnString *characters = malloc((pieces->n_characters + 1) * sizeof(*characters));

    for (size_t i = 0; characters != NULL && i < pieces->n_characters; i++)
        characters[i] = pieces->items[i].text;
    return characters;
}

/* How many words expectation and pruning will look at. */
static int64_t expect_total(const Trainer *t)
{
    const double factor = (double)t->training->vocab_size * 1.1 / (double)t->pieces.n;
    const double loops = factor < 1.0 ? ceil(log(factor) / log(t->training->shrinking_factor))
                                      : 0.0;

    return (int64_t)((loops + 1.0) * (double)(t->training->n_sub_iterations + 1) *
                     (double)t->words->words.n);
}

KilnStatus kiln_train_unigram(const KilnWordCounts *words, const KilnUnigramTraining *training,
                              const KilnPoll *poll, KilnLearned *ret, KilnError *err)
{
    Trainer t = { .words = words, .training = training, .poll = poll, .err = err };
    KilnStatus status = kiln_poll_check(poll, "finding substrings", 0, 0, err);

    if (status >= 0)
        status = kiln_unigram_seeds(words, training->max_piece_length, SEEDS, &t.pieces, err);
    const size_t n_characters = t.pieces.n_characters;
    if (status >= 0 && n_characters + training->n_special_tokens > (size_t)training->vocab_size)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "a vocabulary of %lld tokens has no room for the %zu special "
                                "tokens and the %zu different characters of the texts; raise "
                                "vocab_size",
                                (long long)training->vocab_size, training->n_special_tokens,
                                n_characters);
    KilnString *characters = status >= 0 ? copy_characters(&t.pieces) : NULL;
    if (status >= 0) {
        t.expected = malloc((t.pieces.n + 1) * sizeof(*t.expected));
        t.expected_total = expect_total(&t);
        status = t.expected != NULL && characters != NULL
                     ? learn(&t)
                     : kiln_error_nomem(err, t.pieces.n * sizeof(*t.expected));
    }
    if (status >= 0)
        status = finish(&t, characters, n_characters, ret);
    kiln_unigram_lattice_release(&t.lattice);
    kiln_unigram_pieces_release(&t.pieces);
    free(t.expected);
    free(characters);
    return status;
}
