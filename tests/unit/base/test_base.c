/* The base library: arena, text, numbers, files, random numbers, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/system/file.h"
#include "base/parse.h"
#include "base/system/sync.h"
#include "base/text.h"
#include "kiln/rng.h"

static void test_parse_f64(void **unused)
{
    static const struct {
        const char *text;
        KilnStatus want;
        double value;
    } cases[] = {
        { "0.1", KILN_OK, 0.1 },        { "1e-3", KILN_OK, 1e-3 },  { "-.5", KILN_OK, -0.5 },
        { "1_000.5", KILN_OK, 1000.5 }, { "7", KILN_OK, 7 },        { ".inf", KILN_OK, INFINITY },
        { "-inf", KILN_OK, -INFINITY }, { "5.", KILN_OK, 5 },       { "1e-400", KILN_OK, 0 },
        { "0.1abc", KILN_E_TYPE, 0 },   { "", KILN_E_TYPE, 0 },     { " 1", KILN_E_TYPE, 0 },
        { "1 ", KILN_E_TYPE, 0 },       { "0x10", KILN_E_TYPE, 0 }, { "1e", KILN_E_TYPE, 0 },
        { "_1", KILN_E_TYPE, 0 },       { "1__0", KILN_E_TYPE, 0 }, { ".", KILN_E_TYPE, 0 },
        { "1e999", KILN_E_RANGE, 0 },   { "--1", KILN_E_TYPE, 0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        double v = -7.0;
        KilnStatus got = kiln_parse_f64(cases[i].text, &v, &err);

        if (got != cases[i].want)
            fail_msg("'%s': status %d, want %d (%s)", cases[i].text, got, cases[i].want, err.text);
        assert_true(v == (got == KILN_OK ? cases[i].value : -7.0));
    }
}

static void test_parse_i64(void **unused)
{
    static const struct {
        const char *text;
        KilnStatus want;
        int64_t value;
    } cases[] = {
        { "0", KILN_OK, 0 },
        { "-12", KILN_OK, -12 },
        { "1_000", KILN_OK, 1000 },
        { "010", KILN_OK, 10 },
        { "1.5", KILN_E_TYPE, 0 },
        { "1e3", KILN_E_TYPE, 0 },
        { "12abc", KILN_E_TYPE, 0 },
        { "", KILN_E_TYPE, 0 },
        { "-", KILN_E_TYPE, 0 },
        { "0x1F", KILN_E_TYPE, 0 },
        { "9223372036854775807", KILN_OK, INT64_MAX },
        { "9223372036854775808", KILN_E_RANGE, 0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        int64_t v = -7;
        KilnStatus got = kiln_parse_i64(cases[i].text, &v, NULL);

        if (got != cases[i].want)
            fail_msg("'%s': status %d, want %d", cases[i].text, got, cases[i].want);
        assert_int_equal(v, got == KILN_OK ? cases[i].value : -7);
    }
}

static void test_parse_duration(void **unused)
{
    static const struct {
        const char *text;
        KilnStatus want;
        double seconds;
    } cases[] = {
        { "90", KILN_OK, 90 },
        { "0.5", KILN_OK, 0.5 },
        { "1e3", KILN_OK, 1000 },
        { "-3", KILN_OK, -3 }, /* an option's range refuses it */
        { "90s", KILN_OK, 90 },
        { "15m", KILN_OK, 900 },
        { "15min", KILN_OK, 900 },
        { "1.5h", KILN_OK, 5400 },
        { "1h30m", KILN_OK, 5400 },
        { "2d", KILN_OK, 172800 },
        { "1d2h3m4s5ms6us", KILN_OK, 93784.005006 },
        { "250ms", KILN_OK, 0.25 },
        { "00:15:00", KILN_OK, 900 },
        { "15:00", KILN_OK, 900 },
        { "100:00:00", KILN_OK, 360000 },
        { "00:00:01.5", KILN_OK, 1.5 },
        { "", KILN_E_TYPE, 0 },
        { "s", KILN_E_TYPE, 0 },
        { "90 s", KILN_E_TYPE, 0 },
        { "90S", KILN_E_TYPE, 0 },
        { "90x", KILN_E_TYPE, 0 },
        { "30m1h", KILN_E_TYPE, 0 }, /* from large to small */
        { "1h1h", KILN_E_TYPE, 0 },
        { "1m1min", KILN_E_TYPE, 0 },
        { "1h30", KILN_E_TYPE, 0 },
        { "-90s", KILN_E_TYPE, 0 },
        { "1..5s", KILN_E_TYPE, 0 },
        { "00:60:00", KILN_E_TYPE, 0 },
        { "00:00:60", KILN_E_TYPE, 0 },
        { "1:2:3:4", KILN_OK, 93784 }, /* days:hours:minutes:seconds */
        { "00:00:12:00", KILN_OK, 720 },
        { "1:24:00:00", KILN_E_TYPE, 0 },
        { "1:2:3:4:5", KILN_E_TYPE, 0 },
        { "1.5:00", KILN_E_TYPE, 0 },
        { "15:", KILN_E_TYPE, 0 },
        { ":15", KILN_E_TYPE, 0 },
        { "1e3s", KILN_E_TYPE, 0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        double v = -7.0;
        KilnStatus got = kiln_parse_duration(cases[i].text, &v, &err);

        if (got != cases[i].want || fabs(v - (got == KILN_OK ? cases[i].seconds : -7.0)) > 1e-9)
            fail_msg("'%s': status %d, %g (%s)", cases[i].text, got, v, err.text);
        if (got < 0)
            assert_non_null(strstr(err.text, "is not a duration: write 90s"));
    }
}

static void test_parse_size(void **unused)
{
    static const struct {
        const char *text;
        KilnStatus want;
        int64_t bytes;
    } cases[] = {
        { "512", KILN_OK, 512 },
        { "1_000", KILN_OK, 1000 },
        { "512B", KILN_OK, 512 },
        { "64K", KILN_OK, 65536 },
        { "64KiB", KILN_OK, 65536 },
        { "64kB", KILN_OK, 64000 },
        { "64KB", KILN_OK, 64000 },
        { "64MiB", KILN_OK, 67108864 },
        { "1.5GiB", KILN_OK, 1610612736 },
        { "2GB", KILN_OK, 2000000000 },
        { "3T", KILN_OK, 3298534883328 },
        { "0.5KiB", KILN_OK, 512 },
        { "9223372036854775807", KILN_OK, INT64_MAX },
        { "-1", KILN_OK, -1 }, /* an option's range refuses it */
        { "9223372036854775808", KILN_E_RANGE, 0 },
        { "8388608TiB", KILN_E_RANGE, 0 },
        { "1.5", KILN_E_TYPE, 0 }, /* no whole bytes */
        { "0.3KiB", KILN_E_TYPE, 0 },
        { "", KILN_E_TYPE, 0 },
        { "MiB", KILN_E_TYPE, 0 },
        { "64 MiB", KILN_E_TYPE, 0 },
        { "64mib", KILN_E_TYPE, 0 },
        { "64MiBs", KILN_E_TYPE, 0 },
        { "1e3", KILN_E_TYPE, 0 },
        { "-1KiB", KILN_E_TYPE, 0 },
        { "1.2.3K", KILN_E_TYPE, 0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        int64_t v = -7;
        KilnStatus got = kiln_parse_size(cases[i].text, &v, &err);

        if (got != cases[i].want || v != (got == KILN_OK ? cases[i].bytes : -7))
            fail_msg("'%s': status %d, %lld (%s)", cases[i].text, got, (long long)v, err.text);
    }
}

static void test_format_f64_reads_back(void **unused)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0.1, "0.1" },       { 1, "1.0" },
        { 100, "100.0" },     { 1e-5, "1e-05" },
        { -0.0, "-0.0" },     { 1e300, "1e+300" },
        { INFINITY, ".inf" }, { 1.0 / 3, "0.3333333333333333" },
    };
    char buf[KILN_F64_TEXT];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        assert_string_equal(kiln_format_f64(cases[i].value, buf, sizeof(buf)), cases[i].text);
    for (int i = 0; i < 1000; i++) {
        KilnRng rng;
        double back, value;

        kiln_rng_init(&rng, 3, KILN_RNG_USER, 0, (uint64_t)i);
        value = (double)kiln_rng_normal(&rng) * pow(10, (double)kiln_rng_below(&rng, 40) - 20);
        assert_int_equal(kiln_parse_f64(kiln_format_f64(value, buf, sizeof(buf)), &back, NULL),
                         KILN_OK);
        assert_true(back == value);
    }
}

/* Vectors of the authors' own known-answer tests. */
static void test_philox_known_answers(void **unused)
{
    static const struct {
        uint32_t key[2], counter[4], want[4];
    } cases[] = {
        { { 0, 0 }, { 0, 0, 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u },
          { ~0u, ~0u, ~0u, ~0u },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0xa4093822, 0x299f31d0 },
          { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        uint32_t got[4];

        kiln_philox(cases[i].key, cases[i].counter, got);
        assert_memory_equal(got, cases[i].want, sizeof(got));
    }
}

static void test_rng_streams_and_ranges(void **unused)
{
    KilnRng a, b;
    double sum = 0, squares = 0;
    int counts[7] = { 0 };

    (void)unused;
    kiln_rng_init(&a, 1, KILN_RNG_AUGMENT, 2, 3);
    kiln_rng_init(&b, 1, KILN_RNG_AUGMENT, 2, 3);
    for (int i = 0; i < 100; i++)
        assert_int_equal(kiln_rng_u32(&a), kiln_rng_u32(&b));
    kiln_rng_init(&b, 1, KILN_RNG_SHUFFLE, 2, 3);
    kiln_rng_init(&a, 1, KILN_RNG_AUGMENT, 2, 3);
    assert_int_not_equal(kiln_rng_u32(&a), kiln_rng_u32(&b));
    for (int i = 0; i < 70000; i++) {
        float u = kiln_rng_uniform(&a), n = kiln_rng_normal(&a);

        assert_true(u >= 0.0f && u < 1.0f);
        sum += (double)n;
        squares += (double)n * (double)n;
        counts[kiln_rng_below(&a, 7)]++;
    }
    assert_true(fabs(sum / 70000) < 0.02);
    assert_true(fabs(squares / 70000 - 1) < 0.03);
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
}

static void test_arena_reuses_its_chunks(void **unused)
{
    KilnArena arena = { 0 };

    (void)unused;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) {
            char *p = kiln_arena_alloc(&arena, (size_t)i % 97 + 1);

            assert_non_null(p);
            assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
            assert_int_equal(p[i % 97], 0);
            memset(p, 0xab, (size_t)i % 97 + 1);
        }
        assert_string_equal(kiln_arena_printf(&arena, "%d-%s", round, "x"), round == 0   ? "0-x"
                                                                            : round == 1 ? "1-x"
                                                                                         : "2-x");
        kiln_arena_clear(&arena);
    }
    assert_false(arena.failed);
    assert_null(kiln_arena_alloc(&arena, SIZE_MAX));
    assert_non_null(kiln_arena_alloc(&arena, 1));
    assert_true(arena.failed); /* until it is cleared */
    kiln_arena_clear(&arena);
    assert_false(arena.failed);
    kiln_arena_release(&arena);
}

static void test_nearest_name(void **unused)
{
    static const char *const names[] = { "resnet", "mlp", "linear", "cnn", "max_epochs" };
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "resnt", "resnet" },  { "resent", "resnet" },
        { "lineer", "linear" }, { "max_epoch", "max_epochs" },
        { "mpl", "mlp" },       { "transformer", NULL },
        { "x", NULL },          { "max", "max_epochs" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const char *got = kiln_nearest(cases[i].text, names, KILN_COUNT(names));

        if (cases[i].want == NULL)
            assert_null(got);
        else
            assert_string_equal(got != NULL ? got : "nothing", cases[i].want);
    }
}

static void test_files(void **unused)
{
    char dir[] = "/tmp/kiln-base-XXXXXX";
    char path[128], link[128];
    char *data = NULL, **names = NULL;
    size_t size = 0, count = 0;
    KilnError err = { 0 };

    (void)unused;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a/b/c", dir);
    assert_int_equal(kiln_dir_make(path, &err), KILN_OK);
    assert_int_equal(kiln_dir_make(path, &err), KILN_OK);
    snprintf(path, sizeof(path), "%s/a/file", dir);
    assert_int_equal(kiln_file_write(path, "hello", 5, &err), KILN_OK);
    assert_int_equal(kiln_file_read(path, 100, &data, &size, &err), KILN_OK);
    assert_string_equal(data, "hello");
    free(data);
    assert_int_equal(kiln_file_read(path, 4, &data, &size, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(kiln_file_read(dir, 100, &data, &size, &err), KILN_E_IO);
    snprintf(link, sizeof(link), "%s/a/last", dir);
    assert_int_equal(kiln_link_write("b", link, &err), KILN_OK);
    assert_int_equal(kiln_link_write("file", link, &err), KILN_OK);
    assert_int_equal(kiln_file_read(link, 100, &data, &size, &err), KILN_OK);
    free(data);
    snprintf(path, sizeof(path), "%s/a", dir);
    assert_int_equal(kiln_dir_list(path, &names, &count, &err), KILN_OK);
    assert_int_equal(count, 3); /* no temporary file is left */
    assert_string_equal(names[0], "b");
    kiln_names_free(names, count);
    /* Nothing waits for who writes to a FIFO. */
    snprintf(path, sizeof(path), "%s/pipe", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(kiln_file_read(path, 100, &data, &size, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "pipe: is a FIFO, not a regular file"));
    assert_int_equal(kiln_file_read("/dev/zero", 100, &data, &size, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "is a device, not a regular file"));
    assert_int_equal(kiln_path_remove(dir, &err), KILN_OK);
    assert_false(kiln_is_dir(dir));
    assert_int_equal(kiln_path_remove(dir, &err), KILN_OK);
    assert_int_equal(kiln_dir_list(dir, &names, &count, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "No such file"));
}

static void test_sync(void **unused)
{
    char dir[] = "/tmp/kiln-base-XXXXXX", path[128];
    KilnError err = { 0 };

    (void)unused;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a/b/c", dir);
    char *top = kiln_dir_existing(path);
    assert_string_equal(top, dir);
    assert_int_equal(kiln_dir_make(path, &err), KILN_OK);
    assert_int_equal(kiln_dirs_sync(path, top, &err), KILN_OK);
    free(top);
    top = kiln_dir_existing("kiln-no-such/folder");
    assert_true(kiln_is_dir(top)); /* the current one */
    assert_int_equal(kiln_dirs_sync("/kiln-no-such", "/", &err), KILN_OK);
    free(top);
    /* One by one, then with the file system; a link that leads nowhere is none of it. */
    for (int i = 0; i < 100; i += 33) {
        for (int j = i; j < i + 33; j++) {
            snprintf(path, sizeof(path), "%s/a/b/%d", dir, j);
            assert_int_equal(kiln_file_write_plain(path, "x", &err), KILN_OK);
        }
        snprintf(path, sizeof(path), "%s/link", dir);
        assert_int_equal(kiln_link_write("nowhere", path, &err), KILN_OK);
        assert_int_equal(kiln_tree_sync(dir, &err), KILN_OK);
    }
    assert_int_equal(kiln_paths_sync((const char *[]) { path }, 1, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(kiln_path_remove(dir, &err), KILN_OK);
}

static void test_errors_keep_status_and_grow_in_front(void **unused)
{
    const KilnOrigin origin = { .source = "conf/a.yaml", .line = 3, .column = 5 };
    char *text = malloc(3000);
    KilnError err = { 0 };

    (void)unused;
    assert_non_null(text);
    assert_int_equal(kiln_error_set(&err, KILN_E_RANGE, "%d is too large", 7), KILN_E_RANGE);
    assert_int_equal(kiln_error_prefix(&err, "model.%s: ", "depth"), KILN_E_RANGE);
    assert_int_equal(kiln_error_at(&err, &origin), KILN_E_RANGE);
    assert_string_equal(err.text, "conf/a.yaml:3:5: model.depth: 7 is too large");
    memset(text, 'x', 2999);
    text[2999] = '\0';
    kiln_error_set(&err, KILN_E_IO, "%s", text);
    kiln_error_prefix(&err, "in front: ");
    assert_int_equal(strlen(err.text), KILN_ERROR_TEXT - 1);
    assert_true(kiln_starts_with(err.text, "in front: xxx"));
    assert_int_equal(kiln_error_set(NULL, KILN_E_IO, "nobody listens"), KILN_E_IO);
    free(text);
}

static void test_array_grows(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(KILN_RESERVE(items, capacity, (size_t)i + 1));
        assert_int_equal(items[i], 0);
        items[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    assert_false(KILN_RESERVE(items, capacity, SIZE_MAX / 2)); /* as before, then */
    assert_int_equal(items[999], 999);
    free(items);

    KilnArena arena = { 0 };
    double *values = NULL;
    size_t room = 0;
    for (int i = 0; i < 100; i++) {
        assert_true(KILN_ARENA_RESERVE(&arena, values, room, (size_t)i + 1));
        values[i] = i;
    }
    for (int i = 0; i < 100; i++)
        assert_true(values[i] == i);
    kiln_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array_grows),
        cmocka_unit_test(test_parse_f64),
        cmocka_unit_test(test_parse_i64),
        cmocka_unit_test(test_parse_duration),
        cmocka_unit_test(test_parse_size),
        cmocka_unit_test(test_format_f64_reads_back),
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_rng_streams_and_ranges),
        cmocka_unit_test(test_arena_reuses_its_chunks),
        cmocka_unit_test(test_nearest_name),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_errors_keep_status_and_grow_in_front),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
