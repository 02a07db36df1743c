/* Features of batches that are no tensors: texts, and those that a set of samples lacks. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"
#include "tests/support/data/numbers_data.h"

static const KilnDataSpec notes = {
    .n_features = 3,
    .features =
        (const KilnFeature[]) {
            { .name = "x", .content = KILN_VECTOR, .shape = { .rank = 1, .dim = { 1 } } },
            { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
            { .name = "note", .content = KILN_TEXT },
        },
    .n_classes = 2,
};

/* Sample 3 is left out after its text is set; those of odd number have none. */
static KilnStatus note_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    char text[24];

    (void)ctx;
    (void)rng;
    assert_null(sample->data[1]);
    ((float *)sample->data[0])[0] = (float)index;
    snprintf(text, sizeof(text), "note %d", (int)index);
    *(char **)sample->data[2] = index % 2 == 0 || index == 3 ? strdup(text) : NULL;
    return index == 3 ? kiln_error_set(err, KILN_E_SKIP, "is left out") : KILN_OK;
}

static KilnLoaderSpec note_spec(const char *const *absent)
{
    return (KilnLoaderSpec) {
        .data = &notes,
        .dataset = { .count = 21, .get = note_get, .absent = absent },
        .batch_size = 4,
        .limit = -1,
        .workers = 2,
    };
}

static void test_texts_and_absent_features(void **unused)
{
    static const char *const labels[] = { "label", NULL };
    const KilnLoaderSpec spec = note_spec(labels);
    KilnLoader *loader = loader_of(&spec);
    KilnBatch batch;
    int64_t n = 0;

    (void)unused;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(kiln_loader_start(loader, epoch, 0, NULL), KILN_OK);
        while (kiln_loader_next(loader, &batch, NULL) >= 0 && batch.size > 0)
            for (int64_t i = 0; i < batch.size; i++, n++) {
                char *const *in_batch = batch.features[2].data;
                char want[24];

                snprintf(want, sizeof(want), "note %d", (int)batch.samples[i]);
                assert_null(batch.features[1].data);
                if (batch.samples[i] % 2 == 0)
                    assert_string_equal(in_batch[i], want);
                else
                    assert_null(in_batch[i]);
            }
    }
    assert_int_equal(n, 3 * 20);
    kiln_loader_free(loader);
}

static void test_absent_features_refused(void **unused)
{
    static const char *const labels[] = { "label", NULL }, *const colours[] = { "colour", NULL };
    KilnLoaderSpec spec = note_spec(labels);
    KilnLoader *loader = NULL;
    KilnError err = { 0 };
    Built mixup;

    (void)unused;
    assert_int_equal(build_yaml(&mixup, KILN_KIND_BATCH_TRANSFORM, "mixup", "", &err), KILN_OK);
    spec.batch_transforms = &mixup.instance;
    spec.n_batch_transforms = 1;
    assert_int_equal(kiln_loader_new(&spec, &loader, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "blend labels, but the training samples have none"));
    spec.n_batch_transforms = 0;
    spec.dataset.absent = colours;
    assert_int_equal(kiln_loader_new(&spec, &loader, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "lack \"colour\", which is no feature"));
    built_free(&mixup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_and_absent_features),
        cmocka_unit_test(test_absent_features_refused),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
