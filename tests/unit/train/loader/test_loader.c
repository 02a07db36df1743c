/* The loader: order, bytes, workers, resume, skipped samples, errors. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/numbers_data.h"

static Built shuffle; /* the sampler */

typedef struct Seen {
    int warnings;
    char last[256];
} Seen;

static void left_out(void *ctx, const KilnSkip *skip)
{
    Seen *seen = ctx;

    assert_int_equal(skip->sample % 10, 0);
    assert_int_equal(skip->status, KILN_E_SKIP);

    seen->warnings++;
    snprintf(seen->last, sizeof(seen->last), "%s", skip->message);
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
        const float *x = batch.features[0].data;
        const int32_t *label = batch.features[1].data;
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
    KilnLoaderSpec spec = spec_of(&numbers, 2, NULL);
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
    KilnLoaderSpec spec = spec_of(&numbers, 0, shuffle.instance);
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
        KilnLoaderSpec spec = spec_of(&numbers, workers, shuffle.instance);
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
        KilnLoaderSpec spec = spec_of(&numbers, workers, shuffle.instance);
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
    KilnLoaderSpec spec = spec_of(&numbers, 3, shuffle.instance);
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
        KilnLoaderSpec spec = spec_of(&numbers, workers, shuffle.instance);

        seen.warnings = 0;
        spec.on_skip = left_out;
        spec.ctx = &seen;
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

/* Ranks together get the batches of the epoch, each those that are its own, from any batch on. */
static void test_dealt_out(void **unused)
{
    Numbers numbers = { .fails = -1 };
    Epoch whole, part;
    KilnError err = { 0 };

    (void)unused;
    for (int world = 1; world <= 9; world++)
        for (int64_t first = 0; first <= BATCHES; first++) {
            bool seen[BATCHES] = { false };

            for (int rank = 0; rank < world; rank++) {
                KilnLoaderSpec spec = spec_of(&numbers, rank % 3, shuffle.instance);
                KilnLoader *all = loader_of(&spec);

                assert_int_equal(read_epoch(all, 3, 0, &whole, &err), KILN_OK);
                kiln_loader_free(all);
                spec.rank = rank;
                spec.world = world;
                KilnLoader *loader = loader_of(&spec);
                assert_int_equal(kiln_loader_batches(loader), BATCHES);
                assert_int_equal(read_epoch(loader, 3, first, &part, &err), KILN_OK);
                int64_t at = 0;
                for (int64_t b = 0; b < BATCHES; b++) {
                    if (part.sizes[b] == 0)
                        continue;
                    assert_true(b >= first && b % world == rank && !seen[b]);
                    assert_int_equal(part.sizes[b], whole.sizes[b]);
                    assert_memory_equal(&part.values[4 * at], &whole.values[4 * b * BATCH],
                                        (size_t)part.sizes[b] * 4 * sizeof(float));
                    at += part.sizes[b];
                    seen[b] = true;
                }
                kiln_loader_free(loader);
            }
            for (int64_t b = first; b < BATCHES; b++)
                assert_true(seen[b]);
        }
}

/* With other ranks, a batch without any sample keeps its place. */
static void test_an_empty_batch_of_a_rank(void **unused)
{
    Numbers numbers = { .skip = 1, .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 1, NULL);
    KilnError err = { 0 };
    KilnBatch batch;

    (void)unused;
    spec.rank = 1;
    spec.world = 2;
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, &err), KILN_OK);
    for (int64_t b = 1; b < BATCHES; b += 2) {
        assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
        assert_int_equal(batch.index, b);
        assert_int_equal(batch.size, 0);
    }
    kiln_loader_free(loader);
}

/* Batches without any sample count but are not handed out. */
static void test_all_left_out(void **unused)
{
    Numbers numbers = { .skip = 1, .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, NULL);
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
        KilnLoaderSpec spec = spec_of(&numbers, workers, NULL);
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
        KilnLoaderSpec spec = spec_of(&numbers, 1, shuffle.instance);
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

/* Of a module that reads whole sets. */
static void test_batches_without_data(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, NULL);
    KilnError err = { 0 };
    KilnBatch batch;

    (void)unused;
    spec.whole = 3;
    assert_int_equal(kiln_loader_spec_batch_size(&spec), COUNT);
    assert_int_equal(kiln_loader_spec_bytes(&spec), COUNT * 8);
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(kiln_loader_batches(loader), 3);
    assert_int_equal(kiln_loader_start(loader, 0, 1, &err), KILN_OK);
    for (int64_t i = 1; i < 3; i++) {
        assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
        assert_int_equal(batch.index, i);
        assert_int_equal(batch.size, COUNT);
        assert_null(batch.features);
        assert_int_equal(batch.samples[COUNT - 1], COUNT - 1);
    }
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
    assert_int_equal(batch.size, 0);
    kiln_loader_free(loader);
    spec.dataset.count = 0;
    assert_int_equal(kiln_loader_spec_batches(&spec), 0);
}

static void test_drop_last(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, shuffle.instance);
    KilnError err = { 0 };
    Epoch whole, dropped;

    (void)unused;
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(read_epoch(loader, 4, 0, &whole, &err), KILN_OK);
    kiln_loader_free(loader);
    spec.drop_last = true;
    loader = loader_of(&spec);
    assert_int_equal(kiln_loader_batches(loader), BATCHES - 1);
    assert_int_equal(read_epoch(loader, 4, 0, &dropped, &err), KILN_OK);
    assert_int_equal(dropped.samples, (BATCHES - 1) * BATCH);
    assert_memory_equal(dropped.values, whole.values, sizeof(float) * 4 * (BATCHES - 1) * BATCH);
    kiln_loader_free(loader);
    spec.batch_size = COUNT + 1;
    assert_int_equal(kiln_loader_spec_batches(&spec), 0);
}

/* ---- Faults ------------------------------------------------------------------------ */

/* Sample 20 ends its thread, sample 30 takes until `go_on` is set. */
static volatile int go_on;

static KilnStatus wicked_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                             KilnError *err)
{
    const Numbers *numbers = ctx;
    const struct timespec while_ = { .tv_nsec = 1000000 };

    if (index == 20 && numbers->skip < 0)
        pthread_exit(NULL);
    while (index == 30 && !go_on)
        nanosleep(&while_, NULL);
    return numbers_get(ctx, index, rng, sample, err);
}

static void test_a_thread_that_ends(void **unused)
{
    (void)unused;
    go_on = 1;
    for (int workers = 1; workers <= 4; workers++) {
        Numbers numbers = { .skip = -1, .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, workers, NULL);
        KilnError err = { 0 };
        Epoch epoch;

        spec.dataset.get = wicked_get;
        KilnLoader *loader = loader_of(&spec);
        assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_E_INTERNAL);
        assert_non_null(strstr(err.text, "a loader thread ended while reading sample 20 (zero)"));
        assert_int_equal(epoch.samples, 16);
        if (workers == 1) { /* nobody is left */
            assert_int_equal(read_epoch(loader, 1, 4, &epoch, &err), KILN_E_INTERNAL);
            assert_non_null(strstr(err.text, "all loader threads have ended"));
        }
        kiln_loader_free(loader);
    }
}

static void *stop_soon(void *arg)
{
    const struct timespec while_ = { .tv_nsec = 20000000 };

    nanosleep(&while_, NULL);
    *(volatile int *)arg = 1;
    return NULL;
}

static void test_stop_while_waiting(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, NULL);
    volatile int stop = 0;
    KilnError err = { 0 };
    pthread_t thread;
    KilnBatch batch;

    (void)unused;
    go_on = 0;
    spec.dataset.get = wicked_get;
    spec.stop = &stop;
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, &err), KILN_OK);
    for (int i = 0; i < 3; i++) { /* what comes before sample 30 */
        assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
        assert_int_equal(batch.size, BATCH);
    }
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, (void *)&stop), 0);
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_E_INTERRUPTED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    go_on = 1;
    kiln_loader_free(loader);
}

/* Reads until somebody calls it away. */
static struct Slow {
    int reads;          /* done */
    int stop_at;        /* the read that sets the flag; 0: none */
    volatile int *flag; /* or NULL: reads take time */
} slow;

static KilnStatus slow_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    const struct timespec while_ = { .tv_nsec = 5000000 };

    if (__atomic_add_fetch(&slow.reads, 1, __ATOMIC_RELAXED) == slow.stop_at)
        *slow.flag = 1;
    if (slow.flag == NULL)
        nanosleep(&while_, NULL);
    return numbers_get(ctx, index, rng, sample, err);
}

/* Without workers a batch that takes long to read is no reason not to hear; it is read again. */
static void test_stop_while_reading(void **unused)
{
    Numbers numbers = { .fails = -1, .skip = 10 };
    volatile int stop = 0, pause = 0;

    (void)unused;
    for (int i = 0; i < 2; i++) {
        Seen seen = { 0 };
        KilnLoaderSpec spec = spec_of(&numbers, 0, NULL);
        KilnError err = { 0 };
        Epoch epoch;

        slow = (struct Slow) { .stop_at = 13, .flag = i == 0 ? &stop : &pause };
        spec.dataset.get = slow_get;
        spec.stop = &stop;
        spec.pause = &pause;
        spec.on_skip = left_out;
        spec.ctx = &seen;
        KilnLoader *loader = loader_of(&spec);
        assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_E_INTERRUPTED);
        assert_int_equal(slow.reads, 13);
        assert_int_equal(epoch.samples, BATCH - 1);
        assert_int_equal(seen.warnings, 1); /* sample 10 was in the batch that was given up */
        stop = pause = 0;
        assert_int_equal(read_epoch(loader, 0, 1, &epoch, &err), KILN_OK);
        assert_int_equal(epoch.samples, COUNT - BATCH - 5);
        assert_int_equal(seen.warnings, 6);
        kiln_loader_free(loader);
    }
}

/* The loader's end does not wait for whole batches. */
static void test_end_while_reading(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, NULL);
    const struct timespec while_ = { .tv_nsec = 12000000 };

    (void)unused;
    slow = (struct Slow) { 0 };
    spec.dataset.get = slow_get;
    spec.batch_size = COUNT;
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
    nanosleep(&while_, NULL);
    kiln_loader_free(loader);
    assert_true(slow.reads < COUNT);
}

static int begin(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    shuffle = build_sampler("shuffle", "");
    return 0;
}

static int end(void **state)
{
    built_free(&shuffle);
    return fixture_end(state);
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
        cmocka_unit_test(test_dealt_out),
        cmocka_unit_test(test_an_empty_batch_of_a_rank),
        cmocka_unit_test(test_all_left_out),
        cmocka_unit_test(test_errors_come_with_their_batch),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_batches_without_data),
        cmocka_unit_test(test_drop_last),
        cmocka_unit_test(test_a_thread_that_ends),
        cmocka_unit_test(test_stop_while_waiting),
        cmocka_unit_test(test_stop_while_reading),
        cmocka_unit_test(test_end_while_reading),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
