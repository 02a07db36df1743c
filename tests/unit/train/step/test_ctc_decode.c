/* Decoding of CTC: cases by hand, all paths of short sequences, and a plain search that keeps whole
 * sequences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/rng.h"
#include "kiln/tools/ctc_decode.h"
#include "tests/support/cmocka.h"

enum { STEPS = 8, CLASSES = 4 };

typedef struct Decoded {
    int32_t ids[STEPS];
    int64_t n;
    double score;
} Decoded;

static Decoded decode(const float *log_probs, int64_t steps, int64_t classes, int64_t beams)
{
    Decoded ret = { .n = -1 };
    KilnError err = { 0 };

    if (kiln_ctc_decode((KilnCtcProbs) { log_probs, steps, classes }, beams, ret.ids, &ret.n,
                        &ret.score, &err) < 0)
        fail_msg("%s", err.text);
    return ret;
}

static void check(Decoded got, const int32_t *ids, int64_t n, double score)
{
    assert_int_equal(got.n, n);
    assert_memory_equal(got.ids, ids, (size_t)n * sizeof(*ids));
    assert_true(fabs(got.score - score) < 1e-5);
}

/* The blank is the best class of both steps, so greedy decoding gives nothing (0.6 * 0.6 = 0.36).
 * But three paths lead to "a": a blank, blank a, a a; 0.24 + 0.24 + 0.16 = 0.64. */
static void test_beams_add_paths(void **unused)
{
    const float blank = logf(0.6f), a = logf(0.4f);
    const float log_probs[] = { blank, a, blank, a };
    static const int32_t one[] = { 1 };

    (void)unused;
    check(decode(log_probs, 2, 2, 1), NULL, 0, log(0.36));
    check(decode(log_probs, 2, 2, 2), one, 1, log(0.64));
    check(decode(log_probs, 2, 2, 100), one, 1, log(0.64));
    check(decode(log_probs, 0, 2, 1), NULL, 0, 0.0);
    check(decode(log_probs, 0, 2, 5), NULL, 0, 0.0);
}

/* b b blank b c c: a repetition is one character, unless a blank is between them. */
static void test_repetitions(void **unused)
{
    static const int32_t path[] = { 2, 2, 0, 2, 3, 3 }, want[] = { 2, 2, 3 };
    float log_probs[KILN_COUNT(path)][CLASSES];

    (void)unused;
    for (size_t t = 0; t < KILN_COUNT(path); t++)
        for (int32_t c = 0; c < CLASSES; c++)
            log_probs[t][c] = logf(c == path[t] ? 0.97f : 0.01f);
    check(decode(log_probs[0], KILN_COUNT(path), CLASSES, 1), want, 3, 6.0 * log(0.97));
    const Decoded beams = decode(log_probs[0], KILN_COUNT(path), CLASSES, 4);
    assert_int_equal(beams.n, 3);
    assert_memory_equal(beams.ids, want, sizeof(want));
    assert_true(beams.score > 6.0 * log(0.97));
}

static void test_odd_values(void **unused)
{
    const float nan[] = { NAN, NAN, NAN, NAN }, impossible[] = { -INFINITY, 0.0f, 0.0f, -INFINITY };
    static const int32_t one[] = { 1 };

    (void)unused;
    assert_int_equal(decode(nan, 2, 2, 3).n, 0);
    assert_true(decode(nan, 2, 2, 3).score == -INFINITY);
    check(decode(impossible, 2, 2, 1), one, 1, 0.0);
    check(decode(impossible, 2, 2, 3), one, 1, 0.0);
}

/* ---- A plain search ---------------------------------------------------------------------------
 */

static void draw(uint64_t seed, float log_probs[STEPS][CLASSES])
{
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 0, 0);
    for (int t = 0; t < STEPS; t++) {
        double sum = 0.0;

        for (int c = 0; c < CLASSES; c++) {
            log_probs[t][c] = 3.0f * kiln_rng_normal(&rng);
            sum += exp((double)log_probs[t][c]);
        }
        for (int c = 0; c < CLASSES; c++)
            log_probs[t][c] -= (float)log(sum);
    }
}

/* A sequence, and the probabilities of its paths that end with a blank, and that do not. */
typedef struct Plain {
    int32_t ids[STEPS];
    int64_t n;
    double blank, other;
} Plain;

enum { MOST = 20000 };

static Plain *find(Plain *list, size_t *n, const int32_t *ids, int64_t length)
{
    for (size_t i = 0; i < *n; i++)
        if (list[i].n == length && memcmp(list[i].ids, ids, (size_t)length * sizeof(*ids)) == 0)
            return &list[i];
    assert_true(*n < MOST);
    list[*n] = (Plain) { .n = length };
    memcpy(list[*n].ids, ids, (size_t)length * sizeof(*ids));
    return &list[(*n)++];
}

static int by_probability(const void *left, const void *right)
{
    const Plain *a = left, *b = right;
    const double p = a->blank + a->other, q = b->blank + b->other;

    return p > q ? -1 : p < q;
}

/* The best of what `beams` sequences become at each step. */
static Plain plain_search(float log_probs[STEPS][CLASSES], int steps, size_t beams)
{
    Plain *now = calloc(MOST, sizeof(*now)), *next = calloc(MOST, sizeof(*next)), *swap;
    size_t n = 1;

    assert_non_null(now);
    assert_non_null(next);
    now[0].blank = 1.0;
    for (int t = 0; t < steps; t++) {
        size_t m = 0;

        for (size_t i = 0; i < n; i++)
            for (int32_t c = 0; c < CLASSES; c++) {
                const double p = exp((double)log_probs[t][c]), all = now[i].blank + now[i].other;
                const bool repeated = now[i].n > 0 && now[i].ids[now[i].n - 1] == c;
                int32_t ids[STEPS + 1];

                memcpy(ids, now[i].ids, sizeof(now[i].ids));
                ids[now[i].n] = c;
                if (c == 0)
                    find(next, &m, ids, now[i].n)->blank += p * all;
                else
                    find(next, &m, ids, now[i].n + 1)->other += p * (repeated ? now[i].blank : all);
                if (c > 0 && repeated)
                    find(next, &m, ids, now[i].n)->other += p * now[i].other;
            }
        qsort(next, m, sizeof(*next), by_probability);
        n = m < beams ? m : beams;
        swap = now;
        now = next;
        next = swap;
    }
    const Plain best = now[0];
    free(now);
    free(next);
    return best;
}

static void check_against_plain(int steps, size_t beams)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        float log_probs[STEPS][CLASSES];

        draw(seed, log_probs);
        const Plain want = plain_search(log_probs, steps, beams);
        check(decode(log_probs[0], steps, CLASSES, (int64_t)beams), want.ids, want.n,
              log(want.blank + want.other));
    }
}

/* Few beams: sequences are dropped and found again. */
static void test_few_beams(void **unused)
{
    (void)unused;
    check_against_plain(STEPS, 2);
    check_against_plain(STEPS, 3);
    check_against_plain(STEPS, 7);
}

/* As many beams as there are sequences: nothing is dropped. */
static void test_all_sequences(void **unused)
{
    (void)unused;
    check_against_plain(4, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beams_add_paths), cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_odd_values),      cmocka_unit_test(test_few_beams),
        cmocka_unit_test(test_all_sequences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
