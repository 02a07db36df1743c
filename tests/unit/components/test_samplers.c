/* Samplers: the samples of an epoch and their order, for any number of loader threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/numbers_data.h"

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
            const float *x = batch.features[0].data;

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
            KilnLoaderSpec spec = spec_of(&numbers, workers, NULL);

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
    KilnLoaderSpec spec = spec_of(&numbers, 1, NULL);
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
    KilnLoaderSpec spec = spec_of(&numbers, 0, NULL);
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
    KilnLoaderSpec spec = spec_of(&numbers, 2, NULL);
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
        { "weighted", "weights: [1, 2]", true, KILN_E_RANGE, "got 2 weights for 5 classes" },
        { "weighted", "weights: [0, 0, 0, 0, 0]", true, KILN_E_RANGE, "nothing can be drawn" },
        { "weighted", "", false, KILN_E_MISSING, "does not tell them; use sampler shuffle" },
        { "balanced", "", false, KILN_E_MISSING, "sampler balanced needs the class" },
        { "subset", "indices: [0, 53]", true, KILN_E_RANGE, "indices[1] is 53" },
        { "subset", "share: 0.001", true, KILN_E_RANGE, "is none" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Numbers numbers = { .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, 0, NULL);
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

/* ---- Stopping ----------------------------------------------------------------------------- */

static bool is_stopped(void *ctx, const char *what, int64_t done, int64_t total)
{
    assert_non_null(what);
    assert_true(done >= 0 && done <= total);
    return *(const bool *)ctx;
}

/* Whatever a sampler is at, a stopped order is not used; the same order comes when it is asked
 * for again. */
static void test_samplers_stop(void **unused)
{
    (void)unused;
    for (size_t s = 0; s < KILN_COUNT(samplers); s++) {
        Built built = build_sampler(samplers[s].name, samplers[s].options);
        Numbers numbers = { .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, 1, NULL);
        bool stopped = true;
        const KilnPoll poll = { is_stopped, &stopped };
        int64_t want[2 * COUNT], got[2 * COUNT];
        KilnLoader *loader = NULL;
        KilnError err = { 0 };

        spec.sampler = built.instance;
        set_up(&spec);
        loader = loader_of(&spec);
        const int64_t n = read_ids(loader, 3, want, 2 * COUNT);
        kiln_loader_free(loader);
        spec.poll = &poll;
        loader = loader_of(&spec);
        assert_int_equal(kiln_loader_start(loader, 3, 0, &err), KILN_E_INTERRUPTED);
        assert_non_null(strstr(err.text, "interrupted while ordering samples"));
        stopped = false;
        assert_int_equal(read_ids(loader, 3, got, 2 * COUNT), n);
        assert_memory_equal(got, want, (size_t)n * sizeof(*want));
        kiln_loader_free(loader);
        built_free(&built);
    }
}

/* Tables of labels are stopped, too. */
static void test_labels_stop(void **unused)
{
    static const char *const names[] = { "weighted", "balanced" };
    bool stopped = true;
    const KilnPoll poll = { is_stopped, &stopped };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        Numbers numbers = { .fails = -1 };
        KilnLoaderSpec spec = spec_of(&numbers, 0, NULL);
        Built built = build_sampler(names[i], "");
        KilnError err = { 0 };

        spec.sampler = built.instance;
        spec.poll = &poll;
        assert_int_equal(kiln_sampler_setup(&spec, &err), KILN_E_INTERRUPTED);
        assert_string_equal(err.text, "interrupted while reading labels");
        built_free(&built);
    }
}

/* A shuffle asks while it is under way, and leaves off. */
static bool stops_halfway(void *ctx, const char *what, int64_t done, int64_t total)
{
    (void)what;
    *(int64_t *)ctx = done;
    return done > total / 2;
}

static void test_shuffle_stops(void **unused)
{
    enum { N = 1 << 20 };
    int64_t done = 0;
    const KilnPoll poll = { stops_halfway, &done };
    const KilnSampling sampling = { .poll = &poll };
    uint32_t *numbers = malloc(N * sizeof(*numbers));
    KilnRng rng;

    (void)unused;
    assert_non_null(numbers);
    for (uint32_t i = 0; i < N; i++)
        numbers[i] = i;
    kiln_rng_init(&rng, 1, KILN_RNG_SHUFFLE, 0, 0);
    kiln_sampling_shuffle(&sampling, &rng, numbers, N);
    assert_true(done > N / 2 && done < N * 3 / 4);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samplers_any_number_of_workers),
        cmocka_unit_test(test_subset),
        cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_samplers_refuse),
        cmocka_unit_test(test_samplers_stop),
        cmocka_unit_test(test_labels_stop),
        cmocka_unit_test(test_shuffle_stops),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
