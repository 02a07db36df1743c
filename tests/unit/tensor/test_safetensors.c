/* Safetensors: a file of the reference package, round trips, damaged and malicious files, a
 * full disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "tensor/bf16.h"
#include "tensor/safetensors.h"

static char folder[] = "/tmp/kiln-safetensors-XXXXXX";
static char path[64];

static int setup(void **unused)
{
    (void)unused;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/file", folder);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    return kiln_path_remove(folder, NULL);
}

static KilnSafetensors *open_good(const char *name)
{
    KilnSafetensors *file = NULL;
    KilnError err;

    if (kiln_safetensors_open(name, &file, &err) < 0)
        fail_msg("%s", err.text);
    return file;
}

static const KilnStEntry *entry_of(const KilnSafetensors *file, const char *name)
{
    const KilnStEntry *entry = kiln_safetensors_find(file, name);

    if (entry == NULL)
        fail_msg("no tensor %s", name);
    return entry;
}

/* ---- The reference's file -------------------------------------------------------- */

static void expect_floats(const KilnSafetensors *file, const char *name, const float *want,
                          size_t n)
{
    const KilnStEntry *entry = entry_of(file, name);
    float got[16];
    KilnError err;

    assert_int_equal(kiln_shape_count(&entry->shape), n);
    if (kiln_safetensors_read(file, entry, KILN_F32, got, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&got[i], &want[i], sizeof(float)) != 0)
            fail_msg("%s: element %zu is %a, want %a", name, i, (double)got[i], (double)want[i]);
    }
}

static void test_reference(void **unused)
{
    const float ramp[] = { 0.0f, -1.0f, 0.5f, 65504.0f, 0x1p-24f, 3.0f, INFINITY, -0.0f };
    const float brain[] = { 0.0f, -1.0f, 0.5f, 65536.0f, 0x1p-24f, 3.0f };
    const float wide[] = { 0.0f, -1.0f, 0.5f, 65504.0f, 0x1p-24f, 3.0f, 0.1f };
    KilnSafetensors *file = open_good("tests/data/safetensors/reference.safetensors");
    double doubles[7];
    int32_t ints[2];
    uint8_t bytes[3];
    int64_t count;
    KilnDType dtype;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_safetensors_count(file), 10);
    assert_string_equal(kiln_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(kiln_safetensors_metadata(file, "by"), "the reference");
    assert_null(kiln_safetensors_metadata(file, "absent"));
    expect_floats(file, "layer.weight", ramp, 6);
    assert_int_equal(entry_of(file, "layer.weight")->shape.dim[1], 3);
    expect_floats(file, "half", ramp, 8);
    expect_floats(file, "brain", brain, 6);
    expect_floats(file, "double", wide, 7);
    expect_floats(file, "größe", (float[]) { 1.25f }, 1);
    expect_floats(file, "empty", ramp, 0);
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "double"), KILN_F64, doubles, &err),
                     KILN_OK);
    assert_true(doubles[6] == 0.1);
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "ints"), KILN_I32, ints, &err),
                     KILN_OK);
    assert_true(ints[0] == INT32_MIN && ints[1] == INT32_MAX);
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "bytes"), KILN_U8, bytes, &err),
                     KILN_OK);
    assert_true(bytes[0] == 0 && bytes[1] == 255 && bytes[2] == 7);
    const KilnStEntry *batches = entry_of(file, "layer.num_batches_tracked");
    assert_int_equal(batches->shape.rank, 0);
    assert_true(kiln_safetensors_dtype(batches, &dtype) && dtype == KILN_I64);
    assert_int_equal(kiln_safetensors_read(file, batches, KILN_I64, &count, &err), KILN_OK);
    assert_true(count == -(INT64_C(1) << 40));
    /* What can't be read says so. */
    assert_false(kiln_safetensors_dtype(entry_of(file, "flags"), &dtype));
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "flags"), KILN_U8, bytes, &err),
                     KILN_E_TYPE);
    assert_int_equal(kiln_safetensors_read(file, batches, KILN_F32, bytes, &err), KILN_E_TYPE);
    assert_string_equal(err.text, "tests/data/safetensors/reference.safetensors: "
                                  "layer.num_batches_tracked: is I64 and cannot be read as f32");
    assert_null(kiln_safetensors_find(file, "absent"));
    assert_null(kiln_safetensors_at(file, 10));
    kiln_safetensors_close(file);
}

/* ---- Round trips ----------------------------------------------------------------- */

enum { MANY = 9000 }; /* more than one part of a conversion */

static void test_round_trip(void **unused)
{
    static float weights[MANY];
    static double doubles[MANY];
    static float back[MANY];
    static uint16_t narrow[MANY], rounded[MANY];
    int64_t count = 1234567890123;
    uint8_t bytes[3] = { 1, 2, 3 };
    int32_t ints[2] = { -5, 5 };
    const KilnStView views[] = {
        { "bytes", KILN_U8, KILN_SHAPE(3), bytes },
        { "conv1.weight", KILN_F32, KILN_SHAPE(3, MANY / 3), weights },
        { "quote\" and \\ and ü", KILN_I32, KILN_SHAPE(1, 2, 1), ints },
        { "bn1.num_batches_tracked", KILN_I64, KILN_SCALAR, &count },
        { "wide", KILN_F64, KILN_SHAPE(MANY), doubles },
        { "nothing", KILN_F32, KILN_SHAPE(0, 2), NULL },
        { "narrow", KILN_BF16, KILN_SHAPE(MANY), narrow },
    };
    const KilnStText texts[] = { { "step", "100" }, { "note", "a\nb" } };
    size_t size, again_size;
    char *first, *again;
    KilnError err;

    (void)unused;
    for (int i = 0; i < MANY; i++) {
        weights[i] = (float)i * 0.37f;
        doubles[i] = i * 0.01;
        narrow[i] = kiln_bf16_of(-0.7f * (float)i);
    }
    if (kiln_safetensors_write(path, views, KILN_COUNT(views), texts, 2, &err) < 0)
        fail_msg("%s", err.text);
    KilnSafetensors *file = open_good(path);
    assert_int_equal(kiln_safetensors_count(file), KILN_COUNT(views));
    assert_string_equal(kiln_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(kiln_safetensors_metadata(file, "note"), "a\nb");
    for (size_t i = 0; i < KILN_COUNT(views); i++) {
        const KilnStEntry *entry = entry_of(file, views[i].name);
        static char data[MANY * 8];

        assert_true(kiln_shape_equal(&entry->shape, &views[i].shape));
        /* Aligned in memory that holds the data: begins are multiples of the size. */
        assert_int_equal(entry->begin % kiln_dtype_size(views[i].dtype), 0);
        assert_int_equal(kiln_safetensors_read(file, entry, views[i].dtype, data, &err), KILN_OK);
        if (entry->end > entry->begin)
            assert_memory_equal(data, views[i].data, entry->end - entry->begin);
    }
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "wide"), KILN_F32, back, &err),
                     KILN_OK);
    for (int i = 0; i < MANY; i++)
        assert_true(back[i] == (float)doubles[i]);
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "narrow"), KILN_F32, back, &err),
                     KILN_OK);
    for (int i = 0; i < MANY; i++)
        assert_true(back[i] == kiln_bf16_to(narrow[i]));
    assert_int_equal(
        kiln_safetensors_read(file, entry_of(file, "conv1.weight"), KILN_BF16, rounded, &err),
        KILN_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rounded[i], kiln_bf16_of(weights[i]));
    assert_int_equal(kiln_safetensors_read(file, entry_of(file, "bytes"), KILN_BF16, rounded, &err),
                     KILN_E_TYPE);
    kiln_safetensors_close(file);

    /* The same again gives the same bytes, and the data begins at a multiple of 8. */
    assert_int_equal(kiln_file_read(path, 1 << 20, &first, &size, &err), KILN_OK);
    assert_int_equal(kiln_safetensors_write(path, views, KILN_COUNT(views), texts, 2, &err),
                     KILN_OK);
    assert_int_equal(kiln_file_read(path, 1 << 20, &again, &again_size, &err), KILN_OK);
    assert_int_equal(size, again_size);
    assert_memory_equal(first, again, size);
    assert_int_equal((unsigned char)first[0] % 8, 0);
    free(first);
    free(again);
}

static void test_refused_views(void **unused)
{
    const float data[2] = { 0 };
    const KilnStView twice[] = { { "a", KILN_F32, KILN_SHAPE(2), data },
                                 { "a", KILN_F32, KILN_SHAPE(1), data } };
    const KilnStView reserved[] = { { "__metadata__", KILN_F32, KILN_SHAPE(2), data } };
    const KilnStView not_text[] = { { "\xff", KILN_F32, KILN_SHAPE(2), data } };
    char missing[80];
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_path_remove(path, &err), KILN_OK);
    assert_int_equal(kiln_safetensors_write(path, twice, 2, NULL, 0, &err), KILN_E_INTERNAL);
    assert_int_equal(kiln_safetensors_write(path, reserved, 1, NULL, 0, &err), KILN_E_INTERNAL);
    assert_int_equal(kiln_safetensors_write(path, not_text, 1, NULL, 0, &err), KILN_E_NOMEM);
    assert_false(kiln_is_file(path));
    snprintf(missing, sizeof(missing), "%s/absent/file", folder);
    assert_int_equal(kiln_safetensors_write(missing, twice, 1, NULL, 0, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, missing));
}

/* A limit on the size of files fails as a full disk does. */
static void test_disk_full(void **unused)
{
    static float data[1 << 16];
    const KilnStView view = { "weight", KILN_F32, KILN_SHAPE(1 << 16), data };
    struct rlimit old, small;
    KilnError err;

    (void)unused;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit) { .rlim_cur = 4096, .rlim_max = old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    KilnStatus status = kiln_safetensors_write(path, &view, 1, NULL, 0, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, KILN_E_IO);
    assert_non_null(strstr(err.text, path));
    assert_false(kiln_is_file(path));
}

/* ---- Damaged and hostile files --------------------------------------------------- */

static void write_bytes(const char *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static KilnStatus open_bad(KilnError *err)
{
    KilnSafetensors *file = NULL;
    KilnStatus status = kiln_safetensors_open(path, &file, err);

    if (status >= 0) {
        kiln_safetensors_close(file);
        return status;
    }
    assert_null(file);
    if (strncmp(err->text, path, strlen(path)) != 0)
        fail_msg("the message does not name the file: %s", err->text);
    return status;
}

static void test_truncated(void **unused)
{
    char *whole;
    size_t size;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_file_read("tests/data/safetensors/reference.safetensors", 1 << 20, &whole,
                                    &size, &err),
                     KILN_OK);
    for (size_t n = 0; n < size; n++) {
        write_bytes(whole, n);
        if (open_bad(&err) != KILN_E_FORMAT)
            fail_msg("cut after %zu bytes: no error", n);
    }
    free(whole);
}

/* Each byte of the header changed: an error or not, but nothing worse, and what
 * opens can be read. */
static void test_changed(void **unused)
{
    static char data[1 << 16];
    char *whole;
    size_t size;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_file_read("tests/data/safetensors/reference.safetensors", 1 << 20, &whole,
                                    &size, &err),
                     KILN_OK);
    for (size_t n = 0; n < 8 + 600 && n < size; n++) {
        static const char others[] = { '\0', '"', '9', '}', '[', '-', '\xff' };
        char before = whole[n];

        for (size_t k = 0; k < sizeof(others); k++) {
            KilnSafetensors *file = NULL;
            KilnDType dtype;

            whole[n] = others[k];
            write_bytes(whole, size);
            if (kiln_safetensors_open(path, &file, &err) < 0)
                continue;
            for (size_t i = 0; i < kiln_safetensors_count(file); i++) {
                const KilnStEntry *entry = kiln_safetensors_at(file, i);

                if (kiln_safetensors_dtype(entry, &dtype))
                    assert_int_equal(kiln_safetensors_read(file, entry, dtype, data, &err),
                                     KILN_OK);
            }
            kiln_safetensors_close(file);
        }
        whole[n] = before;
    }
    free(whole);
}

/* A header of text and `data` bytes of data after it. */
static void write_header(const char *header, size_t data)
{
    char bytes[8 + 1024] = { 0 };
    size_t length = strlen(header);

    assert_true(8 + length + data <= sizeof(bytes));
    bytes[0] = (char)(length & 255);
    bytes[1] = (char)(length >> 8);
    memcpy(bytes + 8, header, length);
    write_bytes(bytes, 8 + length + data);
}

#define T(dtype, shape, begin, end)                                                                \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static const struct {
    const char *header;
    size_t data;
    const char *text; /* part of the message; NULL: a good file */
} hostile[] = {
    { "{}", 0, NULL },
    { "{\"a\":" T("F32", "[2]", "0", "8") "}   ", 8, NULL },
    { "{\"a\":" T("F32", "[0]", "0", "0") ",\"b\":" T("U8", "[]", "0", "1") "}", 1, NULL },
    { "", 0, "header: " },
    { "[]", 0, "the header is not a mapping" },
    { "{\"a\":1}", 0, "a: has no text \"dtype\"" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, "a: has no \"data_offsets\" [begin, end]" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "a: has no list \"shape\"" },
    { "{\"a\":" T("F32", "{}", "0", "4") "}", 4, "a: has no list \"shape\"" },
    { "{\"a\":" T("F31", "[1]", "0", "4") "}", 4, "a: unknown dtype \"F31\"" },
    { "{\"a\":" T("F32", "[-1]", "0", "4") "}", 4, "\"shape\" has a value that is not a size" },
    { "{\"a\":" T("F32", "[1.0]", "0", "4") "}", 4, "\"shape\" has a value that is not a size" },
    { "{\"a\":" T("F32", "[1,1,1,1,1,1,1]", "0", "4") "}", 4, "a: has 7 axes; kiln reads up to 6" },
    { "{\"a\":" T("F32", "[2]", "0", "4") "}", 4, "do not match dtype and shape" },
    { "{\"a\":" T("F32", "[1]", "8", "4") "}", 8, "do not match dtype and shape" },
    { "{\"a\":" T("F32", "[-0]", "-4", "0") "}", 4, "has no \"data_offsets\"" },
    { "{\"a\":" T("F32", "[4611686018427387904,4]", "0", "0") "}", 0,
      "do not match dtype and shape" },
    { "{\"a\":" T("F64", "[2305843009213693952]", "0", "0") "}", 0,
      "do not match dtype and shape" },
    { "{\"a\":" T("F32", "[99999999999999999999]", "0", "4") "}", 4, "header: " },
    { "{\"a\":" T("F32", "[1]", "0", "4") ",\"b\":" T("F32", "[1]", "2", "6") "}", 6, "overlaps" },
    { "{\"a\":" T("F32", "[1]", "0", "4") ",\"b\":" T("F32", "[1]", "0", "4") "}", 4, "overlaps" },
    { "{\"a\":" T("F32", "[1]", "4", "8") "}", 8, "leaves a hole that begins at 0" },
    { "{\"a\":" T("F32", "[1]", "0", "4") "}", 5, "1 bytes of data belong to no tensor" },
    { "{\"a\":" T("F32", "[1]", "0", "4") "}", 3,
      "truncated: the header names 4 bytes of data, the file has 3" },
    { "{\"a\":" T("F32", "[1]", "0", "4") ",\"a\":" T("F32", "[1]", "0", "4") "}", 4, "header: " },
    { "{\"a\\u0000b\":" T("F32", "[1]", "0", "4") "}", 4, "header: " },
    { "{\"a\":" T("F32", "[1]", "0", "4") "} x", 4, "header: " },
    { "{\"__metadata__\":[]}", 0, "__metadata__ is not a mapping" },
    { "{\"__metadata__\":{\"step\":1}}", 0, "__metadata__: step is not text" },
};

static void test_hostile(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(hostile); i++) {
        KilnError err = { 0 };

        write_header(hostile[i].header, hostile[i].data);
        KilnStatus status = open_bad(&err);
        if (status != (hostile[i].text != NULL ? KILN_E_FORMAT : KILN_OK))
            fail_msg("%s: status %d: %s", hostile[i].header, status, err.text);
        if (hostile[i].text != NULL && strstr(err.text, hostile[i].text) == NULL)
            fail_msg("%s: got \"%s\", want \"%s\"", hostile[i].header, err.text, hostile[i].text);
    }
}

static void test_not_a_file(void **unused)
{
    char huge[16] = { '\0', '\0', '\0', '\0', '\0', '\0', '\0', '\x7f' }, deep[4104] = { 0 };
    KilnSafetensors *file = NULL;
    KilnError err;

    (void)unused;
    write_bytes(huge, sizeof(huge));
    assert_int_equal(open_bad(&err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "is no safetensors file"));
    /* Nested as deep as the header is long. */
    deep[1] = 16;
    memset(deep + 8, '[', 4096);
    write_bytes(deep, sizeof(deep));
    assert_int_equal(open_bad(&err), KILN_E_FORMAT);
    assert_int_equal(kiln_safetensors_open(folder, &file, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "is a folder, not a file"));
    assert_int_equal(kiln_path_remove(path, &err), KILN_OK);
    assert_int_equal(open_bad(&err), KILN_E_IO);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_bad(&err), KILN_E_IO);
    assert_non_null(strstr(err.text, "is a FIFO, not a regular file"));
    kiln_safetensors_close(NULL);
}

/* The file shrinks after it was opened. */
static void test_shrinks(void **unused)
{
    static float data[4096];
    const KilnStView view = { "weight", KILN_F32, KILN_SHAPE(4096), data };
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_path_remove(path, &err), KILN_OK);
    assert_int_equal(kiln_safetensors_write(path, &view, 1, NULL, 0, &err), KILN_OK);
    KilnSafetensors *file = open_good(path);
    write_bytes("", 0);
    assert_int_equal(
        kiln_safetensors_read(file, kiln_safetensors_at(file, 0), KILN_F32, data, &err),
        KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "truncated"));
    kiln_safetensors_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused_views), cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_changed),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_shrinks),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
