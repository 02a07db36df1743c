/* The loader: order, bytes, workers, resume, samples left out, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/loader.h"

enum { COUNT = 53, BATCH = 8, BATCHES = 7 };

/* A data set whose sample i is i, a few draws of its own stream, and a label. */
typedef struct Numbers {
    int64_t skip;  /* every n-th sample is left out; 0: none */
    int64_t fails; /* this sample can't be read; -1: none */
} Numbers;

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Numbers *numbers = ctx;
    float *x = sample->data[0];
    int32_t *label = sample->data[1];

    if (index == numbers->fails)
        return kiln_error_set(err, KILN_E_FORMAT, "sample %d is broken", (int)index);
    if (numbers->skip > 0 && index % numbers->skip == 0)
        return kiln_error_set(err, KILN_E_SKIP, "is no number");
    x[0] = (float)index;
    x[1] = kiln_rng_uniform(rng);
    x[2] = kiln_rng_uniform(rng);
    *label = (int32_t)(index % 5);
    return KILN_OK;
}

static const char *name(void *ctx, int64_t index)
{
    static const char *const names[] = { "zero", "one", "two", "three" };

    (void)ctx;
    return names[index % 4];
}

static const KilnDataSpec data = {
    .n_features = 2,
    .features = {
        { .name = "x", .dtype = KILN_F32, .shape = { .rank = 1, .dim = { 3 } } },
        { .name = "label", .dtype = KILN_I32 },
    },
};

typedef struct Seen {
    int warnings;
    char last[256];
} Seen;

static void warn(void *ctx, const char *message)
{
    Seen *seen = ctx;

    seen->warnings++;
    snprintf(seen->last, sizeof(seen->last), "%s", message);
}

static KilnLoaderSpec spec_of(Numbers *numbers, int workers, bool shuffle)
{
    return (KilnLoaderSpec) {
        .data = &data,
        .dataset = { .count = COUNT, .ctx = numbers, .get = get, .name = name },
        .batch_size = BATCH,
        .limit = -1,
        .seed = 11,
        .shuffle = shuffle,
        .workers = workers,
    };
}

static KilnLoader *loader_of(const KilnLoaderSpec *spec)
{
    KilnLoader *loader = NULL;
    KilnError err = { 0 };

    if (kiln_loader_new(spec, &loader, &err) < 0)
        fail_msg("%s", err.text);
    return loader;
}

/* All samples of an epoch from batch `first` on: x[0..2] and label of each. */
typedef struct Epoch {
    float values[COUNT * 4];
    int64_t sizes[BATCHES];
    int64_t samples;
} Epoch;

static KilnStatus read_epoch(KilnLoader *loader, int64_t epoch, int64_t first, Epoch *ret,
                             KilnError *err)
{
    KilnStatus status = kiln_loader_start(loader, epoch, first, err);
    KilnBatch batch;

    memset(ret, 0, sizeof(*ret));
    while (status >= 0) {
        status = kiln_loader_next(loader, &batch, err);
        if (status < 0 || batch.size == 0)
            break;
        const float *x = batch.data[0];
        const int32_t *label = batch.data[1];
        ret->sizes[batch.index] = batch.size;
        for (int64_t i = 0; i < batch.size; i++) {
            float *to = &ret->values[4 * ret->samples++];

            memcpy(to, &x[3 * i], 3 * sizeof(*x));
            to[3] = (float)label[i];
        }
    }
    return status;
}

static void test_in_order(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, false);
    KilnLoader *loader = loader_of(&spec);
    KilnError err = { 0 };
    Epoch epoch;

    (void)unused;
    assert_int_equal(kiln_loader_batches(loader), BATCHES);
    assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_OK);
    assert_int_equal(epoch.samples, COUNT);
    assert_int_equal(epoch.sizes[0], BATCH);
    assert_int_equal(epoch.sizes[BATCHES - 1], COUNT % BATCH);
    for (int i = 0; i < COUNT; i++) {
        assert_true(epoch.values[4 * i] == (float)i);
        assert_true(epoch.values[4 * i + 3] == (float)(i % 5));
    }
    kiln_loader_free(loader);
}

static void test_shuffled(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 0, true);
    KilnLoader *loader = loader_of(&spec);
    KilnError err = { 0 };
    Epoch a, b, again;
    bool seen[COUNT] = { false };

    (void)unused;
    assert_int_equal(read_epoch(loader, 0, 0, &a, &err), KILN_OK);
    assert_int_equal(read_epoch(loader, 1, 0, &b, &err), KILN_OK);
    assert_int_equal(read_epoch(loader, 0, 0, &again, &err), KILN_OK);
    assert_memory_equal(&a, &again, sizeof(a));
    assert_memory_not_equal(&a, &b, sizeof(a));
    for (int i = 0; i < COUNT; i++)
        seen[(int)a.values[4 * i]] = true;
    for (int i = 0; i < COUNT; i++)
        assert_true(seen[i]);
    kiln_loader_free(loader);
    spec.seed = 12;
    loader = loader_of(&spec);
    assert_int_equal(read_epoch(loader, 0, 0, &b, &err), KILN_OK);
    assert_memory_not_equal(&a, &b, sizeof(a));
    kiln_loader_free(loader);
}

static void test_any_number_of_workers(void **unused)
{
    Epoch want, got;
    KilnError err = { 0 };

    (void)unused;
    for (int workers = 0; workers <= 5; workers++) {
        Numbers numbers = { .skip = 7, .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, workers, true);
        KilnLoader *loader = loader_of(&spec);

        for (int64_t epoch = 0; epoch < 20; epoch++)
            assert_int_equal(read_epoch(loader, epoch, 0, &got, &err), KILN_OK);
        if (workers == 0)
            want = got;
        assert_memory_equal(&want, &got, sizeof(want));
        kiln_loader_free(loader);
    }
}

static void test_starts_in_the_middle(void **unused)
{
    Numbers numbers = { .fails = -1 };
    Epoch whole, part;
    KilnError err = { 0 };

    (void)unused;
    for (int workers = 0; workers <= 2; workers++) {
        KilnLoaderSpec spec = spec_of(&numbers, workers, true);
        KilnLoader *loader = loader_of(&spec);

        assert_int_equal(read_epoch(loader, 3, 0, &whole, &err), KILN_OK);
        for (int64_t first = 0; first <= BATCHES; first++) {
            int64_t before = first * BATCH < COUNT ? first * BATCH : COUNT;

            assert_int_equal(read_epoch(loader, 3, first, &part, &err), KILN_OK);
            assert_int_equal(part.samples, COUNT - before);
            assert_memory_equal(part.values, &whole.values[4 * before],
                                (size_t)part.samples * 4 * sizeof(float));
        }
        assert_int_equal(kiln_loader_start(loader, 3, BATCHES + 1, &err), KILN_E_RANGE);
        kiln_loader_free(loader);
    }
}

static void test_an_epoch_may_be_left(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 3, true);
    KilnLoader *loader = loader_of(&spec);
    KilnError err = { 0 };
    KilnBatch batch;
    Epoch want, got;

    (void)unused;
    assert_int_equal(read_epoch(loader, 9, 0, &want, &err), KILN_OK);
    for (int taken = 0; taken < BATCHES; taken++) {
        assert_int_equal(kiln_loader_start(loader, 1, 0, &err), KILN_OK);
        for (int i = 0; i < taken; i++)
            assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
        assert_int_equal(read_epoch(loader, 9, 0, &got, &err), KILN_OK);
        assert_memory_equal(&want, &got, sizeof(want));
    }
    kiln_loader_free(loader);
}

static void test_samples_left_out(void **unused)
{
    Numbers numbers = { .skip = 10, .fails = -1 };
    Seen seen = { 0 };
    Epoch epoch;
    KilnError err = { 0 };

    (void)unused;
    for (int workers = 0; workers <= 2; workers++) {
        KilnLoaderSpec spec = spec_of(&numbers, workers, true);

        seen.warnings = 0;
        spec.warn = warn;
        spec.warn_ctx = &seen;
        KilnLoader *loader = loader_of(&spec);
        for (int64_t i = 0; i < 3; i++) {
            assert_int_equal(read_epoch(loader, i, 0, &epoch, &err), KILN_OK);
            assert_int_equal(epoch.samples, COUNT - 6); /* 0, 10, ..., 50 */
        }
        assert_int_equal(seen.warnings, 6); /* once each */
        assert_non_null(strstr(seen.last, ": is no number"));
        kiln_loader_free(loader);
    }
}

/* Batches without any sample count but are not handed out. */
static void test_all_left_out(void **unused)
{
    Numbers numbers = { .skip = 1, .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, false);
    KilnLoader *loader = loader_of(&spec);
    KilnError err = { 0 };
    Epoch epoch;

    (void)unused;
    assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_OK);
    assert_int_equal(epoch.samples, 0);
    kiln_loader_free(loader);
}

static void test_errors_come_with_their_batch(void **unused)
{
    (void)unused;
    for (int workers = 0; workers <= 3; workers++) {
        Numbers numbers = { .fails = 20 };
        KilnLoaderSpec spec = spec_of(&numbers, workers, false);
        KilnLoader *loader = loader_of(&spec);
        KilnError err = { 0 };
        Epoch epoch;

        assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_E_FORMAT);
        assert_string_equal(err.text, "sample 20 is broken");
        assert_int_equal(epoch.samples, 16); /* the batches before it */
        kiln_loader_free(loader);
    }
}

static void test_limits(void **unused)
{
    static const struct {
        int64_t count, batch_size, limit, batches;
        KilnStatus status;
    } cases[] = {
        { COUNT, BATCH, -1, 7, KILN_OK },  { COUNT, BATCH, 3, 3, KILN_OK },
        { COUNT, BATCH, 99, 7, KILN_OK },  { COUNT, 1000, -1, 1, KILN_OK },
        { COUNT, 1, -1, COUNT, KILN_OK },  { 0, BATCH, -1, 0, KILN_OK },
        { COUNT, 0, -1, 0, KILN_E_RANGE }, { INT64_C(1) << 33, BATCH, -1, 0, KILN_E_RANGE },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Numbers numbers = { .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, 1, true);
        KilnLoader *loader = NULL;
        KilnError err = { 0 };

        spec.dataset.count = cases[i].count;
        spec.batch_size = cases[i].batch_size;
        spec.limit = cases[i].limit;
        assert_int_equal(kiln_loader_new(&spec, &loader, &err), cases[i].status);
        if (loader != NULL)
            assert_int_equal(kiln_loader_batches(loader), cases[i].batches);
        kiln_loader_free(loader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_any_number_of_workers),
        cmocka_unit_test(test_starts_in_the_middle),
        cmocka_unit_test(test_an_epoch_may_be_left),
        cmocka_unit_test(test_samples_left_out),
        cmocka_unit_test(test_all_left_out),
        cmocka_unit_test(test_errors_come_with_their_batch),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
