/* Batch transforms in the loader: mixup and cutmix on images with classes. */
#include <math.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/loader_fixture.h"

enum { HEIGHT = 6, WIDTH = 5, PIXELS = HEIGHT * WIDTH * 2, CLASSES = 7, IMAGES = 45, BATCH = 8 };

/* Every pixel of image i is i. */
static KilnStatus image_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                            KilnError *err)
{
    const int64_t *bad_label = ctx;

    (void)rng;
    (void)err;
    for (int i = 0; i < PIXELS; i++)
        ((float *)sample->data[0])[i] = (float)index;
    *(int32_t *)sample->data[1] = index == *bad_label ? CLASSES : (int32_t)(index % CLASSES);
    return KILN_OK;
}

static const KilnDataSpec images = {
    .n_features = 2,
    .features =
        (const KilnFeature[]) {
            { .name = "image",
              .content = KILN_IMAGE,
              .shape = { .rank = 3, .dim = { HEIGHT, WIDTH, 2 } } },
            { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        },
    .n_classes = CLASSES,
};

static int64_t no_bad_label = -1;

static KilnLoaderSpec image_spec(KilnInstance *const *transforms, size_t n, int workers)
{
    return (KilnLoaderSpec) {
        .data = &images,
        .dataset = { .count = IMAGES, .ctx = &no_bad_label, .get = image_get },
        .batch_size = BATCH,
        .limit = -1,
        .seed = 5,
        .sampler = loader_shuffle.instance,
        .batch_transforms = transforms,
        .n_batch_transforms = n,
        .workers = workers,
    };
}

/* The share that sample `row` of the batch kept of its own label; its partner is the row as
 * far from the other end. */
static float check_label(const KilnBatch *batch, int64_t row)
{
    const float *shares = (const float *)batch->features[1].data + row * CLASSES;
    int64_t own = batch->samples[row] % CLASSES;
    int64_t other = batch->samples[batch->size - 1 - row] % CLASSES;
    float sum = 0.0f;

    for (int c = 0; c < CLASSES; c++) {
        if (c != own && c != other)
            assert_true(shares[c] == 0.0f);
        sum += shares[c];
    }
    assert_float_equal(sum, 1.0f, 1e-6f);
    return own != other ? shares[own] : -1.0f;
}

static void test_mixup(void **unused)
{
    Built mixup = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "mixup", "alpha: 0.8");
    KilnLoaderSpec spec = image_spec(&mixup.instance, 1, 2);
    KilnLoader *loader = loader_open(&spec);
    KilnBatch batch;
    int blended = 0;

    (void)unused;
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        assert_int_equal(kiln_loader_start(loader, epoch, 0, NULL), KILN_OK);
        while (loader_take(loader, &batch))
            for (int64_t i = 0; i < batch.size; i++) {
                const float *pixels = (const float *)batch.features[0].data + i * PIXELS;
                float own = (float)batch.samples[i];
                float other = (float)batch.samples[batch.size - 1 - i];
                float share = check_label(&batch, i);

                if (share < 0.0f)
                    continue;
                assert_float_equal(pixels[0], share * own + (1.0f - share) * other, 1e-4f);
                for (int k = 1; k < PIXELS; k++)
                    assert_true(pixels[k] == pixels[0]);
                blended += share > 0.01f && share < 0.99f;
            }
    }
    assert_true(blended > 100); /* of 225 */
    kiln_loader_free(loader);
    built_free(&mixup);
}

static void test_cutmix(void **unused)
{
    Built cutmix = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "cutmix", "");
    KilnLoaderSpec spec = image_spec(&cutmix.instance, 1, 2);
    KilnLoader *loader = loader_open(&spec);
    KilnBatch batch;
    int boxes = 0;

    (void)unused;
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        assert_int_equal(kiln_loader_start(loader, epoch, 0, NULL), KILN_OK);
        while (loader_take(loader, &batch))
            for (int64_t i = 0; i < batch.size; i++) {
                const float *pixels = (const float *)batch.features[0].data + i * PIXELS;
                float own = (float)batch.samples[i];
                float other = (float)batch.samples[batch.size - 1 - i];
                float share = check_label(&batch, i);
                int kept = 0;

                for (int k = 0; k < PIXELS; k++) {
                    assert_true(pixels[k] == own || pixels[k] == other);
                    kept += pixels[k] == own;
                }
                if (share >= 0.0f) /* the label says how much of the image is whose */
                    assert_float_equal(share, (float)kept / PIXELS, 1e-6f);
                boxes += kept > 0 && kept < PIXELS;
            }
    }
    assert_true(boxes > 100);
    kiln_loader_free(loader);
    built_free(&cutmix);
}

/* With p = 0 nothing is blended, and labels are all the same shares. */
static void test_soft_labels_alone(void **unused)
{
    Built mixup = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "mixup", "p: 0");
    KilnLoaderSpec spec = image_spec(&mixup.instance, 1, 0);
    KilnLoader *loader = loader_open(&spec);
    KilnBatch batch;

    (void)unused;
    assert_int_equal(kiln_loader_start(loader, 0, 0, NULL), KILN_OK);
    while (loader_take(loader, &batch))
        for (int64_t i = 0; i < batch.size; i++) {
            const float *shares = (const float *)batch.features[1].data + i * CLASSES;

            assert_true(shares[batch.samples[i] % CLASSES] == 1.0f);
            (void)check_label(&batch, i);
        }
    kiln_loader_free(loader);
    built_free(&mixup);
}

/* Bytes depend on seed, epoch and batch alone. */
static void test_transforms_any_number_of_workers(void **unused)
{
    enum { FLOATS = IMAGES * (PIXELS + CLASSES) };
    static float want[2][FLOATS], got[FLOATS];
    Built mixup = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "mixup", "p: 0.7");
    Built cutmix = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "cutmix", "p: 0.5");
    KilnInstance *const both[] = { mixup.instance, cutmix.instance };

    (void)unused;
    for (int workers = 0; workers <= 8; workers++) {
        KilnLoaderSpec spec = image_spec(both, 2, workers);
        KilnLoader *loader = loader_open(&spec);

        for (int64_t epoch = 0; epoch < 2; epoch++)
            for (int64_t first = 0; first < 6; first += 3) { /* and after a resume */
                float *to = got + first * BATCH * (PIXELS + CLASSES);
                const float *from = to;
                KilnBatch batch;

                assert_int_equal(kiln_loader_start(loader, epoch, first, NULL), KILN_OK);
                while (loader_take(loader, &batch)) {
                    memcpy(to, batch.features[0].data, (size_t)batch.size * PIXELS * sizeof(float));
                    to += batch.size * PIXELS;
                    memcpy(to, batch.features[1].data,
                           (size_t)batch.size * CLASSES * sizeof(float));
                    to += batch.size * CLASSES;
                }
                assert_ptr_equal(to, got + FLOATS);
                if (workers == 0 && first == 0)
                    memcpy(want[epoch], got, sizeof(got));
                assert_memory_equal(from, want[epoch] + (from - got),
                                    (size_t)(to - from) * sizeof(float));
            }
        kiln_loader_free(loader);
    }
    assert_memory_not_equal(want[0], want[1], sizeof(got));
    built_free(&mixup);
    built_free(&cutmix);
}

static void test_transforms_refuse(void **unused)
{
    Built mixup = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "mixup", "");
    Built cutmix = build_yaml_or_fail(KILN_KIND_BATCH_TRANSFORM, "cutmix", "");
    KilnLoaderSpec spec = image_spec(&mixup.instance, 1, 0);
    KilnFeature changed[] = { images.features[0], images.features[1] }, of_batch[2];
    KilnDataSpec data = images, ret;
    KilnError err = { 0 };
    KilnBatch batch;
    int64_t bad = 11;

    (void)unused;
    data.n_classes = 0;
    spec.data = &data;
    assert_int_equal(kiln_loader_spec_features(&spec, of_batch, &ret, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "mixup blends labels: it needs a feature \"label\""));
    data = images;
    changed[0].shape.rank = 1;
    data.features = changed;
    spec.batch_transforms = &cutmix.instance;
    assert_int_equal(kiln_loader_spec_features(&spec, of_batch, &ret, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "cutmix needs images"));
    /* A class that is none. */
    spec = image_spec(&mixup.instance, 1, 1);
    spec.sampler = NULL;
    spec.dataset.ctx = &bad;
    KilnLoader *loader = loader_open(&spec);
    assert_int_equal(kiln_loader_start(loader, 0, 0, &err), KILN_OK);
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_OK);
    assert_int_equal(kiln_loader_next(loader, &batch, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "sample 11 has label 7, but the data have"));
    kiln_loader_free(loader);
    built_free(&mixup);
    built_free(&cutmix);
}

/* Against the moments of the distribution. */
static void test_beta(void **unused)
{
    static const struct {
        double a, b;
    } cases[] = { { 0.2, 0.2 }, { 1.0, 1.0 }, { 0.01, 0.01 }, { 2.0, 5.0 }, { 0.5, 3.0 } };

    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(cases); k++) {
        const double a = cases[k].a, b = cases[k].b, mean = a / (a + b);
        const double variance = mean * (1.0 - mean) / (a + b + 1.0);
        double sum = 0.0, squares = 0.0;
        enum { N = 20000 };

        for (int i = 0; i < N; i++) {
            KilnRng rng;

            kiln_rng_init(&rng, 3, KILN_RNG_USER, (uint32_t)k, (uint64_t)i);
            double x = kiln_rng_beta(&rng, a, b);
            assert_true(x >= 0.0 && x <= 1.0);
            sum += x;
            squares += (x - mean) * (x - mean);
        }
        assert_true(fabs(sum / N - mean) < 4.0 * sqrt(variance / N));
        assert_true(fabs(squares / N - variance) < 0.03 * variance + 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixup),
        cmocka_unit_test(test_cutmix),
        cmocka_unit_test(test_soft_labels_alone),
        cmocka_unit_test(test_transforms_any_number_of_workers),
        cmocka_unit_test(test_transforms_refuse),
        cmocka_unit_test(test_beta),
    };

    return cmocka_run_group_tests(tests, loader_fixture_begin, loader_fixture_end);
}
