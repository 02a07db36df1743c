/* How the loader fills batches of samples of different lengths: padding and buckets. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/loader_fixture.h"

enum { BATCH = 8, TEXTS = 61, LONGEST = 40, MOST_POINTS = 28, PAD = 99 };

static int64_t n_tokens(int64_t index)
{
    return index * 17 % (LONGEST + 1); /* 0 to LONGEST */
}

static int64_t n_points(int64_t index)
{
    return index * 5 % (MOST_POINTS + 1); /* 0 to MOST_POINTS */
}

static void text_lengths(void *ctx, int64_t index, int64_t *ret)
{
    (void)ctx;
    ret[0] = n_tokens(index);
    ret[1] = n_points(index);
}

static KilnStatus text_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    int32_t *tokens = sample->data[0];
    float *points = sample->data[1];

    (void)ctx;
    (void)rng;
    (void)err;
    assert_int_equal(sample->lengths[0], n_tokens(index));
    assert_int_equal(sample->lengths[1], n_points(index));
    for (int64_t i = 0; i < sample->lengths[0]; i++)
        tokens[i] = (int32_t)(1000 * index + i);
    for (int64_t i = 0; i < sample->lengths[1]; i++)
        points[2 * i] = points[2 * i + 1] = (float)i;
    *(int32_t *)sample->data[2] = (int32_t)(index % 2);
    return KILN_OK;
}

static const KilnDataSpec texts = {
    .n_features = 3,
    .features =
        (const KilnFeature[]) {
            { .name = "tokens",
              .content = KILN_TOKENS,
              .dtype = KILN_I32,
              .shape = { .rank = 1, .dim = { LONGEST } },
              .varies = true,
              .pad = PAD },
            { .name = "points",
              .content = KILN_SEQUENCE,
              .shape = { .rank = 2, .dim = { MOST_POINTS, 2 } },
              .varies = true,
              .pad = -1 },
            { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        },
    .n_classes = 2,
};

static const int64_t buckets[] = { 8, 16, 30 };

static KilnLoaderSpec text_spec(int workers, size_t n_buckets, bool by_length)
{
    return (KilnLoaderSpec) {
        .data = &texts,
        .dataset = { .count = TEXTS, .get = text_get, .lengths = text_lengths },
        .batch_size = BATCH,
        .limit = -1,
        .seed = 5,
        .sampler = loader_shuffle.instance,
        .buckets = buckets,
        .n_buckets = n_buckets,
        .by_length = by_length,
        .workers = workers,
    };
}

/* A batch has the samples of the data set, followed by padding. */
static void check_texts(const KilnBatch *batch)
{
    const int32_t *tokens = batch->features[0].data;
    const float *points = batch->features[1].data;

    for (int64_t row = 0; row < batch->size; row++) {
        const int64_t sample = batch->samples[row];
        const KilnBatchFeature *words = &batch->features[0], *path = &batch->features[1];

        assert_int_equal(words->lengths[row], n_tokens(sample));
        assert_int_equal(path->lengths[row], n_points(sample));
        assert_null(batch->features[2].lengths);
        for (int64_t i = 0; i < words->padded; i++)
            assert_int_equal(tokens[row * words->padded + i],
                             i < n_tokens(sample) ? 1000 * sample + i : PAD);
        for (int64_t i = 0; i < path->padded; i++)
            assert_true(points[2 * (row * path->padded + i) + 1] ==
                        (i < n_points(sample) ? (float)i : -1.0f));
        assert_int_equal(((const int32_t *)batch->features[2].data)[row], batch->samples[row] % 2);
    }
}

/* The smallest bucket that fits, or the longest possible length. */
static int64_t bound_of(int64_t length, int64_t longest)
{
    const int64_t bucket = length <= 8 ? 8 : length <= 16 ? 16 : length <= 30 ? 30 : longest;

    return bucket < longest ? bucket : longest;
}

static int64_t longest_in(const KilnBatch *batch, size_t f)
{
    int64_t most = 0;

    for (int64_t i = 0; i < batch->size; i++)
        most = batch->features[f].lengths[i] > most ? batch->features[f].lengths[i] : most;
    return most;
}

/* Without buckets all are as long as the longest there can be; in order of the sampler with
 * them, as the longest in the batch needs. */
static void test_padding(void **unused)
{
    (void)unused;
    for (size_t n = 0; n <= 3; n += 3) {
        KilnLoaderSpec spec = text_spec(2, n, false);
        KilnLoader *loader = loader_open(&spec);
        KilnBatch batch;
        int64_t samples = 0;

        assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
        while (loader_take(loader, &batch)) {
            check_texts(&batch);
            assert_int_equal(batch.features[0].padded,
                             n == 0 ? LONGEST : bound_of(longest_in(&batch, 0), LONGEST));
            assert_int_equal(batch.features[1].padded,
                             n == 0 ? MOST_POINTS : bound_of(longest_in(&batch, 1), MOST_POINTS));
            samples += batch.size;
        }
        assert_int_equal(samples, TEXTS);
        kiln_loader_free(loader);
    }
}

/* Reads a sample whose lengths nobody has announced. */
static KilnStatus measured_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                               KilnError *err)
{
    assert_int_equal(sample->lengths[0], 0);
    assert_int_equal(sample->lengths[1], 0);
    text_lengths(NULL, index, sample->lengths);
    if (ctx != NULL)
        sample->lengths[1] = MOST_POINTS + 1;
    return ctx != NULL ? KILN_OK : text_get(NULL, index, rng, sample, err);
}

/* Without KilnDataset.lengths, batches are padded as if they had been known. */
static void test_measured(void **unused)
{
    (void)unused;
    for (size_t n = 0; n <= 3; n += 3) {
        KilnLoaderSpec spec = text_spec(2, n, false);
        KilnLoader *loader;
        KilnBatch batch;
        int64_t samples = 0;

        spec.dataset.get = measured_get;
        spec.dataset.lengths = NULL;
        loader = loader_open(&spec);
        assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
        for (; loader_take(loader, &batch); samples += batch.size) {
            check_texts(&batch);
            assert_int_equal(batch.features[0].padded,
                             n == 0 ? LONGEST : bound_of(longest_in(&batch, 0), LONGEST));
            assert_int_equal(batch.features[1].padded,
                             n == 0 ? MOST_POINTS : bound_of(longest_in(&batch, 1), MOST_POINTS));
        }
        assert_int_equal(samples, TEXTS);
        kiln_loader_free(loader);
    }
}

static void test_measured_errors(void **unused)
{
    KilnLoaderSpec spec = text_spec(0, 3, true);
    KilnLoader *loader;
    KilnBatch batch;
    KilnError err = { 0 };

    (void)unused;
    spec.dataset.get = measured_get;
    spec.dataset.lengths = NULL;
    spec.dataset.ctx = &spec;
    assert_int_equal(kiln_sampler_setup(&spec, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "set datamodule.buckets=[]"));
    spec.by_length = false;
    loader = loader_open(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "feature points has length"));
    kiln_loader_free(loader);
}

static void test_buckets(void **unused)
{
    (void)unused;
    for (int drop = 0; drop <= 1; drop++) {
        KilnLoaderSpec spec = text_spec(2, 3, true);
        KilnBatch batch;
        int64_t batches = 0, samples = 0;
        bool seen[TEXTS] = { false };

        spec.drop_last = drop == 1;
        KilnLoader *loader = loader_open(&spec);
        assert_int_equal(kiln_loader_start(loader, 3, 0, NULL), KILN_OK);
        for (; loader_take(loader, &batch); batches++) {
            int64_t bucket = 0;

            check_texts(&batch);
            for (int64_t i = 0; i < batch.size; i++) {
                const int64_t tokens = n_tokens(batch.samples[i]);
                const int64_t points = n_points(batch.samples[i]);
                const int64_t own = bound_of(tokens > points ? tokens : points, LONGEST);

                assert_true(i == 0 || own == bucket);
                bucket = own;
                assert_false(seen[batch.samples[i]]);
                seen[batch.samples[i]] = true;
            }
            assert_true(drop == 0 || batch.size == BATCH);
            samples += batch.size;
        }
        assert_int_equal(batches, kiln_loader_batches(loader));
        assert_true(drop == 0 ? samples == TEXTS : samples == batches * BATCH);
        kiln_loader_free(loader);
    }
}

/* A batch has as many samples of its bucket as max_tokens holds, and at most batch_size. */
static void test_max_tokens(void **unused)
{
    (void)unused;
    for (int drop = 0; drop <= 1; drop++) {
        KilnLoaderSpec spec = text_spec(2, 3, true);
        KilnBatch batch;
        int64_t batches = 0, samples = 0, incomplete = 0;

        spec.drop_last = drop == 1;
        spec.max_tokens = 33; /* 4 of 8 tokens, 2 of 16, 1 of more */
        spec.batch_size = 3;
        KilnLoader *loader = loader_open(&spec);
        assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
        for (; loader_take(loader, &batch); batches++) {
            int64_t most = longest_in(&batch, 0);

            check_texts(&batch);
            most = longest_in(&batch, 1) > most ? longest_in(&batch, 1) : most;
            const int64_t full = most <= 8 ? 3 : most <= 16 ? 2 : 1;
            assert_in_range(batch.size, 1, full);
            incomplete += batch.size < full;
            samples += batch.size;
        }
        assert_int_equal(batches, kiln_loader_batches(loader));
        assert_true(drop == 0 ? samples == TEXTS : incomplete == 0 && samples > TEXTS - 4);
        assert_in_range(incomplete, 0, 2); /* one of each bucket with several */
        kiln_loader_free(loader);
    }
}

/* In order, every batch has as many samples as the longest ones would allow. */
static void test_max_tokens_in_order(void **unused)
{
    KilnLoaderSpec spec = text_spec(2, 3, false);
    KilnBatch batch;
    int64_t samples = 0;

    (void)unused;
    spec.max_tokens = 3 * LONGEST - 1;
    assert_int_equal(kiln_loader_spec_batch_size(&spec), 2);
    KilnLoader *loader = loader_open(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
    for (; loader_take(loader, &batch); samples += batch.size) {
        check_texts(&batch);
        assert_int_equal(batch.size, samples + 2 <= TEXTS ? 2 : 1);
    }
    assert_int_equal(samples, TEXTS);
    kiln_loader_free(loader);
}

/* The order is pinned with buckets, too, from any batch on. */
static void test_buckets_any_number_of_workers(void **unused)
{
    int64_t want[2][TEXTS];

    (void)unused;
    for (int workers = 0; workers <= 8; workers++) {
        KilnLoaderSpec spec = text_spec(workers, 3, true);
        KilnLoader *loader = loader_open(&spec);

        for (int64_t epoch = 0; epoch < 2; epoch++)
            for (int64_t first = 0; first < 8; first += 3) {
                int64_t got[TEXTS], n = TEXTS;
                KilnBatch batch, rest[TEXTS];
                int batches = 0;

                assert_int_equal(kiln_loader_start(loader, epoch, first, NULL), KILN_OK);
                int64_t at = 0;
                while (loader_take(loader, &batch)) {
                    rest[batches++] = batch;
                    check_texts(&batch);
                    memcpy(got + at, batch.samples, (size_t)batch.size * sizeof(*got));
                    at += batch.size;
                }
                if (workers == 0 && first == 0)
                    memcpy(want[epoch], got, sizeof(got));
                assert_int_equal(rest[0].index, first);
                assert_memory_equal(got, want[epoch] + n - at, (size_t)at * sizeof(*got));
            }
        kiln_loader_free(loader);
    }
    assert_memory_not_equal(want[0], want[1], sizeof(want[0]));
}

static void too_long(void *ctx, int64_t index, int64_t *ret)
{
    (void)ctx;
    ret[0] = 3;
    ret[1] = index == 12 ? MOST_POINTS + 1 : 3;
}

static KilnStatus nothing_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                              KilnError *err)
{
    (void)ctx;
    (void)index;
    (void)rng;
    (void)sample;
    (void)err;
    return KILN_OK;
}

static void test_lengths_refused(void **unused)
{
    static const int64_t falling[] = { 8, 8 };
    KilnLoaderSpec spec = text_spec(1, 0, false);
    Built weighted = build_yaml_or_fail(KILN_KIND_SAMPLER, "weighted", "");
    KilnLoader *loader = NULL;
    KilnError err = { 0 };
    KilnBatch batch;

    (void)unused;
    spec.sampler = NULL;
    spec.dataset.lengths = too_long;
    spec.dataset.get = nothing_get;
    loader = loader_open(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, &err), KILN_OK);
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text,
                           "sample 12: feature points has length 29; the datamodule declares "
                           "0 to 28"));
    kiln_loader_free(loader);

    spec = text_spec(1, 2, true);
    spec.buckets = falling;
    assert_int_equal(kiln_loader_new(&spec, &loader, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "must increase, but 8 comes after 8"));
    spec = text_spec(1, 3, true);
    spec.sampler = weighted.instance;
    assert_int_equal(kiln_sampler_setup(&spec, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "weighted draws different ones: use shuffle"));
    built_free(&weighted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_measured_errors),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_max_tokens),
        cmocka_unit_test(test_max_tokens_in_order),
        cmocka_unit_test(test_buckets_any_number_of_workers),
        cmocka_unit_test(test_lengths_refused),
    };

    return cmocka_run_group_tests(tests, loader_fixture_begin, loader_fixture_end);
}
