/* Training Unigram models: first pieces, sums over segmentations against a list of all of them, the
 * best segmentation, and whole trainings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "text/training/unigram_trainer.h"

static KilnString text_of(const char *text)
{
    return (KilnString) { text, strlen(text) };
}

/* ---- First pieces ---------------------------------------------------------------------------- */

static void count(KilnWordCounts *counts, const char *const *words, const int64_t *numbers,
                  size_t n)
{
    counts->counts = calloc(n, sizeof(*counts->counts));
    for (size_t i = 0; i < n; i++) {
        assert_true(kiln_vocab_add(&counts->words, text_of(words[i]), (int32_t)i));
        counts->counts[i] = numbers[i];
    }
}

/* Characters by how often they occur, then substrings by length times words; "xab" ends every word
 * that it is in, so it is none; "ab" is followed by c and by the end. */
static void test_seeds(void **unused)
{
    static const char *const words[] = { "abc", "xab", "yxab", "\xc3\xa9z", "q\xc3\xa9z\xc3\xa9" };
    static const int64_t numbers[] = { 5, 1, 1, 1, 1 };
    static const struct {
        const char *text;
        double share;
    } want[] = { { "b", 7 }, { "a", 7 }, { "c", 5 }, { "\xc3\xa9", 3 }, { "z", 2 },
                 { "x", 2 }, { "y", 1 }, { "q", 1 }, { "ab", 6 },       { "\xc3\xa9z", 4 } };
    KilnWordCounts counts = { 0 };
    KilnUnigramPieces pieces = { 0 };
    KilnError err = { 0 };

    (void)unused;
    count(&counts, words, numbers, KILN_COUNT(words));
    assert_int_equal(kiln_unigram_seeds(&counts, 16, 100, &pieces, &err), KILN_OK);
    assert_int_equal(pieces.n, KILN_COUNT(want));
    assert_int_equal(pieces.n_characters, 8);
    for (size_t i = 0; i < KILN_COUNT(want); i++) {
        double share = 0.0;

        for (size_t k = 0; k < pieces.n; k++)
            if (pieces.items[k].text.length == strlen(want[i].text) &&
                memcmp(pieces.items[k].text.data, want[i].text, strlen(want[i].text)) == 0)
                share = exp(pieces.items[k].score) * 38.0;
        if (fabs(share - want[i].share) > 1e-9)
            fail_msg("%s: %g, expected %g", want[i].text, share, want[i].share);
    }
    kiln_unigram_pieces_release(&pieces);
    assert_int_equal(kiln_unigram_seeds(&counts, 1, 100, &pieces, &err), KILN_OK);
    assert_int_equal(pieces.n, 8);
    kiln_unigram_pieces_release(&pieces);
    kiln_word_counts_release(&counts);
}

/* ---- Segmentations --------------------------------------------------------------------------- */

static KilnUnigramPiece pieces[] = {
    { { "a", 1 }, -1.5 },
    { { "b", 1 }, -2.0 },
    { { "ab", 2 }, -2.5 },
    { { "ba", 2 }, -3.5 },
    { { "aba", 3 }, -3.0 },
    { { "\xc3\xa9"
        "b",
        3 },
      -4.0 },
};

enum { PIECES = (int)KILN_COUNT(pieces) };

/* Walk through all segmentations from `at` on. Returns the sum of their probabilities and adds to
 * expected[id] those that have the piece, each times `before`; *best: the highest score. */
static double list_all(const KilnUnigramLattice *lattice, KilnString word, size_t at, double before,
                       double score, double *expected, double *best)
{
    double sum = 0.0;
    bool single = false;
    const size_t length = (unsigned char)word.data[at] >= 0xc0 ? 2 : 1;

    if (at == word.length) {
        *best = fmax(*best, score);
        return 1.0;
    }
    for (int i = 0; i <= PIECES; i++) {
        const bool unknown = i == PIECES;
        const size_t n = unknown ? length : pieces[i].text.length;
        const double own = unknown ? lattice->unknown : pieces[i].score;

        if (unknown ? single
                    : at + n > word.length || memcmp(pieces[i].text.data, word.data + at, n) != 0)
            continue;
        single = single || n == length;
        const double rest = list_all(lattice, word, at + n, before * exp(own), score + own,
                                     expected, best);
        expected[i] += before * exp(own) * rest;
        sum += exp(own) * rest;
    }
    return sum;
}

static void test_segmentations(void **unused)
{
    static const char *const words[] = { "a",
                                         "abab",
                                         "bababba",
                                         "\xc3\xa9"
                                         "bab",
                                         "a\xc3\xa9",
                                         "abxba" };
    KilnUnigramLattice lattice = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_unigram_lattice_set(&lattice, pieces, PIECES, &err), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(words); i++) {
        double got[PIECES + 1] = { 0 }, want[PIECES + 1] = { 0 }, best = -INFINITY;
        const KilnString word = text_of(words[i]);
        const double sum = list_all(&lattice, word, 0, 1.0, 0.0, want, &best);

        assert_true(kiln_unigram_expect(&lattice, word, 3.0, got));
        for (int k = 0; k <= PIECES; k++)
            if (fabs(got[k] - 3.0 * want[k] / sum) > 1e-12)
                fail_msg("%s, piece %d: %.15g, expected %.15g", words[i], k, got[k],
                         3.0 * want[k] / sum);
        assert_true(kiln_unigram_best(&lattice, word, false) > 0);
        assert_true(fabs(lattice.path[word.length].score - best) < 1e-12);
    }
    /* Without the whole word: a, b and a are worse than ab and a. */
    assert_int_equal(kiln_unigram_best(&lattice, text_of("aba"), false), 1);
    assert_int_equal(kiln_unigram_best(&lattice, text_of("aba"), true), 2);
    assert_int_equal(kiln_unigram_best(&lattice, text_of("a"), true), 0);
    kiln_unigram_lattice_release(&lattice);
}

/* A word whose segmentations have a probability far below the smallest double. */
static void test_long_words(void **unused)
{
    enum { TIMES = 20000 };
    char *text = malloc(4 * TIMES);
    double got[PIECES + 1] = { 0 }, want[PIECES + 1] = { 0 }, best = 0.0;
    KilnUnigramLattice lattice = { 0 };
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < TIMES; i++)
        memcpy(text + 4L * i, i % 2 == 0 ? "abax" : "bbax", 4); /* no piece crosses an x */
    assert_int_equal(kiln_unigram_lattice_set(&lattice, pieces, PIECES, &err), KILN_OK);
    assert_true(kiln_unigram_expect(&lattice, (KilnString) { text, 4L * TIMES }, 1.0, got));
    for (int i = 0; i < 2; i++) {
        double part[PIECES + 1] = { 0 };
        const double sum = list_all(&lattice, text_of(i == 0 ? "abax" : "bbax"), 0, 1.0, 0.0, part,
                                    &best);

        for (int k = 0; k <= PIECES; k++)
            want[k] += part[k] / sum * TIMES / 2;
    }
    for (int k = 0; k <= PIECES; k++)
        assert_true(fabs(got[k] - want[k]) <= 1e-9 * TIMES);
    kiln_unigram_lattice_release(&lattice);
    free(text);
}

/* ---- Training -------------------------------------------------------------------------------- */

static bool next_text(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    static const char *const texts[] = {
        "the quick brown fox jumps over the lazy dog",
        "the quicker browner foxes jumped over the laziest dogs",
        "thinking and jumping, quickly and lazily: the foxing of the brownest",
        "a caf\xc3\xa9",
    };
    size_t *at = ctx;

    (void)ret_status;
    (void)err;
    if (*at == KILN_COUNT(texts))
        return false;
    *ret = text_of(texts[(*at)++]);
    return true;
}

static KilnStatus train(int64_t vocab_size, KilnTokenPipeline **ret, KilnError *err)
{
    static const char definition[] =
        "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", "
        "\"prepend_scheme\": \"always\", \"split\": true}, \"model\": {\"type\": \"Unigram\", "
        "\"vocab\": [], \"unk_id\": null}}";
    static const char *const special[] = { "<pad>", "<unk>" };
    size_t at = 0;
    const KilnTexts texts = { next_text, &at };
    const KilnUnigramTraining training = {
        .vocab_size = vocab_size,
        .special_tokens = special,
        .n_special_tokens = 2,
        .unk_token = "<unk>",
        .max_piece_length = 16,
        .shrinking_factor = 0.75,
        .n_sub_iterations = 2,
    };

    return kiln_token_pipeline_train_unigram(definition, &training, &texts, NULL, ret, err);
}

static void test_training(void **unused)
{
    KilnTokenPipeline *first = NULL, *second = NULL;
    KilnEncoding encoding = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(train(60, &first, &err), KILN_OK);
    assert_int_equal(train(60, &second, &err), KILN_OK);
    assert_int_equal(kiln_token_pipeline_size(first), kiln_token_pipeline_size(second));
    assert_in_range(kiln_token_pipeline_size(first), 40, 60);
    for (int64_t i = 0; i < kiln_token_pipeline_size(first); i++) {
        const KilnString a = kiln_token_pipeline_token(first, i);
        const KilnString b = kiln_token_pipeline_token(second, i);

        assert_int_equal(a.length, b.length);
        assert_memory_equal(a.data, b.data, a.length);
    }
    assert_int_equal(kiln_token_pipeline_special(first, KILN_TOKEN_UNK), 1);
    assert_true(kiln_token_pipeline_id(first, text_of("\xc3\xa9")) >= 0);
    assert_true(kiln_token_pipeline_id(first, text_of("\xe2\x96\x81jump")) >= 0);
    const KilnTokenizerInput input = { .text = text_of("the \xe2\x82\xac") };
    assert_int_equal(kiln_token_pipeline_encode(first, &input, &encoding, &err), KILN_OK);
    assert_int_equal(encoding.ids[encoding.n - 1], 1);
    kiln_encoding_release(&encoding);
    kiln_token_pipeline_free(first);
    kiln_token_pipeline_free(second);
}

static void test_refusals(void **unused)
{
    KilnTokenPipeline *pipeline = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(train(20, &pipeline, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "no room for the 2 special tokens and the "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),      cmocka_unit_test(test_segmentations),
        cmocka_unit_test(test_long_words), cmocka_unit_test(test_training),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
