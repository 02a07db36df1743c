/* Beam search against a plain search that keeps whole sequences and computes each probability from
 * all of its tokens. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/rng.h"
#include "tests/support/cmocka.h"
#include "train/step/beams.h"

enum { IDS = 7, END = 2, BEGIN = 1, MOST = 12, WIDEST = 4, SAMPLES = 3 };

/* Log-probabilities of what follows `n` tokens, drawn from them alone. */
static void model(int sample, const int32_t *tokens, int64_t n, uint64_t seed, float *ret)
{
    uint64_t key = seed * 1000003 + (uint64_t)sample;
    KilnRng rng;
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        key = key * 31 + (uint64_t)tokens[i] + 1;
    kiln_rng_init(&rng, key, KILN_RNG_USER, 0, 0);
    for (int i = 0; i < IDS; i++) {
        ret[i] = (float)exp(3.0 * (double)kiln_rng_below(&rng, 1000) / 1000.0);
        sum += (double)ret[i];
    }
    for (int i = 0; i < IDS; i++)
        ret[i] = (float)log((double)ret[i] / sum);
}

/* ---- The plain search ------------------------------------------------------------------------ */

typedef struct Sequence {
    int32_t tokens[MOST + 1];
    int64_t n;
    double log_prob, score;
} Sequence;

static int by_log_prob(const void *left, const void *right)
{
    const Sequence *a = left, *b = right;

    return (a->log_prob < b->log_prob) - (a->log_prob > b->log_prob);
}

static int by_score(const void *left, const void *right)
{
    const Sequence *a = left, *b = right;

    return (a->score < b->score) - (a->score > b->score);
}

/* Fill ret[beams] with the best sequences; returns their number. */
static size_t search_plainly(int sample, uint64_t seed, const KilnBeamSearch *search, int64_t limit,
                             Sequence *ret)
{
    const size_t beams = (size_t)search->beams;
    Sequence live[WIDEST] = { 0 }, all[WIDEST * IDS], finished[WIDEST * MOST * 2];
    size_t n_live = 1, n_finished = 0;

    for (int64_t step = 1; step <= limit && n_live > 0; step++) {
        size_t n = 0;

        for (size_t b = 0; b < n_live; b++) {
            float log_probs[IDS];

            model(sample, live[b].tokens, live[b].n, seed, log_probs);
            for (int32_t t = 0; t < IDS; t++) {
                all[n] = live[b];
                all[n].tokens[all[n].n++] = t;
                all[n].log_prob += (double)log_probs[t];
                all[n].score = all[n].log_prob / pow((double)step, search->length_penalty);
                n++;
            }
        }
        qsort(all, n, sizeof(*all), by_log_prob);
        n_live = 0;
        for (size_t i = 0; i < n && i < 2 * beams; i++) {
            const bool ends = all[i].tokens[all[i].n - 1] == END;

            if ((ends || step == limit) && i < beams) {
                finished[n_finished] = all[i];
                finished[n_finished++].n -= ends;
            } else if (!ends && step < limit && n_live < beams) {
                live[n_live++] = all[i];
            }
        }
        qsort(finished, n_finished, sizeof(*finished), by_score);
        n_finished = n_finished < beams ? n_finished : beams;
        if (n_finished == beams && n_live > 0 &&
            live[0].log_prob / pow((double)step, search->length_penalty) <=
                finished[beams - 1].score)
            break;
    }
    memcpy(ret, finished, n_finished * sizeof(*ret));
    return n_finished;
}

/* ---- Comparison -------------------------------------------------------------------------------
 */

/* Row r of the beams holds the tokens before this step. */
static void step_model(const KilnBeams *beams, uint64_t seed, float *log_probs)
{
    const int64_t width = beams->search->beams;

    for (int64_t r = 0; r < SAMPLES * width; r++)
        model((int)(r / width), beams->tokens + r * beams->search->max_length, beams->length, seed,
              log_probs + r * IDS);
}

static void compare(const KilnBeamSearch *search, uint64_t seed)
{
    float log_probs[SAMPLES * WIDEST * IDS];
    KilnBeams beams = { 0 };
    KilnHypothesis *list = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_beams_init(&beams, search, SAMPLES, &err), KILN_OK);
    while (!kiln_beams_done(&beams)) {
        step_model(&beams, seed, log_probs);
        assert_int_equal(kiln_beams_extend(&beams, log_probs, &err), KILN_OK);
    }
    assert_int_equal(kiln_beams_take(&beams, &list, &err), KILN_OK);
    for (int s = 0; s < SAMPLES; s++) {
        Sequence want[WIDEST];
        const size_t n = search_plainly(s, seed, search, search->limits[s], want);

        assert_true((int64_t)n >= search->n_best || search->limits[s] == 1);
        for (int64_t i = 0; i < search->n_best && i < (int64_t)n; i++) {
            const KilnHypothesis *got = &list[s * search->n_best + i];

            assert_int_equal(got->n, want[i].n);
            assert_memory_equal(got->ids, want[i].tokens, (size_t)got->n * sizeof(*got->ids));
            assert_true(fabs(got->score - want[i].score) < 1e-12);
        }
    }
    kiln_hypotheses_free(list, SAMPLES * search->n_best);
    kiln_beams_release(&beams);
}

static void test_plain_search(void **unused)
{
    static const int32_t limits[] = { MOST, 5, 1 };
    static const double penalties[] = { 1.0, 0.0, 0.6, 2.0, -0.5 };

    (void)unused;
    for (int64_t beams = 1; beams <= WIDEST; beams++)
        for (size_t p = 0; p < KILN_COUNT(penalties); p++)
            for (uint64_t seed = 0; seed < 40; seed++)
                compare(&(KilnBeamSearch) { .beams = beams,
                                            .n_best = (beams + 1) / 2,
                                            .length_penalty = penalties[p],
                                            .max_length = MOST,
                                            .limits = limits,
                                            .begin = BEGIN,
                                            .end = END,
                                            .n_ids = IDS },
                        seed);
}

/* Greedy search takes the most probable token each time. */
static void test_greedy(void **unused)
{
    static const int32_t limits[SAMPLES] = { MOST, MOST, MOST };
    const KilnBeamSearch search = { .beams = 1,
                                    .n_best = 1,
                                    .length_penalty = 1.0,
                                    .max_length = MOST,
                                    .limits = limits,
                                    .begin = BEGIN,
                                    .end = END,
                                    .n_ids = IDS };
    float log_probs[SAMPLES * IDS];
    KilnBeams beams = { 0 };
    KilnHypothesis *list = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_beams_init(&beams, &search, SAMPLES, &err), KILN_OK);
    for (int64_t r = 0; r < SAMPLES; r++)
        assert_int_equal(beams.last[r], BEGIN);
    while (!kiln_beams_done(&beams)) {
        step_model(&beams, 5, log_probs);
        assert_int_equal(kiln_beams_extend(&beams, log_probs, &err), KILN_OK);
    }
    assert_int_equal(kiln_beams_take(&beams, &list, &err), KILN_OK);
    for (int s = 0; s < SAMPLES; s++)
        for (int64_t i = 0; i < list[s].n; i++) {
            float row[IDS];

            model(s, list[s].ids, i, 5, row);
            for (int t = 0; t < IDS; t++)
                assert_true(row[t] <= row[list[s].ids[i]]);
        }
    kiln_hypotheses_free(list, SAMPLES);
    kiln_beams_release(&beams);
}

/* A model that gives no numbers ends the search without sequences. */
static void test_not_a_number(void **unused)
{
    const KilnBeamSearch search = { .beams = 2,
                                    .n_best = 1,
                                    .length_penalty = 1.0,
                                    .max_length = 3,
                                    .begin = BEGIN,
                                    .end = END,
                                    .n_ids = IDS };
    float log_probs[2 * IDS];
    KilnBeams beams = { 0 };
    KilnHypothesis *list = NULL;
    KilnError err = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(log_probs); i++)
        log_probs[i] = NAN;
    assert_int_equal(kiln_beams_init(&beams, &search, 1, &err), KILN_OK);
    while (!kiln_beams_done(&beams))
        assert_int_equal(kiln_beams_extend(&beams, log_probs, &err), KILN_OK);
    assert_int_equal(kiln_beams_take(&beams, &list, &err), KILN_OK);
    assert_int_equal(list[0].n, 0);
    kiln_hypotheses_free(list, 1);
    kiln_beams_release(&beams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_search),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_not_a_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
