/* The tools of datamodules of images: images in memory with labels, a part held out, sizes. */
#include <stdlib.h>
#include <string.h>

#include "kiln/images/image_data.h"
#include "tests/support/cmocka.h"

enum { COUNT = 10, HEIGHT = 3, WIDTH = 4 };

typedef struct Images {
    uint8_t *png[COUNT];
    size_t size[COUNT];
    char names[COUNT][16];
} Images;

static Images images;

static int draw(void **unused)
{
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < COUNT; i++) {
        uint8_t pixels[HEIGHT * WIDTH];

        memset(pixels, 10 * i, sizeof(pixels));
        snprintf(images.names[i], sizeof(images.names[i]), "%d", i);
        if (kiln_png_encode(pixels, HEIGHT, WIDTH, 1, &images.png[i], &images.size[i], &err) < 0)
            return -1;
    }
    return 0;
}

static int forget(void **unused)
{
    (void)unused;
    for (int i = 0; i < COUNT; i++)
        free(images.png[i]);
    return 0;
}

static void get_image(void *ctx, int64_t i, KilnRawValue *ret)
{
    (void)ctx;
    *ret = (KilnRawValue) { .type = KILN_RAW_BYTES,
                            .name = images.names[i],
                            .data = images.png[i],
                            .bytes = images.size[i] };
}

static const KilnImageForm grey = { .channels = 1, .height = -1, .width = -1 };

static KilnImageData *data_of(const KilnImageSamples *train, const KilnImageSamples *val,
                              double val_fraction)
{
    const KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = 3 };
    KilnImageData *data = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_image_data_new(NULL, &grey, &data, &err), KILN_OK);
    kiln_image_data_put(data, KILN_TRAIN, 0, train);
    if (val != NULL)
        kiln_image_data_put(data, KILN_VAL, 0, val);
    if (kiln_image_data_setup(data, &context, val_fraction, &err) < 0)
        fail_msg("%s", err.text);
    return data;
}

/* Which image a sample is, from its pixels; its name must agree, and its label is written. */
static int read_sample(const KilnDataset *dataset, int64_t index, void *label)
{
    float pixels[HEIGHT * WIDTH];
    void *values[] = { pixels, label };
    KilnSample sample = { .data = values };
    KilnError err = { 0 };
    KilnRng rng = { 0 };

    if (dataset->get(dataset->ctx, index, &rng, &sample, &err) < 0)
        fail_msg("%s", err.text);
    const int number = (int)(pixels[0] * 25.5f + 0.5f);
    assert_string_equal(dataset->name(dataset->ctx, index), images.names[number]);
    return number;
}

static void test_held_out(void **unused)
{
    static const int32_t classes[COUNT] = { 0, 1, 0, 1, 0, 1, 0, 1, 0, 1 };
    const KilnImageSamples train = { .images = { COUNT, NULL, get_image }, .classes = classes };
    KilnImageData *data = data_of(&train, NULL, 0.3);
    bool seen[COUNT] = { false };
    KilnDataset dataset;

    (void)unused;
    assert_true(kiln_image_data_holds_out(data));
    for (int split = KILN_TRAIN; split <= KILN_VAL; split++) {
        kiln_image_data_dataset(data, (KilnSplit)split, 0, &dataset);
        assert_int_equal(dataset.count, split == KILN_TRAIN ? 7 : 3);
        for (int64_t i = 0; i < dataset.count; i++) {
            int32_t label = -1;
            const int number = read_sample(&dataset, i, &label);

            assert_false(seen[number]);
            seen[number] = true;
            assert_int_equal(label, classes[number]);
            assert_int_equal(dataset.label(dataset.ctx, i), classes[number]);
        }
    }
    const KilnFeature feature = kiln_image_data_feature(data);
    assert_true(kiln_shape_equal(&feature.shape, &KILN_SHAPE(HEIGHT, WIDTH, 1)));
    kiln_image_data_free(data);
}

static void test_own_validation_set(void **unused)
{
    const KilnImageSamples train = { .images = { COUNT, NULL, get_image } };
    const KilnImageSamples val = { .images = { 2, NULL, get_image } };
    KilnImageData *data = data_of(&train, &val, 0.3);
    KilnDataset dataset;
    KilnError err = { 0 };

    (void)unused;
    assert_false(kiln_image_data_holds_out(data));
    kiln_image_data_dataset(data, KILN_TRAIN, 0, &dataset);
    assert_int_equal(dataset.count, COUNT);
    assert_null(dataset.label);
    kiln_image_data_dataset(data, KILN_VAL, 0, &dataset);
    assert_int_equal(dataset.count, 2);
    assert_int_equal(read_sample(&dataset, 1, NULL), 1);
    kiln_image_data_clear(data);
    kiln_image_data_put(data, KILN_TRAIN, 0, &val);
    assert_int_equal(kiln_image_data_reload(data, 0.0, &err), KILN_OK);
    kiln_image_data_dataset(data, KILN_TRAIN, 0, &dataset);
    assert_int_equal(dataset.count, 2);
    kiln_image_data_free(data);
}

static KilnString string(const char *text)
{
    return (KilnString) { text, strlen(text) };
}

/* Classes collected from training rows, sorted; rows of other splits must have them. */
static void test_labels(void **unused)
{
    static const char *const rows[] = { "dog;cat", "", "cow" };
    const KilnLabelSource source = { .label = "label", .separator = ";", .several = true };
    const KilnDataContext context = { .stage = KILN_STAGE_FIT };
    KilnDataLabels labels = { 0 };
    KilnError err = { 0 };
    float flags[3];

    (void)unused;
    assert_int_equal(kiln_data_labels_open(&labels, &source, &context, &err), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(rows); i++) {
        const KilnString row = string(rows[i]);

        assert_int_equal(kiln_data_labels_check(&labels, KILN_TRAIN, &row, &err), KILN_OK);
    }
    const KilnString bird = string("bird");
    assert_int_equal(kiln_data_labels_check(&labels, KILN_VAL, &bird, &err), KILN_E_KEY);
    for (size_t i = 0; i < KILN_COUNT(rows); i++) {
        const KilnString row = string(rows[i]);

        assert_int_equal(kiln_data_labels_add(&labels, KILN_TRAIN, &row, &err), KILN_OK);
    }
    assert_int_equal(labels.classes.n, 3);
    assert_string_equal(labels.classes.names[0], "cat");
    const KilnFeature feature = kiln_data_labels_feature(&labels);
    assert_string_equal(feature.name, "labels");
    assert_int_equal(feature.shape.dim[0], 3);
    kiln_data_labels_write(&labels, KILN_TRAIN, 0, flags); /* cat, cow, dog */
    assert_true(flags[0] == 1.0f && flags[1] == 0.0f && flags[2] == 1.0f);
    kiln_data_labels_write(&labels, KILN_TRAIN, 1, flags);
    assert_true(flags[0] == 0.0f && flags[1] == 0.0f && flags[2] == 0.0f);
    assert_int_equal(kiln_data_labels_class(&labels, KILN_TRAIN, 0), -1);
    kiln_data_labels_release(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_out),
        cmocka_unit_test(test_own_validation_set),
        cmocka_unit_test(test_labels),
    };

    return cmocka_run_group_tests(tests, draw, forget);
}
