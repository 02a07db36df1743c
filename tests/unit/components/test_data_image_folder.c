/* The datamodule image_folder. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"
#include "train/loader/input.h"

static const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1 };
static const KilnDataContext test_stage = { .stage = KILN_STAGE_TEST, .seed = 1 };

/* ---- Folders -------------------------------------------------------------------------- */

/* A grey PNG whose pixels are all `value` / 255. */
static void put_png(const char *name, int64_t height, int64_t width, int value)
{
    KilnImage image = { 0 };
    KilnError err = { 0 };

    fixture_put(name, "", 0); /* its folders */
    assert_int_equal(kiln_image_resize_buffer(&image, height, width, 1, NULL), KILN_OK);
    for (int64_t i = 0; i < height * width; i++)
        image.data[i] = (float)value / 255.0f;
    if (kiln_image_write_png(fixture_path(name), &image, &err) < 0)
        fail_msg("%s", err.text);
    kiln_image_release(&image);
}

/* `n` images of 6 x 8 in data/<folder>, of the grey values base, base + 1, ... */
static void put_class(const char *folder, int n, int base)
{
    char name[256];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "data/%s/%03d.png", folder, i);
        put_png(name, 6, 8, base + i);
    }
}

static void clear(void)
{
    assert_int_equal(kiln_path_remove(fixture_path("data"), NULL), KILN_OK);
}

static void put_small_set(void)
{
    clear();
    put_class("train/cat", 10, 0);
    put_class("train/dog", 10, 100);
}

static KilnStatus open_folder(const char *more, const KilnDataContext *context, Built *built,
                              KilnError *err)
{
    char options[1500];

    snprintf(options, sizeof(options), "root: %s%s%s", fixture_path("data"),
             more[0] != '\0' ? ", " : "", more);
    return open_data("image_folder", options, context, built, err);
}

static void folder_or_fail(const char *more, Built *built)
{
    KilnError err = { 0 };

    if (open_folder(more, &fit, built, &err) < 0)
        fail_msg("%s", err.text);
}

/* ---- Splits and shapes -------------------------------------------------------------------- */

static void test_folders(void **unused)
{
    float image[6 * 8 * 3];
    int32_t label;
    KilnDataSpec spec;
    Built built;

    (void)unused;
    put_small_set();
    put_class("val/dog", 3, 200);
    put_class("test/cat", 2, 210);
    put_class("test/dog", 1, 220);
    folder_or_fail("batch_size: 4", &built);
    assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
    assert_true(kiln_shape_equal(&spec.features[0].shape, &KILN_SHAPE(6, 8, 3)));
    assert_int_equal(spec.n_classes, 2);
    assert_string_equal(spec.class_names[1], "dog");
    KilnLoading loading = { 0 };
    data_ops(&built)->loading(built.instance, &loading);
    assert_int_equal(loading.batch_size, 4);
    KilnDataset train = open_split(&built, KILN_TRAIN), val = open_split(&built, KILN_VAL);
    KilnDataset test = open_split(&built, KILN_TEST);
    assert_int_equal(train.count, 20);
    assert_int_equal(val.count, 3);
    assert_int_equal(test.count, 3);
    assert_int_equal(get_sample(&train, 13, 0, image, &label, NULL), KILN_OK);
    assert_int_equal(label, 1);
    for (int i = 0; i < 6 * 8 * 3; i++)
        assert_float_equal(image[i], 103.0f / 255.0f, 1e-6f);
    assert_int_equal(get_sample(&val, 0, 0, image, &label, NULL), KILN_OK);
    assert_int_equal(label, 1);
    assert_float_equal(image[0], 200.0f / 255.0f, 1e-6f);
    assert_non_null(strstr(test.name(test.ctx, 2), "data/test/dog/000.png"));
    built_free(&built);
    /* Testing needs the same folders. */
    assert_int_equal(open_folder("", &test_stage, &built, NULL), KILN_OK);
    assert_int_equal(open_split(&built, KILN_TEST).count, 3);
    built_free(&built);
}

/* Further folders to validate and test on are sets of their own, with the classes of train/. */
static void test_more_folders(void **unused)
{
    float image[6 * 8 * 3];
    char options[700];
    const char *const *names = NULL;
    KilnDataset more;
    int32_t label;
    Built built;
    KilnError err = { 0 };

    (void)unused;
    put_small_set();
    put_class("far/dog", 3, 200);
    snprintf(options, sizeof(options), "val_folders: {far: %s}, test_folders: {far: %s}",
             fixture_path("data/far"), fixture_path("data/far"));
    folder_or_fail(options, &built);
    assert_int_equal(data_ops(&built)->sets(built.instance, KILN_TRAIN, &names), 1);
    assert_int_equal(data_ops(&built)->sets(built.instance, KILN_VAL, &names), 2);
    assert_string_equal(names[0], "");
    assert_string_equal(names[1], "far");
    assert_int_equal(open_split(&built, KILN_VAL).count, 2); /* held out */
    assert_int_equal(data_ops(&built)->dataset(built.instance, KILN_VAL, 1, &more, &err), KILN_OK);
    assert_int_equal(more.count, 3);
    assert_int_equal(get_sample(&more, 2, 0, image, &label, NULL), KILN_OK);
    assert_int_equal(label, 1);
    assert_float_equal(image[0], 202.0f / 255.0f, 1e-6f);
    built_free(&built);
    put_class("far/bird", 1, 0);
    assert_int_equal(open_folder(options, &fit, &built, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "bird"));
    built_free(&built);
}

/* Reloading finds new files, and checks what must not change during a run. */
static void test_reload(void **unused)
{
    Built built;
    KilnError err = { 0 };

    (void)unused;
    put_small_set();
    put_class("val/dog", 3, 200);
    folder_or_fail("", &built);
    assert_int_equal(open_split(&built, KILN_TRAIN).count, 20);
    put_png("data/train/cat/new.png", 6, 8, 50);
    assert_int_equal(data_ops(&built)->reload(built.instance, 2, &err), KILN_OK);
    assert_int_equal(open_split(&built, KILN_TRAIN).count, 21);
    assert_int_equal(open_split(&built, KILN_VAL).count, 3);
    put_png("data/train/bird/new.png", 6, 8, 50);
    assert_int_equal(data_ops(&built)->reload(built.instance, 4, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "class folders changed"));
    built_free(&built);
    put_small_set();
    folder_or_fail("", &built);
    put_png("data/train/cat/new.png", 6, 8, 50);
    assert_int_equal(data_ops(&built)->reload(built.instance, 2, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "validation images of their own"));
    built_free(&built);
}

/* Without val/ the training set is split, by the seed and without overlap. */
static void test_val_fraction(void **unused)
{
    static float image[6 * 8];
    bool seen[256] = { false };
    int32_t label;
    Built built;

    (void)unused;
    put_small_set();
    folder_or_fail("channels: 1, val_fraction: 0.25", &built);
    for (int split = 0; split < 2; split++) {
        KilnDataset dataset = open_split(&built, (KilnSplit)split);

        assert_int_equal(dataset.count, split == KILN_TRAIN ? 15 : 5);
        for (int64_t i = 0; i < dataset.count; i++) {
            assert_int_equal(get_sample(&dataset, i, 0, image, &label, NULL), KILN_OK);
            int value = (int)lroundf(image[0] * 255.0f);

            assert_int_equal(label, value >= 100);
            assert_false(seen[value]);
            seen[value] = true;
        }
    }
    assert_int_equal(open_split(&built, KILN_TEST).count, 0);
    built_free(&built);
    folder_or_fail("val_fraction: 0", &built);
    assert_int_equal(open_split(&built, KILN_TRAIN).count, 20);
    assert_int_equal(open_split(&built, KILN_VAL).count, 0);
    built_free(&built);
}

static void test_sizes(void **unused)
{
    static const struct {
        const char *options;
        int64_t height, width;
    } cases[] = {
        { "size: [4, 5]", 4, 5 },
        { "size: [7]", 7, 7 },
        { "size: 7", 7, 7 },
        { "size: [], transforms: [{ _target_: transform/resize, size: 9 }]", 9, 9 },
        { "transforms: [{ _target_: transform/resize, size: [9, 3] }]", 9, 3 },
        { "size: [10, 10], transforms: [{ _target_: transform/crop, size: [4] }, "
          "{ _target_: transform/flip }]",
          4, 4 },
    };

    (void)unused;
    put_small_set();
    put_png("data/train/dog/large.png", 20, 17, 50);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        float image[300];
        int32_t label;
        KilnDataSpec spec;
        Built built;

        folder_or_fail(cases[i].options, &built);
        assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
        assert_int_equal(spec.features[0].shape.dim[0], cases[i].height);
        assert_int_equal(spec.features[0].shape.dim[1], cases[i].width);
        KilnDataset train = open_split(&built, KILN_TRAIN);
        for (int64_t k = 0; k < train.count; k++)
            assert_int_equal(get_sample(&train, k, 0, image, &label, NULL), KILN_OK);
        built_free(&built);
    }
}

/* ---- What is refused ------------------------------------------------------------------------ */

static void test_errors(void **unused)
{
    static const struct {
        const char *files[5];
        const char *options;
        const char *words;
    } cases[] = {
        { { NULL }, "", "data: no such folder; expected one with train/<class>/*" },
        { { "val/a/1.png", NULL }, "", "has no folder train/; expected train/<class>/*" },
        { { "train/a/1.png", NULL }, "", "train: needs at least two classes, has only \"a\"" },
        { { "train/1.png", NULL }, "", "train: no classes: expected one folder per class" },
        { { "train/a/1.png", "train/b/note.txt", NULL }, "", "b: no image in this class" },
        { { "train/a/1.png", "train/b/c/1.png", NULL }, "", "train/b/c: a folder inside a class" },
        { { "train/ape/1.png", "train/bee/1.png", "val/bees/1.png", NULL },
          "",
          "val: the class \"bees\" is not among the 2 classes of the training set; is it "
          "\"bee\"?" },
        { { "train/a/1.png", "train/b/1.png", NULL }, "val_fraction: 0.9", "too few to split" },
        { { "train/a/1.png", "train/a/wide.png", "train/b/1.png", NULL },
          "",
          "a/wide.png is 6 x 9 but " },
        { { "train/a/1.png", "train/b/1.png", NULL },
          "transforms: [{ _target_: transform/crop, size: [32] }]",
          "an image of 6 x 8 with padding 0 is smaller than the window of 32 x 32" },
        { { "train/a/1.png", "train/b/1.png", NULL },
          "transforms: [{ _target_: transform/normalize, mean: [0, 0], std: [1, 1] }]",
          "mean and std have 2 channels, but the images have 3" },
        { { "train/a/1.png", "train/b/1.png", NULL },
          "transforms: [{ _target_: transform/normalize, mean: [0, 0], std: [1, 1, 1] }]",
          "mean has 2 numbers and std 3" },
        { { NULL }, "channels: 2", "channels: expected 1 (grey) or 3 (colour), got 2" },
        { { NULL },
          "size: [1, 2, 3]",
          "size: expected [height, width] or one number for both, got 3 numbers" },
        { { NULL },
          "transforms: [{ _target_: transform/crop, size: [] }]",
          "size: expected [height, width] or one number for both, got 0 numbers" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        Built built;

        clear();
        for (int k = 0; cases[i].files[k] != NULL; k++) {
            char name[256];

            snprintf(name, sizeof(name), "data/%s", cases[i].files[k]);
            if (strstr(name, ".png") != NULL)
                put_png(name, 6, strstr(name, "wide") != NULL ? 9 : 8, 7);
            else
                fixture_put(name, "x", 1);
        }
        KilnStatus got = open_folder(cases[i].options, &fit, &built, &err);
        if (got >= 0)
            built_free(&built);
        if (got >= 0 || strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu: status %d: %s", i, got, err.text);
    }
    put_small_set();
    KilnError err = { 0 };
    Built built;
    assert_true(open_folder("", &test_stage, &built, &err) < 0);
    assert_non_null(strstr(err.text, "has no folder test/ to test with"));
}

static void test_on_error(void **unused)
{
    float image[6 * 8 * 3];
    int32_t label;
    KilnError err = { 0 };
    Built built;

    (void)unused;
    put_small_set();
    fixture_put("data/train/cat/004.png", "a note", 6);
    put_class("val/cat", 1, 0);
    /* The headers are read at setup unless the size is given: found at once, */
    assert_int_equal(open_folder("", &fit, &built, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "train/cat/004.png: not an image"));
    /* or when the sample is read; */
    folder_or_fail("size: [6, 8]", &built);
    KilnDataset train = open_split(&built, KILN_TRAIN);
    assert_int_equal(get_sample(&train, 4, 0, image, &label, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "train/cat/004.png: not an image"));
    built_free(&built);
    /* or passed over. */
    folder_or_fail("on_error: skip", &built);
    train = open_split(&built, KILN_TRAIN);
    assert_int_equal(get_sample(&train, 4, 0, image, &label, &err), KILN_E_SKIP);
    assert_int_equal(err.status, KILN_E_SKIP);
    assert_non_null(strstr(err.text, "train/cat/004.png: not an image"));
    assert_int_equal(get_sample(&train, 5, 0, image, &label, &err), KILN_OK);
    built_free(&built);
}

/* ---- Prediction and threads --------------------------------------------------------- */

/* All samples of two epochs with augmentation; returns how many floats. */
static size_t read_epochs(const Built *built, float *ret)
{
    KilnDataset train = open_split(built, KILN_TRAIN);
    size_t n = 0;

    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (int64_t i = 0; i < train.count; i++, n += 4 * 5 * 3) {
            KilnError err = { 0 };
            int32_t label;

            if (get_sample(&train, i, epoch, ret + n, &label, &err) < 0)
                fail_msg("%s", err.text);
        }
    return n;
}

static void keep_line(void *ctx, const char *message)
{
    snprintf(ctx, 512, "%s", message);
}

#define CACHED_TRANSFORMS                                                                          \
    "size: [6, 7], transforms: [{ _target_: transform/crop, size: [4, 5], padding: 1 }, "          \
    "{ _target_: transform/flip }]"

/* With a cache the bytes are the same, also when files change or the cache is damaged. */
static void test_cache(void **unused)
{
    static float want[2 * 20 * 4 * 5 * 3], got[2 * 20 * 4 * 5 * 3];
    char cached[512], line[512] = "";
    Built built;

    (void)unused;
    put_small_set();
    snprintf(cached, sizeof(cached), "%s, cache: %s", CACHED_TRANSFORMS, fixture_path("kept"));
    folder_or_fail(CACHED_TRANSFORMS, &built);
    size_t n = read_epochs(&built, want);
    built_free(&built);
    for (int run = 0; run < 2; run++) { /* filled, then found */
        folder_or_fail(cached, &built);
        assert_int_equal(read_epochs(&built, got), n);
        assert_memory_equal(want, got, n * sizeof(*got));
        data_ops(&built)->report(built.instance, keep_line, line);
        assert_string_equal(line, "");
        built_free(&built);
    }
    /* A file of the same size and name with another picture in it. */
    nanosleep(&(struct timespec) { .tv_nsec = 20000000 }, NULL);
    put_png("data/train/cat/003.png", 6, 8, 99);
    folder_or_fail(CACHED_TRANSFORMS, &built);
    read_epochs(&built, want);
    built_free(&built);
    folder_or_fail(cached, &built);
    read_epochs(&built, got);
    assert_memory_equal(want, got, n * sizeof(*got));
    built_free(&built);
    /* Other options are another cache. */
    snprintf(cached, sizeof(cached), "size: [4, 5], cache: %s", fixture_path("kept"));
    folder_or_fail("size: [4, 5]", &built);
    read_epochs(&built, want);
    built_free(&built);
    folder_or_fail(cached, &built);
    read_epochs(&built, got);
    assert_memory_equal(want, got, n * sizeof(*got));
    built_free(&built);
    /* It needs one size. */
    KilnError err = { 0 };
    snprintf(cached, sizeof(cached),
             "cache: %s, transforms: [{ _target_: transform/resize, size: [9, 3] }]",
             fixture_path("kept"));
    assert_int_equal(open_folder(cached, &fit, &built, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "set datamodule.size"));
}

static void test_predict(void **unused)
{
    static const char *const names[] = { "cat", "dog" };
    const KilnDataSpec remembered = {
        .n_features = 1,
        .features = (const KilnFeature[]) { { .name = "image",
                                              .content = KILN_IMAGE,
                                              .dtype = KILN_F32,
                                              .shape = KILN_SHAPE(5, 5, 3) } },
        .n_classes = 2,
        .class_names = names,
    };
    const KilnDataContext predict = { .stage = KILN_STAGE_PREDICT, .remembered = &remembered };
    float image[75];
    int32_t label = -1;
    KilnInput opened = { 0 };
    KilnDataset input;
    KilnError err = { 0 };
    Built built;

    (void)unused;
    put_small_set();
    const char *options =
        "root: /nowhere, size: [5, 5], transforms: [{ _target_: transform/normalize, "
        "mean: [0.5], std: [0.5] }]";
    if (open_data("image_folder", options, &predict, &built, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_input_open(&opened, built.instance, &remembered,
                                     fixture_path("data/train"), NULL, &input, &err),
                     KILN_OK);
    assert_int_equal(input.count, 20);
    assert_non_null(strstr(input.name(input.ctx, 19), "train/dog/009.png"));
    assert_int_equal(get_sample(&input, 19, 0, image, &label, &err), KILN_OK);
    assert_int_equal(label, -1);
    assert_float_equal(image[74], (109.0f / 255.0f - 0.5f) / 0.5f, 1e-5f);
    kiln_input_close(&opened);
    assert_int_equal(
        kiln_input_open(&opened, built.instance, &remembered, "/nowhere", NULL, &input, &err),
        KILN_E_IO);
    kiln_input_close(&opened);
    built_free(&built);
}

typedef struct Reader {
    const KilnDataset *dataset;
    bool ok;
} Reader;

static void *read_all(void *arg)
{
    Reader *reader = arg;

    reader->ok = true;
    for (int64_t i = 0; i < 200; i++) {
        int64_t at = i % reader->dataset->count;
        float image[6 * 8 * 3];
        int32_t label;

        if (get_sample(reader->dataset, at, 0, image, &label, NULL) < 0 || label != (at >= 10) ||
            fabsf(image[0] * 255.0f - (float)(at >= 10 ? 90 + at : at)) > 1e-3f)
            reader->ok = false;
    }
    return NULL;
}

static void test_threads(void **unused)
{
    pthread_t threads[4];
    Reader readers[4];
    Built built;

    (void)unused;
    put_small_set();
    folder_or_fail("val_fraction: 0", &built);
    KilnDataset train = open_split(&built, KILN_TRAIN);
    for (int i = 0; i < 4; i++) {
        readers[i] = (Reader) { .dataset = &train };
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].ok);
    }
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_folders), cmocka_unit_test(test_reload),
        cmocka_unit_test(test_folders),      cmocka_unit_test(test_val_fraction),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_on_error),     cmocka_unit_test(test_predict),
        cmocka_unit_test(test_cache),        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
