/* The loader: order, bytes, workers, resume, samples left out, errors. */
#include <math.h>
#include <pthread.h>
#include <time.h>

#include "tests/unit/data_fixture.h"
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

static int64_t class_of(void *ctx, int64_t index)
{
    (void)ctx;
    return index % 5;
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
    .n_classes = 5,
};

static Built shuffle; /* the sampler */

typedef struct Seen {
    int warnings;
    char last[256];
} Seen;

static void left_out(void *ctx, int64_t sample, KilnStatus status, const char *message)
{
    Seen *seen = ctx;

    assert_int_equal(sample % 10, 0);
    assert_int_equal(status, KILN_E_SKIP);

    seen->warnings++;
    snprintf(seen->last, sizeof(seen->last), "%s", message);
}

static KilnLoaderSpec spec_of(Numbers *numbers, int workers, bool shuffled)
{
    return (KilnLoaderSpec) {
        .data = &data,
        .dataset = { .count = COUNT, .ctx = numbers, .get = get, .name = name, .label = class_of },
        .batch_size = BATCH,
        .limit = -1,
        .seed = 11,
        .sampler = shuffled ? shuffle.instance : NULL,
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
        spec.left_out = left_out;
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

/* ---- Samplers --------------------------------------------------------------------- */

static Built build_sampler(const char *name, const char *options)
{
    KilnError err = { 0 };
    Built built;

    if (build(KILN_KIND_SAMPLER, name, options, &built, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    return built;
}

static void set_up(const KilnLoaderSpec *spec)
{
    KilnError err = { 0 };

    if (kiln_sampler_setup(spec, &err) < 0)
        fail_msg("%s", err.text);
}

/* The samples of an epoch, as their batches name them; returns how many. */
static int64_t read_ids(KilnLoader *loader, int64_t epoch, int64_t ret[], int64_t room)
{
    int64_t n = 0;
    KilnError err = { 0 };
    KilnBatch batch;

    assert_int_equal(kiln_loader_start(loader, epoch, 0, &err), KILN_OK);
    for (;;) {
        assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
        if (batch.size == 0)
            return n;
        for (int64_t i = 0; i < batch.size; i++) {
            const float *x = batch.data[0];

            assert_true(n < room);
            assert_true(x[3 * i] == (float)batch.samples[i]); /* they name what is there */
            ret[n++] = batch.samples[i];
        }
    }
}

static const struct {
    const char *name, *options;
    int64_t samples; /* an epoch */
} samplers[] = {
    { "shuffle", "", COUNT },       { "sequential", "", COUNT },
    { "weighted", "", COUNT },      { "weighted", "weights: [1, 0, 3, 0, 0.5], samples: 40", 40 },
    { "balanced", "", COUNT },      { "balanced", "samples: 90", 90 },
    { "subset", "share: 0.4", 21 }, { "subset", "indices: [3, 9, 52, 3], shuffle: false", 4 },
};

/* Order and bytes are those of a loader without threads, and of every epoch on its own. */
static void test_samplers_any_number_of_workers(void **unused)
{
    (void)unused;
    for (size_t s = 0; s < KILN_COUNT(samplers); s++) {
        Built built = build_sampler(samplers[s].name, samplers[s].options);
        int64_t want[3][2 * COUNT], got[2 * COUNT];

        for (int workers = 0; workers <= 8; workers++) {
            Numbers numbers = { .fails = -1 };
            KilnLoaderSpec spec = spec_of(&numbers, workers, false);

            spec.sampler = built.instance;
            set_up(&spec);
            KilnLoader *loader = loader_of(&spec);
            for (int64_t epoch = 0; epoch < 3; epoch++) {
                int64_t *to = workers == 0 ? want[epoch] : got;

                assert_int_equal(read_ids(loader, epoch, to, 2 * COUNT), samplers[s].samples);
                assert_memory_equal(to, want[epoch], (size_t)samplers[s].samples * sizeof(*to));
            }
            read_ids(loader, 1, got, 2 * COUNT); /* no replay of what was before */
            assert_memory_equal(got, want[1], (size_t)samplers[s].samples * sizeof(*got));
            kiln_loader_free(loader);
        }
        built_free(&built);
    }
}

static void test_subset(void **unused)
{
    static const int64_t given[] = { 3, 9, 52, 3 };
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 1, false);
    int64_t a[COUNT], b[COUNT];
    bool in[COUNT] = { false };

    (void)unused;
    Built built = build_sampler("subset", "indices: [3, 9, 52, 3], shuffle: false");
    spec.sampler = built.instance;
    set_up(&spec);
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(read_ids(loader, 2, a, COUNT), 4);
    assert_memory_equal(a, given, sizeof(given));
    kiln_loader_free(loader);
    built_free(&built);

    /* The same samples each epoch, in another order. */
    built = build_sampler("subset", "share: 0.4");
    spec.sampler = built.instance;
    set_up(&spec);
    loader = loader_of(&spec);
    assert_int_equal(read_ids(loader, 0, a, COUNT), 21);
    assert_int_equal(read_ids(loader, 1, b, COUNT), 21);
    assert_memory_not_equal(a, b, 21 * sizeof(*a));
    for (int i = 0; i < 21; i++)
        in[a[i]] = true;
    for (int i = 0; i < 21; i++) {
        assert_true(in[b[i]]);
        in[b[i]] = false; /* none twice */
    }
    kiln_loader_free(loader);
    built_free(&built);
}

/* Shares of classes, against the weights; samples of one class are equally likely. */
static void test_weighted(void **unused)
{
    static int64_t ids[20000];
    static const double want[] = { 11.0, 0.0, 3 * 11.0, 0.0, 0.5 * 10.0 }; /* class 4 has 10 */
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 0, false);
    Built built = build_sampler("weighted", "weights: [1, 0, 3, 0, 0.5], samples: 20000");
    int counts[5] = { 0 }, of[COUNT] = { 0 };

    (void)unused;
    spec.sampler = built.instance;
    set_up(&spec);
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(kiln_loader_batches(loader), 2500);
    assert_int_equal(read_ids(loader, 0, ids, 20000), 20000);
    for (int i = 0; i < 20000; i++) {
        counts[ids[i] % 5]++;
        of[ids[i]]++;
    }
    for (int c = 0; c < 5; c++)
        assert_true(fabs(counts[c] / 20000.0 - want[c] / 49.0) < 0.015);
    for (int i = 2; i < COUNT; i += 5)
        assert_true(fabs(of[i] / 20000.0 - 3 / 49.0) < 0.008);
    kiln_loader_free(loader);
    built_free(&built);
}

/* Ten samples of class 0, two of class 1, one of class 2. */
static int64_t uneven_class(void *ctx, int64_t index)
{
    (void)ctx;
    return index < 10 ? 0 : index < 12 ? 1 : 2;
}

static void test_balanced(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, false);
    Built built = build_sampler("balanced", "samples: 60");
    int64_t ids[60];
    int of[13] = { 0 };

    (void)unused;
    spec.sampler = built.instance;
    spec.dataset.count = 13;
    spec.dataset.label = uneven_class;
    set_up(&spec);
    KilnLoader *loader = loader_of(&spec);
    assert_int_equal(read_ids(loader, 0, ids, 60), 60);
    for (int i = 0; i < 60; i += 3) {
        int seen = 0;

        for (int k = 0; k < 3; k++) {
            seen |= 1 << uneven_class(NULL, ids[i + k]);
            of[ids[i + k]]++;
        }
        assert_int_equal(seen, 7); /* each class once in three */
    }
    for (int i = 0; i < 13; i++)
        assert_int_equal(of[i], i < 10 ? 2 : i < 12 ? 10 : 20); /* none is preferred */
    kiln_loader_free(loader);
    built_free(&built);
}

static void test_samplers_refuse(void **unused)
{
    static const struct {
        const char *name, *options;
        bool labels;
        KilnStatus status;
        const char *text;
    } cases[] = {
        { "weighted", "weights: [1, 2]", true, KILN_E_RANGE, "2 weights are given for 5 classes" },
        { "weighted", "weights: [0, 0, 0, 0, 0]", true, KILN_E_RANGE, "nothing can be drawn" },
        { "weighted", "", false, KILN_E_MISSING, "does not tell them; use sampler shuffle" },
        { "balanced", "", false, KILN_E_MISSING, "sampler balanced needs the class" },
        { "subset", "indices: [0, 53]", true, KILN_E_RANGE, "indices[1] is 53" },
        { "subset", "share: 0.001", true, KILN_E_RANGE, "is none" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Numbers numbers = { .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, 0, false);
        Built built = build_sampler(cases[i].name, cases[i].options);
        KilnError err = { 0 };

        spec.sampler = built.instance;
        if (!cases[i].labels)
            spec.dataset.label = NULL;
        assert_int_equal(kiln_sampler_setup(&spec, &err), cases[i].status);
        if (strstr(err.text, cases[i].text) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", cases[i].text, err.text);
        built_free(&built);
    }
}

static void test_drop_last(void **unused)
{
    Numbers numbers = { .fails = -1 };
    KilnLoaderSpec spec = spec_of(&numbers, 2, true);
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
    return get(ctx, index, rng, sample, err);
}

static void test_a_thread_that_ends(void **unused)
{
    (void)unused;
    go_on = 1;
    for (int workers = 1; workers <= 4; workers++) {
        Numbers numbers = { .skip = -1, .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, workers, false);
        KilnError err = { 0 };
        Epoch epoch;

        spec.dataset.get = wicked_get;
        KilnLoader *loader = loader_of(&spec);
        assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_E_INTERNAL);
        assert_non_null(strstr(err.text, "a loader thread ended while it read sample 20 (zero)"));
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
    KilnLoaderSpec spec = spec_of(&numbers, 2, false);
    volatile int stop = 0;
    KilnError err = { 0 };
    pthread_t thread;
    Epoch epoch;

    (void)unused;
    go_on = 0;
    spec.dataset.get = wicked_get;
    spec.stop = &stop;
    KilnLoader *loader = loader_of(&spec);
    double start = kiln_clock();
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, (void *)&stop), 0);
    assert_int_equal(read_epoch(loader, 0, 0, &epoch, &err), KILN_E_INTERRUPTED);
    assert_true(kiln_clock() - start < 2.0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(epoch.samples, 24); /* what was there before */
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
    return get(ctx, index, rng, sample, err);
}

/* Without workers a batch that takes long to read is no reason not to hear; it is read again. */
static void test_stop_while_reading(void **unused)
{
    Numbers numbers = { .fails = -1, .skip = 10 };
    volatile int stop = 0, pause = 0;

    (void)unused;
    for (int i = 0; i < 2; i++) {
        Seen seen = { 0 };
        KilnLoaderSpec spec = spec_of(&numbers, 0, false);
        KilnError err = { 0 };
        Epoch epoch;

        slow = (struct Slow) { .stop_at = 13, .flag = i == 0 ? &stop : &pause };
        spec.dataset.get = slow_get;
        spec.stop = &stop;
        spec.pause = &pause;
        spec.left_out = left_out;
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
    KilnLoaderSpec spec = spec_of(&numbers, 2, false);
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
        cmocka_unit_test(test_all_left_out),
        cmocka_unit_test(test_errors_come_with_their_batch),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_samplers_any_number_of_workers),
        cmocka_unit_test(test_subset),
        cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_samplers_refuse),
        cmocka_unit_test(test_drop_last),
        cmocka_unit_test(test_a_thread_that_ends),
        cmocka_unit_test(test_stop_while_waiting),
        cmocka_unit_test(test_stop_while_reading),
        cmocka_unit_test(test_end_while_reading),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
