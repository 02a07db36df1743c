/* The datamodule digits: its images, that they repeat, its input. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"
#include "train/loader/input.h"

#define PIXELS (28 * 28)

static const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1 };

static void open_or_fail(const char *options, const KilnDataContext *context, Built *built)
{
    KilnError err = { 0 };

    if (open_data("digits", options, context, built, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_spec(void **unused)
{
    KilnDataSpec spec;
    Built built;

    (void)unused;
    open_or_fail("size: 20, train_count: 7, val_count: 0, batch_size: 5", &fit, &built);
    assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
    assert_int_equal(spec.n_features, 2);
    const KilnFeature *image = kiln_spec_feature(&spec, "image");
    assert_true(kiln_shape_equal(&image->shape, &KILN_SHAPE(20, 20, 1)));
    assert_int_equal(image->dtype, KILN_F32);
    assert_int_equal(kiln_spec_feature(&spec, "label")->shape.rank, 0);
    assert_null(kiln_spec_feature(&spec, "text"));
    assert_int_equal(spec.n_classes, 10);
    assert_string_equal(spec.class_names[9], "9");
    assert_int_equal(open_split(&built, KILN_TRAIN).count, 7);
    assert_int_equal(open_split(&built, KILN_VAL).count, 0);
    assert_int_equal(open_split(&built, KILN_TEST).count, 2000);
    KilnLoading loading = { 0 };
    data_ops(&built)->loading(built.instance, &loading);
    assert_int_equal(loading.batch_size, 5);
    built_free(&built);
}

/* Mean and deviation near 0 and 1, all classes about equally often. */
static void test_statistics(void **unused)
{
    float image[PIXELS];
    double sum = 0.0, squares = 0.0;
    int count[10] = { 0 };
    const int n = 2000;
    Built built;

    (void)unused;
    open_or_fail("", &fit, &built);
    KilnDataset train = open_split(&built, KILN_TRAIN);
    for (int i = 0; i < n; i++) {
        int32_t label = -1;

        assert_int_equal(get_sample(&train, i, 0, image, &label, NULL), KILN_OK);
        assert_in_range(label, 0, 9);
        count[label]++;
        for (int k = 0; k < PIXELS; k++) {
            assert_true(isfinite(image[k]));
            sum += (double)image[k];
            squares += (double)image[k] * (double)image[k];
        }
    }
    assert_true(fabs(sum / (n * PIXELS)) < 0.02);
    assert_true(fabs(squares / (n * PIXELS) - 1.0) < 0.05);
    for (int k = 0; k < 10; k++)
        assert_in_range(count[k], 140, 260);
    built_free(&built);
}

static void test_repeats(void **unused)
{
    static const KilnDataContext other_seed = { .stage = KILN_STAGE_FIT, .seed = 2 };
    float a[PIXELS], b[PIXELS];
    int32_t label_a, label_b;
    Built one, two, other;

    (void)unused;
    open_or_fail("", &fit, &one);
    open_or_fail("train_count: 50", &fit, &two);
    open_or_fail("", &other_seed, &other);
    KilnDataset train = open_split(&one, KILN_TRAIN), same = open_split(&two, KILN_TRAIN);
    KilnDataset test = open_split(&one, KILN_TEST), foreign = open_split(&other, KILN_TRAIN);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(get_sample(&train, i, 0, a, &label_a, NULL), KILN_OK);
        /* The same in another instance and epoch, */
        assert_int_equal(get_sample(&same, i, 3, b, &label_b, NULL), KILN_OK);
        assert_int_equal(label_a, label_b);
        assert_memory_equal(a, b, sizeof(a));
        /* not in another split or with another seed. */
        assert_int_equal(get_sample(&test, i, 0, b, &label_b, NULL), KILN_OK);
        assert_true(memcmp(a, b, sizeof(a)) != 0);
        assert_int_equal(get_sample(&foreign, i, 0, b, &label_b, NULL), KILN_OK);
        assert_true(memcmp(a, b, sizeof(a)) != 0);
    }
    built_free(&one);
    built_free(&two);
    built_free(&other);
}

/* Without distortion and noise: black around the digit, 1 takes the least ink. */
static void test_plain(void **unused)
{
    float image[PIXELS];
    double ink[10] = { 0 };
    int count[10] = { 0 };
    int32_t label;
    Built built;

    (void)unused;
    open_or_fail("distortion: 0, noise: 0", &fit, &built);
    KilnDataset train = open_split(&built, KILN_TRAIN);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(get_sample(&train, i, 0, image, &label, NULL), KILN_OK);
        float black = image[0]; /* corners stay empty */
        assert_true(black == image[PIXELS - 1]);
        for (int k = 0; k < PIXELS; k++)
            ink[label] += (double)(image[k] - black);
        count[label]++;
    }
    for (int k = 0; k < 10; k++) {
        assert_true(count[k] > 20);
        ink[k] /= count[k];
    }
    for (int k = 0; k < 10; k++)
        assert_true(k == 1 || ink[k] > ink[1]);
    assert_true(ink[8] > ink[7]);
    built_free(&built);
}

static void test_sizes(void **unused)
{
    static const int sizes[] = { 8, 17, 64, 256 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(sizes); i++) {
        size_t bytes = sizeof(float) * (size_t)(sizes[i] * sizes[i]);
        float *image = malloc(bytes);
        char options[64];
        int32_t label;
        Built built;

        snprintf(options, sizeof(options), "size: %d, distortion: 2", sizes[i]);
        open_or_fail(options, &fit, &built);
        KilnDataset train = open_split(&built, KILN_TRAIN);
        for (int k = 0; k < 50; k++)
            assert_int_equal(get_sample(&train, k, 0, image, &label, NULL), KILN_OK);
        free(image);
        built_free(&built);
    }
}

static void test_options(void **unused)
{
    static const char *const bad[] = { "size: 7", "noise: -1", "train_count: 0", "colour: true" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(bad); i++) {
        KilnError err = { 0 };
        Built built;

        if (open_data("digits", bad[i], &fit, &built, &err) >= 0)
            fail_msg("%s was accepted", bad[i]);
    }
}

/* A drawing that was written as PNG comes back, scaled, as the same sample. */
static void test_input(void **unused)
{
    static const char *const names[] = { "zero", "one" };
    const KilnDataSpec remembered = {
        .n_features = 1,
        .features = (const KilnFeature[]) { { .name = "image",
                                              .content = KILN_IMAGE,
                                              .dtype = KILN_F32,
                                              .shape = KILN_SHAPE(28, 28, 1) } },
        .n_classes = 2,
        .class_names = names,
    };
    const KilnDataContext predict = { .stage = KILN_STAGE_PREDICT, .remembered = &remembered };
    float drawn[PIXELS], back[PIXELS];
    KilnImage image = { .height = 28, .width = 28, .channels = 1, .data = back };
    KilnInput opened = { 0 };
    KilnDataset train, input;
    KilnDataSpec spec;
    KilnError err = { 0 };
    int32_t label = 0;
    Built built;

    (void)unused;
    open_or_fail("noise: 0", &fit, &built);
    train = open_split(&built, KILN_TRAIN);
    assert_int_equal(get_sample(&train, 3, 0, drawn, &label, NULL), KILN_OK);
    float low = drawn[0], high = drawn[0];
    for (int i = 0; i < PIXELS; i++) {
        low = fminf(low, drawn[i]);
        high = fmaxf(high, drawn[i]);
    }
    built_free(&built);
    for (int i = 0; i < PIXELS; i++)
        back[i] = (drawn[i] - low) / (high - low);
    assert_int_equal(kiln_image_write_png(fixture_path("digit.png"), &image, &err), KILN_OK);

    open_or_fail("", &predict, &built);
    assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
    assert_int_equal(spec.n_classes, 2);
    assert_string_equal(spec.class_names[1], "one");
    assert_int_equal(kiln_input_open(&opened, built.instance, &spec, fixture_path("digit.png"),
                                     NULL, &input, &err),
                     KILN_OK);
    assert_int_equal(input.count, 1);
    assert_string_equal(input.name(input.ctx, 0), fixture_path("digit.png"));
    assert_int_equal(get_sample(&input, 0, 0, back, &label, &err), KILN_OK);
    /* The ink of a drawing is between 0.75 and 1, that of the file 1. */
    for (int i = 0; i < PIXELS; i++)
        if ((drawn[i] == low) != (back[i] == low))
            fail_msg("pixel %d: %g from the file, drawn as %g", i, (double)back[i],
                     (double)drawn[i]);
    kiln_input_close(&opened);
    fixture_put("note.png", "a note", 6);
    assert_int_equal(kiln_input_open(&opened, built.instance, &spec, fixture_path("note.png"), NULL,
                                     &input, &err),
                     KILN_OK);
    assert_int_equal(get_sample(&input, 0, 0, back, &label, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "note.png: not an image"));
    kiln_input_close(&opened);
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),    cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_repeats), cmocka_unit_test(test_plain),
        cmocka_unit_test(test_sizes),   cmocka_unit_test(test_options),
        cmocka_unit_test(test_input),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
