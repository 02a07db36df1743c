/* Beam search finds the sequences and scores that Hugging Face's transformers does
 * (tests/record/beam_search.py): the model adds a table of the token before and one of the place.
 */
#include <math.h>

#include "kiln/array.h"
#include "tests/support/cmocka.h"
#include "train/step/beams.h"

/* A sequence without its end, and the log-probability over length^length_penalty. */
typedef struct Found {
    int64_t n;
    int32_t ids[12];
    double score;
} Found;

typedef struct Search {
    int64_t beams;
    double length_penalty;
    Found found[20]; /* the best `beams` of each sample */
} Search;

#include "tests/data/beam_search.h"

/* Log-probabilities of what follows a token at a place; `last` IDS: nothing comes before. */
static void model(int64_t sample, int64_t last, int64_t at, float *ret)
{
    double sum = 0.0;

    for (int64_t i = 0; i < IDS; i++) {
        ret[i] = before[(sample * (IDS + 1) + last) * IDS + i] +
                 place[(sample * PLACES + at) * IDS + i];
        sum += exp((double)ret[i]);
    }
    for (int64_t i = 0; i < IDS; i++)
        ret[i] -= (float)log(sum);
}

static void compare(const Search *want)
{
    const KilnBeamSearch search = { .beams = want->beams,
                                    .n_best = want->beams,
                                    .length_penalty = want->length_penalty,
                                    .max_length = PLACES,
                                    .begin = IDS,
                                    .end = END,
                                    .n_ids = IDS };
    float log_probs[SAMPLES * 5 * IDS];
    KilnBeams beams = { 0 };
    KilnHypothesis *list = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_beams_init(&beams, &search, SAMPLES, &err), KILN_OK);
    while (!kiln_beams_done(&beams)) {
        for (int64_t r = 0; r < SAMPLES * search.beams; r++)
            model(r / search.beams, beams.last[r], beams.length, log_probs + r * IDS);
        assert_int_equal(kiln_beams_extend(&beams, log_probs, &err), KILN_OK);
    }
    assert_int_equal(kiln_beams_take(&beams, &list, &err), KILN_OK);
    for (int64_t i = 0; i < SAMPLES * search.beams; i++) {
        const Found *found = &want->found[i];

        assert_int_equal(list[i].n, found->n);
        for (int64_t t = 0; t < found->n; t++)
            assert_int_equal(list[i].ids[t], found->ids[t]);
        if (search.beams > 1) /* greedy search there gives none */
            assert_true(fabs(list[i].score - found->score) < 2e-6 * (1.0 + fabs(found->score)));
    }
    kiln_hypotheses_free(list, SAMPLES * search.n_best);
    kiln_beams_release(&beams);
}

static void test_searches(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(searches); i++)
        compare(&searches[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_searches) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
