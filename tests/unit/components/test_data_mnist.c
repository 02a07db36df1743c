/* The datamodule mnist, and its reader of idx files. */
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "kiln/files/idx.h"
#include "kiln/tools/clock.h"
#include "tests/support/data/data_fixture.h"
#include "train/loader/input.h"

#define REAL "../shared/data/mnist"

static const KilnDataContext fit = { .stage = KILN_STAGE_FIT, .seed = 1 };
static const KilnDataContext test_stage = { .stage = KILN_STAGE_TEST, .seed = 1 };

/* ---- Files -------------------------------------------------------------------------- */

/* An idx file of `rank` axes whose element i is i * factor + shift; returns its size. */
static size_t make_idx(uint8_t *buffer, int rank, const uint32_t *dims, unsigned factor,
                       unsigned shift)
{
    size_t at = 4, count = 1;

    memcpy(buffer, (uint8_t[]) { 0, 0, 8, (uint8_t)rank }, 4);
    for (int i = 0; i < rank; i++) {
        for (int byte = 3; byte >= 0; byte--)
            buffer[at++] = (uint8_t)(dims[i] >> 8 * byte);
        count *= dims[i];
    }
    for (size_t i = 0; i < count; i++)
        buffer[at + i] = (uint8_t)((unsigned)i * factor + shift);
    return at + count;
}

/* Append one gzip member; returns its size. */
static size_t make_gzip(const uint8_t *data, size_t size, uint8_t *ret, size_t room)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t got;

    assert_non_null(c);
    got = libdeflate_gzip_compress(c, data, size, ret, room);
    libdeflate_free_compressor(c);
    assert_true(got > 0);
    return got;
}

static void put_idx(const char *name, int rank, uint32_t n, unsigned modulus)
{
    static uint8_t buffer[1 << 16];
    const uint32_t dims[] = { n, 4, 3 };
    size_t size = make_idx(buffer, rank, dims, 1, 0);

    if (modulus > 0)
        for (size_t i = size - n; i < size; i++)
            buffer[i] = (uint8_t)(buffer[i] % modulus);
    fixture_put(name, buffer, size);
}

/* A small set: 60 training images of 4 x 3, 20 test images, 5 classes. */
static void put_set(void)
{
    assert_int_equal(kiln_path_remove(fixture_path("set"), NULL), KILN_OK);
    put_idx("set/train-images-idx3-ubyte", 3, 60, 0);
    put_idx("set/train-labels-idx1-ubyte", 1, 60, 5);
    put_idx("set/t10k-images-idx3-ubyte", 3, 20, 0);
    put_idx("set/t10k-labels-idx1-ubyte", 1, 20, 5);
}

/* ---- idx ------------------------------------------------------------------------------ */

static void test_idx(void **unused)
{
    const uint32_t dims[] = { 5, 300, 7 };
    uint8_t plain[16 + 5 * 300 * 7], packed[1 << 15];
    KilnIdx idx = { 0 };
    KilnError err = { 0 };

    (void)unused;
    size_t size = make_idx(plain, 3, dims, 7, 3);
    fixture_put("i/plain", plain, size);
    /* One member, and three, the last one small: its size is no guess for all. */
    size_t packed_size = make_gzip(plain, size, packed, sizeof(packed));
    fixture_put("i/one.gz", packed, packed_size);
    packed_size = make_gzip(plain, size - 50, packed, sizeof(packed));
    packed_size += make_gzip(plain + size - 50, 30, packed + packed_size, 1000);
    packed_size += make_gzip(plain + size - 20, 20, packed + packed_size, 1000);
    fixture_put("i/many.gz", packed, packed_size);
    fixture_put("i/unnamed", packed, packed_size);

    static const char *const names[] = { "i/plain", "i/one", "i/one.gz", "i/many", "i/unnamed" };
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        if (kiln_idx_read(fixture_path(names[i]), 3, &idx, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(idx.rank, 3);
        for (int k = 0; k < 3; k++)
            assert_int_equal(idx.dim[k], dims[k]);
        assert_memory_equal(idx.data, plain + 16, size - 16);
        kiln_idx_release(&idx);
        kiln_idx_release(&idx);
    }
}

static void test_idx_errors(void **unused)
{
    static const struct {
        uint8_t bytes[24];
        size_t size;
        const char *words;
    } cases[] = {
        { { 0 }, 0, "is empty" },
        { { 0, 0 }, 2, "2 bytes, expected at least the 8 of its header" },
        { { 0, 0, 8, 1, 0, 0, 0 }, 7, "7 bytes, expected at least the 8" },
        { { 0, 0, 8, 3, 0, 0, 0, 1 }, 8, "an idx file with 3 axes, expected 1 (labels)" },
        { { 0, 0, 13, 1, 0, 0, 0, 1 }, 8, "type 0x0d, expected unsigned bytes" },
        { "hello, world", 12, "not an idx file: it begins with 0x68656c6c, expected 0x00000801" },
        { { 0, 0, 8, 1, 0, 0, 0, 9, 1, 2, 3 },
          11,
          "cut short: its header announces 9 items, 17 bytes in all, but there are 11" },
        { { 0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3 }, 11, "too long: its header announces 2 items" },
        { { 0, 0, 8, 1, 0, 0, 0, 0 }, 8, "axis 0 has size 0" },
        { { 0, 0, 8, 1, 255, 255, 255, 255 }, 8, "4294967295 items" },
        { { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0 }, 8, "8 bytes of gzip data break off" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnIdx idx = { .rank = -7 };
        KilnError err = { 0 };

        fixture_put("e/bad", cases[i].bytes, cases[i].size);
        KilnStatus got = kiln_idx_read(fixture_path("e/bad"), 1, &idx, &err);
        if (got != KILN_E_FORMAT || strstr(err.text, cases[i].words) == NULL ||
            strstr(err.text, "e/bad: ") == NULL)
            fail_msg("case %zu: status %d: %s", i, got, err.text);
        assert_int_equal(idx.rank, -7);
    }
    KilnIdx idx;
    KilnError err = { 0 };
    assert_int_equal(kiln_idx_read(fixture_path("e/none"), 1, &idx, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "e/none: no such file, and no none.gz either"));
    assert_int_equal(kiln_idx_read(fixture_path("e"), 1, &idx, &err), KILN_E_IO);
}

/* Every length and every flipped bit, plain and gzip. */
static void test_idx_mutations(void **unused)
{
    const uint32_t dims[] = { 6, 4, 3 };
    uint8_t plain[16 + 6 * 4 * 3], packed[512];
    size_t sizes[2] = { make_idx(plain, 3, dims, 11, 0), 0 };
    uint8_t *files[] = { plain, packed };

    (void)unused;
    sizes[1] = make_gzip(plain, sizes[0], packed, sizeof(packed));
    for (int f = 0; f < 2; f++) {
        for (size_t n = 0; n < sizes[f]; n++) {
            KilnIdx idx = { 0 };

            fixture_put("m", files[f], n);
            assert_int_equal(kiln_idx_read(fixture_path("m"), 3, &idx, NULL), KILN_E_FORMAT);
        }
        for (size_t bit = 0; bit < 8 * sizes[f]; bit++) {
            KilnIdx idx = { 0 };

            files[f][bit / 8] = (uint8_t)(files[f][bit / 8] ^ 1 << bit % 8);
            fixture_put("m", files[f], sizes[f]);
            files[f][bit / 8] = (uint8_t)(files[f][bit / 8] ^ 1 << bit % 8);
            KilnStatus got = kiln_idx_read(fixture_path("m"), 3, &idx, NULL);
            assert_true(got == KILN_OK || got == KILN_E_FORMAT);
            kiln_idx_release(&idx);
        }
    }
}

/* How far the data go is found by bisection. */
static void test_gzip_cut(void **unused)
{
    static uint8_t plain[300000], packed[400000];
    const uint32_t dims[] = { 299992 };
    uint32_t noise = 1;
    KilnIdx idx;
    KilnError err = { 0 };

    (void)unused;
    size_t size = make_idx(plain, 1, dims, 0, 0);
    for (size_t i = 8; i < size; i++)
        plain[i] = (uint8_t)((noise = noise * 1664525u + 1013904223u) >> 26);
    size_t packed_size = make_gzip(plain, size, packed, sizeof(packed));
    fixture_put("cut.gz", packed, packed_size / 2);
    assert_int_equal(kiln_idx_read(fixture_path("cut.gz"), 1, &idx, &err), KILN_E_FORMAT);
    const char *about = strstr(err.text, "about ");
    assert_non_null(about);
    assert_in_range(strtol(about + 6, NULL, 10), 100000, 200000);
}

/* ---- The datamodule -------------------------------------------------------------------- */

static KilnStatus open_set(const char *more, const KilnDataContext *context, Built *built,
                           KilnError *err)
{
    char options[896];

    snprintf(options, sizeof(options), "root: %s, %s", fixture_path("set"), more);
    return open_data("mnist", options, context, built, err);
}

static void test_splits(void **unused)
{
    float image[12];
    bool seen[60] = { false };
    int32_t label;
    KilnError err = { 0 };
    KilnDataSpec spec;
    Built built;

    (void)unused;
    put_set();
    if (open_set("val_count: 10, mean: 0.5, std: 0.25", &fit, &built, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
    assert_true(kiln_shape_equal(&spec.features[0].shape, &KILN_SHAPE(4, 3, 1)));
    assert_int_equal(spec.n_classes, 5);
    assert_string_equal(spec.class_names[4], "4");
    for (int split = 0; split < 2; split++) {
        KilnDataset dataset = open_split(&built, (KilnSplit)split);

        assert_int_equal(dataset.count, split == KILN_TRAIN ? 50 : 10);
        for (int64_t i = 0; i < dataset.count; i++) {
            assert_int_equal(get_sample(&dataset, i, 0, image, &label, NULL), KILN_OK);
            /* Pixel k of image n is 12 n + k modulo 256. */
            int first = (int)lroundf((image[0] * 0.25f + 0.5f) * 255.0f), n = 0;
            while (n < 60 && (12 * n % 256 != first || n % 5 != label))
                n++;
            assert_true(n < 60 && !seen[n]);
            seen[n] = true;
            for (int k = 0; k < 12; k++)
                assert_float_equal(image[k], ((float)((12 * n + k) % 256) / 255.0f - 0.5f) / 0.25f,
                                   1e-6f);
        }
    }
    KilnDataset test = open_split(&built, KILN_TEST);
    assert_int_equal(test.count, 20);
    assert_int_equal(get_sample(&test, 7, 0, image, &label, NULL), KILN_OK);
    assert_int_equal(label, 2);
    assert_float_equal(image[1], (85.0f / 255.0f - 0.5f) / 0.25f, 1e-6f);
    built_free(&built);
}

/* Further sets are the t10k files of other folders. */
static void test_more_folders(void **unused)
{
    static const KilnSplit splits[] = { KILN_VAL, KILN_TEST };
    float image[12];
    char options[600], path[256];
    const char *const *names = NULL;
    int32_t label;
    Built built;
    KilnError err = { 0 };

    (void)unused;
    put_set();
    put_idx("more/t10k-images-idx3-ubyte", 3, 7, 0);
    put_idx("more/t10k-labels-idx1-ubyte", 1, 7, 5);
    snprintf(path, sizeof(path), "%s", fixture_path("more"));
    snprintf(options, sizeof(options),
             "val_count: 10, mean: 0, std: 1, val_folders: {far: %s}, test_folders: {far: %s}",
             path, path);
    assert_int_equal(open_set(options, &fit, &built, NULL), KILN_OK);
    assert_int_equal(data_ops(&built)->sets(built.instance, KILN_TRAIN, &names), 1);
    for (size_t i = 0; i < KILN_COUNT(splits); i++) {
        KilnDataset far;

        assert_int_equal(data_ops(&built)->sets(built.instance, splits[i], &names), 2);
        assert_string_equal(names[0], "");
        assert_string_equal(names[1], "far");
        assert_int_equal(open_split(&built, splits[i]).count, i == 0 ? 10 : 20);
        assert_int_equal(data_ops(&built)->dataset(built.instance, splits[i], 1, &far, &err),
                         KILN_OK);
        assert_int_equal(far.count, 7);
        assert_int_equal(get_sample(&far, 6, 0, image, &label, NULL), KILN_OK);
        assert_int_equal(label, 1);
        assert_float_equal(image[0], 72.0f / 255.0f, 1e-6f);
    }
    built_free(&built);
    assert_int_equal(kiln_path_remove(fixture_path("more/t10k-labels-idx1-ubyte"), NULL), KILN_OK);
    assert_int_equal(open_set(options, &fit, &built, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "val_folders.far"));
    built_free(&built);
}

/* The validation part follows the seed. */
static void test_split_seed(void **unused)
{
    float first[3][12];
    int32_t labels[3];

    (void)unused;
    put_set();
    for (int i = 0; i < 3; i++) {
        KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = i == 2 ? 9 : 1 };
        Built built;

        assert_int_equal(open_set("val_count: 1", &context, &built, NULL), KILN_OK);
        KilnDataset val = open_split(&built, KILN_VAL);
        assert_int_equal(get_sample(&val, 0, 0, first[i], &labels[i], NULL), KILN_OK);
        built_free(&built);
    }
    assert_memory_equal(first[0], first[1], sizeof(first[0]));
    assert_true(memcmp(first[0], first[2], sizeof(first[0])) != 0);
}

/* What is not trained on does not move, training samples neither. */
static void test_no_shift(void **unused)
{
    static const KilnDataContext validate = { .stage = KILN_STAGE_VALIDATE, .seed = 1 };
    float plain[12], image[12];
    int32_t label;
    Built built;

    (void)unused;
    put_set();
    assert_int_equal(open_set("val_count: 0, shift: 1", &validate, &built, NULL), KILN_OK);
    KilnDataset train = open_split(&built, KILN_TRAIN);
    assert_int_equal(get_sample(&train, 3, 0, plain, &label, NULL), KILN_OK);
    for (uint32_t epoch = 1; epoch < 20; epoch++) {
        assert_int_equal(get_sample(&train, 3, epoch, image, &label, NULL), KILN_OK);
        assert_memory_equal(image, plain, sizeof(plain));
    }
    built_free(&built);
}

static void test_shift(void **unused)
{
    float plain[12], moved[12];
    int32_t label;
    int different = 0;
    Built built;

    (void)unused;
    put_set();
    assert_int_equal(open_set("val_count: 0, shift: 1, mean: 0, std: 1", &fit, &built, NULL),
                     KILN_OK);
    KilnDataset train = open_split(&built, KILN_TRAIN), test = open_split(&built, KILN_TEST);
    /* The first 20 training images are the test images, which do not move. */
    assert_int_equal(get_sample(&test, 3, 0, plain, &label, NULL), KILN_OK);
    for (uint32_t epoch = 0; epoch < 40; epoch++) {
        bool found = false;

        assert_int_equal(get_sample(&train, 3, epoch, moved, &label, NULL), KILN_OK);
        for (int place = 0; place < 9 && !found; place++) {
            bool same = true;

            for (int i = 0; i < 12; i++) {
                int y = i / 3 - (place / 3 - 1), x = i % 3 - (place % 3 - 1);
                float want = y < 0 || y > 3 || x < 0 || x > 2 ? 0.0f : plain[3 * y + x];

                same = same && moved[i] == want;
            }
            found = same;
        }
        assert_true(found);
        different += memcmp(moved, plain, sizeof(plain)) != 0;
    }
    assert_in_range(different, 20, 39);
    built_free(&built);
}

static void test_set_errors(void **unused)
{
    static const struct {
        const char *file; /* replaced by `n` items; NULL name: nothing */
        int rank;
        uint32_t n;
        unsigned modulus;
        const char *options;
        const KilnDataContext *context;
        const char *words;
    } cases[] = {
        { "set/train-labels-idx1-ubyte", 1, 59, 5, "val_count: 5", &fit,
          "60 train images but 59 labels" },
        { "set/train-labels-idx1-ubyte", 3, 60, 5, "val_count: 5", &fit,
          "an idx file with 3 axes, expected 1 (labels)" },
        { NULL, 0, 0, 0, "val_count: 60", &fit, "val_count=60 leaves no training image" },
        { NULL, 0, 0, 0, "val_count: 5, classes: 3", &fit,
          "train-labels-idx1-ubyte: label 3 of item 3, expected 0 to 2" },
        { "set/t10k-labels-idx1-ubyte", 1, 20, 7, "val_count: 5", &test_stage,
          "t10k-labels-idx1-ubyte: label 5 of item 5, expected 0 to 4" },
        { "set/t10k-labels-idx1-ubyte", 1, 21, 5, "val_count: 5", &test_stage,
          "20 t10k images but 21 labels" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        Built built;

        put_set();
        if (cases[i].file != NULL)
            put_idx(cases[i].file, cases[i].rank, cases[i].n, cases[i].modulus);
        KilnStatus got = open_set(cases[i].options, cases[i].context, &built, &err);
        if (got >= 0 || strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu: status %d: %s", i, got, err.text);
    }
}

static void test_missing(void **unused)
{
    KilnError err = { 0 };
    Built built;

    (void)unused;
    assert_int_equal(open_data("mnist", "root: /nowhere/at/all", &fit, &built, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all is not there; expected the folder with"));
    put_set();
    assert_int_equal(unlink(fixture_path("set/t10k-labels-idx1-ubyte")), 0);
    assert_true(open_set("val_count: 5", &fit, &built, &err) < 0);
    assert_non_null(strstr(err.text, "has t10k-images-idx3-ubyte but not t10k-labels"));
    /* Without either there is no test split. */
    assert_int_equal(unlink(fixture_path("set/t10k-images-idx3-ubyte")), 0);
    assert_int_equal(open_set("val_count: 5", &fit, &built, &err), KILN_OK);
    assert_int_equal(open_split(&built, KILN_TEST).count, 0);
    built_free(&built);
    assert_int_equal(open_set("val_count: 5", &test_stage, &built, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "t10k-labels-idx1-ubyte: no such file, and no"));
    assert_int_equal(unlink(fixture_path("set/train-images-idx3-ubyte")), 0);
    assert_int_equal(open_set("val_count: 5", &fit, &built, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "train-images-idx3-ubyte: no such file, and no"));
}

/* Prediction needs no data folder. */
static void test_predict(void **unused)
{
    static const char *const names[] = { "a", "b", "c" };
    const KilnDataSpec remembered = {
        .n_features = 1,
        .features = (const KilnFeature[]) { { .name = "image",
                                              .content = KILN_IMAGE,
                                              .dtype = KILN_F32,
                                              .shape = KILN_SHAPE(5, 7, 1) } },
        .n_classes = 3,
        .class_names = names,
    };
    const KilnDataContext predict = { .stage = KILN_STAGE_PREDICT, .remembered = &remembered };
    KilnImage image = { 0 };
    KilnInput opened = { 0 };
    KilnDataset input;
    KilnDataSpec spec;
    KilnError err = { 0 };
    float got[35];
    int32_t label = -1;
    Built built;

    (void)unused;
    if (open_data("mnist", "root: /nowhere, mean: 0.25, std: 0.5", &predict, &built, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
    assert_string_equal(spec.class_names[2], "c");
    assert_int_equal(kiln_input_open(&opened, built.instance, &spec, "tests/data/images/grey8.png",
                                     NULL, &input, &err),
                     KILN_OK);
    assert_int_equal(get_sample(&input, 0, 0, got, &label, &err), KILN_OK);
    assert_int_equal(label, -1); /* left as it was */
    kiln_input_close(&opened);
    assert_int_equal(kiln_image_read("tests/data/images/grey8.png",
                                     &(KilnPngForm) { .channels = 1 }, &image, &err),
                     KILN_OK);
    for (int i = 0; i < 35; i++)
        assert_float_equal(got[i], (image.data[i] - 0.25f) / 0.5f, 1e-6f);
    kiln_image_release(&image);
    built_free(&built);
}

static void test_real(void **unused)
{
    double sum = 0.0, squares = 0.0;
    float image[784];
    int32_t label;
    KilnError err = { 0 };
    KilnDataSpec spec;
    Built built;

    (void)unused;
    if (!kiln_is_dir(REAL)) {
        printf("skip: no %s\n", REAL);
        return;
    }
    double start = kiln_clock();
    if (open_data("mnist", "root: " REAL, &fit, &built, &err) < 0)
        fail_msg("%s", err.text);
    printf("mnist: training files read in %.0f ms\n", 1e3 * (kiln_clock() - start));
    assert_int_equal(data_ops(&built)->spec(built.instance, &spec, NULL), KILN_OK);
    assert_int_equal(spec.n_classes, 10);
    assert_true(kiln_shape_equal(&spec.features[0].shape, &KILN_SHAPE(28, 28, 1)));
    KilnDataset train = open_split(&built, KILN_TRAIN);
    assert_int_equal(train.count, 55000);
    assert_int_equal(open_split(&built, KILN_VAL).count, 5000);
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(get_sample(&train, i, 0, image, &label, NULL), KILN_OK);
        for (int k = 0; k < 784; k++) {
            sum += (double)image[k];
            squares += (double)image[k] * (double)image[k];
        }
    }
    /* Normalized by the set's own mean and deviation. */
    assert_true(fabs(sum / (5000 * 784)) < 0.02);
    assert_true(fabs(squares / (5000 * 784) - 1.0) < 0.02);
    KilnDataset test = open_split(&built, KILN_TEST);
    assert_int_equal(test.count, 10000);
    static const int32_t first[] = { 7, 2, 1, 0, 4, 1, 4, 9, 5, 9 };
    for (int i = 0; i < 10; i++) {
        assert_int_equal(get_sample(&test, i, 0, image, &label, NULL), KILN_OK);
        assert_int_equal(label, first[i]);
    }
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx),           cmocka_unit_test(test_idx_errors),
        cmocka_unit_test(test_idx_mutations), cmocka_unit_test(test_gzip_cut),
        cmocka_unit_test(test_splits),        cmocka_unit_test(test_split_seed),
        cmocka_unit_test(test_shift),         cmocka_unit_test(test_no_shift),
        cmocka_unit_test(test_set_errors),    cmocka_unit_test(test_more_folders),
        cmocka_unit_test(test_missing),       cmocka_unit_test(test_predict),
        cmocka_unit_test(test_real),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
