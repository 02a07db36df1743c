/* Rows of all formats, whole and damaged. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "kiln/files/text_records.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

static void put_text(const char *name, const char *text)
{
    fixture_put(name, text, strlen(text));
}

/* Open one file with the format of its name. */
static KilnStatus open_as(KilnRecordFormat format, const char *name, const char *const *columns,
                          size_t n_columns, KilnRecords **ret, KilnError *err)
{
    const char *path = fixture_path(name);

    return kiln_records_open(&(KilnRecordsSpec) { .paths = &path,
                                                  .n_paths = 1,
                                                  .format = format,
                                                  .columns = columns,
                                                  .n_columns = n_columns },
                             ret, err);
}

static KilnRecords *opened(KilnRecordFormat format, const char *name)
{
    KilnRecords *records = NULL;
    KilnError err = { 0 };

    if (open_as(format, name, NULL, 0, &records, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    return records;
}

/* One column of one row, or its message. */
static const char *value(const KilnRecords *records, int64_t row, const char *column)
{
    static char text[KILN_ERROR_TEXT];
    KilnRecord record = { 0 };
    KilnError err = { 0 };
    size_t number = 0;

    if (kiln_records_column(records, column, &number, &err) < 0 ||
        kiln_records_read(records, row, &number, 1, &record, &err) < 0)
        snprintf(text, sizeof(text), "%s", err.text);
    else
        snprintf(text, sizeof(text), "%.*s", (int)record.fields[0].length, record.fields[0].data);
    kiln_record_release(&record);
    return text;
}

static void assert_message(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, text);
}

static void test_csv(void **unused)
{
    char place[256];

    (void)unused;
    put_text("a.csv", "\xef\xbb\xbflabel,text\r\n1,\"a, \"\"b\"\"\nc\"\r\n\r\n2,plain \"q\"\r\n3,");
    KilnRecords *records = opened(KILN_RECORDS_AUTO, "a.csv");
    assert_int_equal(kiln_records_count(records), 3);
    assert_string_equal(value(records, 0, "text"), "a, \"b\"\nc");
    assert_string_equal(value(records, 0, "label"), "1");
    assert_string_equal(value(records, 1, "text"), "plain \"q\"");
    assert_string_equal(value(records, 2, "text"), "");
    assert_message(kiln_records_location(records, 1, place, sizeof(place)), "a.csv:5");
    assert_message(value(records, 0, "txt"), "did you mean \"text\"?");
    kiln_records_close(records);
}

static void test_bad_csv(void **unused)
{
    KilnRecords *records = NULL;
    KilnError err = { 0 };

    (void)unused;
    put_text("ragged.csv", "a,b\n1,2\n1,2,3\n4\n");
    records = opened(KILN_RECORDS_AUTO, "ragged.csv");
    assert_string_equal(value(records, 0, "b"), "2");
    assert_message(value(records, 1, "b"), "ragged.csv:3: the row has 3 columns; expected 2");
    assert_message(value(records, 2, "a"), "ragged.csv:4: the row has 1 column; expected 2");
    kiln_records_close(records);

    put_text("open.csv", "a,b\n1,2\n3,\"4\n5,6\n");
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "open.csv", NULL, 0, &records, &err),
                     KILN_E_FORMAT);
    assert_message(err.text, "open.csv:3: a quote in this row is never closed");
    put_text("missing.csv", "a,b\n\"1,2\n\"3\",4\n5,6\n");
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "missing.csv", NULL, 0, &records, &err),
                     KILN_E_FORMAT);
    assert_message(err.text, "missing.csv:3: text after a quoted field that begins in line 2;");
    put_text("lenient.csv", "a,b\n\"1\"x,\"2\n3\"\n");
    records = opened(KILN_RECORDS_AUTO, "lenient.csv");
    assert_string_equal(value(records, 0, "a"), "1x");
    assert_string_equal(value(records, 0, "b"), "2\n3");
    kiln_records_close(records);

    fixture_put("nul.csv", "a\nx\0y\nz\n", 9);
    records = opened(KILN_RECORDS_AUTO, "nul.csv");
    assert_message(value(records, 0, "a"), "nul.csv:2: byte 3 of the file is NUL");
    assert_string_equal(value(records, 1, "a"), "z");
    kiln_records_close(records);

    put_text("empty.csv", "");
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "empty.csv", NULL, 0, &records, &err),
                     KILN_E_FORMAT);
    fixture_put("wide.csv", "\xff\xfe\x61\0\n\0", 6);
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "wide.csv", NULL, 0, &records, &err),
                     KILN_E_FORMAT);
    assert_message(err.text, "UTF-16");
}

static void test_encodings(void **unused)
{
    const char *path = NULL;
    KilnRecords *records = NULL;

    (void)unused;
    put_text("latin.txt", "caf\xe9\nna\xc3\xafve\n");
    records = opened(KILN_RECORDS_LINES, "latin.txt");
    assert_message(value(records, 0, "text"),
                   "latin.txt:1: byte 3 of the file (0xe9) is not UTF-8");
    assert_string_equal(value(records, 1, "text"), "na\xc3\xafve");
    kiln_records_close(records);
    path = fixture_path("latin.txt");
    assert_int_equal(
        kiln_records_open(
            &(KilnRecordsSpec) { .paths = &path, .n_paths = 1, .encoding = KILN_LATIN1 }, &records,
            NULL),
        KILN_OK);
    assert_string_equal(value(records, 0, "text"), "caf\xc3\xa9");
    kiln_records_close(records);
}

static void test_tsv_without_header(void **unused)
{
    static const char *const columns[] = { "text", "label" };
    KilnRecords *records = NULL;

    (void)unused;
    put_text("a.tsv", "\"a\" film\t1\nb\t0");
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "a.tsv", columns, 2, &records, NULL), KILN_OK);
    assert_int_equal(kiln_records_count(records), 2);
    assert_string_equal(value(records, 0, "text"), "\"a\" film");
    assert_string_equal(value(records, 1, "label"), "0");
    kiln_records_close(records);
}

static void test_jsonl(void **unused)
{
    (void)unused;
    put_text("a.jsonl", "{\"text\": \"\\u00e9\\n\", \"n\": 2, \"tags\": [\"x\", \"y\"]}\r\n\n"
                        "{\"text\": null}\nnot json\n[1]\n{\"text\": {\"a\": 1}}\n");
    KilnRecords *records = opened(KILN_RECORDS_AUTO, "a.jsonl");
    assert_int_equal(kiln_records_count(records), 5);
    assert_string_equal(value(records, 0, "text"), "\xc3\xa9\n");
    assert_string_equal(value(records, 0, "n"), "2");
    assert_string_equal(value(records, 0, "tags"), "x\x1fy\x1f");
    assert_message(value(records, 1, "text"), "a.jsonl:3: \"text\" is missing");
    assert_message(value(records, 2, "text"), "a.jsonl:4: not JSON");
    assert_message(value(records, 3, "text"), "a.jsonl:5: not a JSON object");
    assert_message(value(records, 4, "text"), "a.jsonl:6: \"text\" is an object");
    kiln_records_close(records);
}

/* The objects of one list, on any number of lines, are rows like those of JSON lines. */
static void test_json_list(void **unused)
{
    (void)unused;
    put_text("a.json",
             "\xef\xbb\xbf\n[{\"text\": \"\\\"], [{\", \"n\": 2,\n  \"tags\": [\"x\", \"y\"]} ,\r\n"
             "{\"text\": null}, [1, {}], {\"text\":\n 1e}\n, 7]\n\n");
    KilnRecords *records = opened(KILN_RECORDS_AUTO, "a.json");
    assert_int_equal(kiln_records_format(records), KILN_RECORDS_JSONL);
    assert_int_equal(kiln_records_count(records), 5);
    assert_string_equal(value(records, 0, "text"), "\"], [{");
    assert_string_equal(value(records, 0, "tags"), "x\x1fy\x1f");
    assert_message(value(records, 1, "text"), "a.json:4: \"text\" is missing");
    assert_message(value(records, 2, "text"), "a.json:4: not a JSON object");
    assert_message(value(records, 3, "text"), "a.json:5: not JSON");
    assert_message(value(records, 4, "text"), "a.json:6: not a JSON object");
    kiln_records_close(records);
    put_text("a.json", "{\"n\": 1}\n{\"n\": 2}\n");
    records = opened(KILN_RECORDS_AUTO, "a.json");
    assert_int_equal(kiln_records_count(records), 2);
    kiln_records_close(records);
    put_text("a.json", " [\n] \n");
    records = opened(KILN_RECORDS_AUTO, "a.json");
    assert_int_equal(kiln_records_count(records), 0);
    kiln_records_close(records);
}

static void test_wrong_json_lists(void **unused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "[", "a.json:1: the list is not closed: the file ends in its value 1" },
        { "[{\"a\": 1},\n{\"a\": \"x",
          "a.json:2: the list is not closed: the file ends in its value 2" },
        { "[{\"a\": 1},\n\n{\"a\": [", "a.json:3: the list is not closed" },
        { "[{\"a\": \"\\", "a.json:1: the list is not closed" },
        { "[{},\n]", "a.json:2: expected a value of the list" },
        { "[,{}]", "a.json:1: expected a value of the list" },
        { "[{}]\n[{}]", "a.json:2: text after the end of the list" },
        { "{\"n\": 1,\n\"rows\": [{\"a\": 1}]}",
          "a.json: one JSON object; expected a list of objects, or an object in "
          "each line. If its rows are in \"rows\": jq '.\"rows\"' " },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KilnRecords *records = NULL;
        KilnError err = { 0 };

        put_text("a.json", cases[i].text);
        assert_int_equal(open_as(KILN_RECORDS_AUTO, "a.json", NULL, 0, &records, &err),
                         KILN_E_FORMAT);
        assert_message(err.text, cases[i].says);
    }
}

static void test_labeled(void **unused)
{
    (void)unused;
    put_text("a.txt", "DESC:manner How ?\n__label__a  __label__b x  y \r\n\n__label__c\n");
    KilnRecords *records = opened(KILN_RECORDS_LABEL_FIRST, "a.txt");
    assert_string_equal(value(records, 0, "label"), "DESC:manner");
    assert_string_equal(value(records, 0, "text"), "How ?");
    assert_string_equal(value(records, 1, "label"), "__label__a");
    kiln_records_close(records);
    records = opened(KILN_RECORDS_LABELED, "a.txt");
    assert_int_equal(kiln_records_count(records), 3);
    assert_message(value(records, 0, "label"), "a.txt:1: the line does not begin with __label__");
    assert_string_equal(value(records, 1, "label"), "a\x1f"
                                                    "b\x1f");
    assert_string_equal(value(records, 1, "text"), "x  y");
    assert_string_equal(value(records, 2, "text"), "");
    kiln_records_close(records);
}

static void test_conll(void **unused)
{
    KilnString list = { "x\x1fy z\x1f", 6 }, item;

    (void)unused;
    put_text("a.conll", "-DOCSTART- O\n\nNew\tB-loc\nYork\tI-loc\r\n\n\n\nHi\tO\nthere\nA\tB\n");
    KilnRecords *records = opened(KILN_RECORDS_AUTO, "a.conll");
    assert_int_equal(kiln_records_count(records), 2);
    assert_string_equal(value(records, 0, "0"), "New\x1fYork\x1f");
    assert_string_equal(value(records, 0, "1"), "B-loc\x1fI-loc\x1f");
    assert_message(value(records, 1, "0"), "a.conll:9: the line has 1 column; expected 2");
    kiln_records_close(records);
    assert_true(kiln_record_next_item(&list, &item));
    assert_true(item.length == 1 && item.data[0] == 'x');
    assert_true(kiln_record_next_item(&list, &item));
    assert_true(item.length == 3 && memcmp(item.data, "y z", 3) == 0);
    assert_false(kiln_record_next_item(&list, &item));
}

static void test_parallel(void **unused)
{
    const char *paths[2];
    KilnRecordsSpec spec = { .paths = paths, .n_paths = 2, .format = KILN_RECORDS_PARALLEL };
    KilnRecords *records = NULL;
    KilnError err = { 0 };

    (void)unused;
    put_text("t.de", "eins\n\ndrei");
    put_text("t.en", "one\ntwo\nthree\n");
    paths[0] = fixture_path("t.de");
    paths[1] = fixture_path("t.en");
    assert_int_equal(kiln_records_open(&spec, &records, &err), KILN_OK);
    assert_int_equal(kiln_records_count(records), 3);
    assert_string_equal(value(records, 1, "de"), "");
    assert_string_equal(value(records, 2, "de"), "drei");
    assert_string_equal(value(records, 2, "en"), "three");
    kiln_records_close(records);
    put_text("t.en", "one\ntwo\n");
    assert_int_equal(kiln_records_open(&spec, &records, &err), KILN_E_FORMAT);
    assert_message(err.text, "t.de has 3 lines, but ");
    assert_message(err.text, "t.en has 2");
}

static void test_folders(void **unused)
{
    (void)unused;
    put_text("classes/neg/1.txt", "bad\nfilm");
    put_text("classes/pos/2.txt", "\xef\xbb\xbfgood");
    put_text("classes/pos/.hidden", "x");
    KilnRecords *records = opened(KILN_RECORDS_AUTO, "classes");
    assert_int_equal(kiln_records_count(records), 2);
    assert_string_equal(value(records, 0, "label"), "neg");
    assert_string_equal(value(records, 0, "text"), "bad\nfilm");
    assert_string_equal(value(records, 1, "text"), "good");
    kiln_records_close(records);
}

static void test_several_files(void **unused)
{
    const char *paths[2];
    KilnRecordsSpec spec = { .paths = paths, .n_paths = 2 };
    KilnRecords *records = NULL;
    KilnError err = { 0 };
    char place[256];

    (void)unused;
    put_text("1.csv", "a,b\n1,2\n");
    put_text("2.csv", "a,b\n3,4\n5,6\n");
    paths[0] = fixture_path("1.csv");
    paths[1] = fixture_path("2.csv");
    assert_int_equal(kiln_records_open(&spec, &records, &err), KILN_OK);
    assert_int_equal(kiln_records_count(records), 3);
    assert_string_equal(value(records, 2, "b"), "6");
    assert_message(kiln_records_location(records, 2, place, sizeof(place)), "2.csv:3");
    kiln_records_close(records);
    put_text("2.csv", "a,c\n3,4\n");
    assert_int_equal(kiln_records_open(&spec, &records, &err), KILN_E_FORMAT);
    assert_message(err.text, "2.csv:1: its header differs from that of ");
}

/* ---- Compressed and large files ---------------------------------------------------------------
 */

static void put_gzip(const char *name, const char *text, size_t cut)
{
    unsigned char packed[4096];
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)text,
                        .avail_in = (uInt)strlen(text),
                        .next_out = packed,
                        .avail_out = sizeof(packed) };

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    fixture_put(name, packed, stream.total_out - cut);
    deflateEnd(&stream);
}

static void test_compressed(void **unused)
{
    static const char text[] = "a,b\n1,2\n3,4\n";
    char packed[4096], cache[4096];
    const char *path = NULL;
    KilnRecords *records = NULL;
    KilnError err = { 0 };

    (void)unused;
    put_gzip("a.csv.gz", text, 0);
    const size_t n = ZSTD_compress(packed, sizeof(packed), text, sizeof(text) - 1, 3);
    fixture_put("a.csv.zst", packed, n);
    snprintf(cache, sizeof(cache), "%s", fixture_path("cache"));
    for (int i = 0; i < 4; i++) {
        path = fixture_path(i % 2 == 0 ? "a.csv.gz" : "a.csv.zst");
        assert_int_equal(
            kiln_records_open(
                &(KilnRecordsSpec) { .paths = &path, .n_paths = 1, .cache = i < 2 ? NULL : cache },
                &records, &err),
            KILN_OK);
        assert_string_equal(value(records, 1, "b"), "4");
        kiln_records_close(records);
    }
    put_gzip("cut.csv.gz", text, 6);
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "cut.csv.gz", NULL, 0, &records, &err),
                     KILN_E_FORMAT);
    assert_message(err.text, "damaged gzip file");
    fixture_put("cut.csv.zst", packed, n - 3);
    assert_int_equal(open_as(KILN_RECORDS_AUTO, "cut.csv.zst", NULL, 0, &records, &err),
                     KILN_E_FORMAT);
    assert_message(err.text, "damaged zstd file");
}

/* A row of 100 MB, in a file whose index goes to the cache. */
static void test_large(void **unused)
{
    const size_t size = 100 << 20;
    char *text = malloc(size + 8), cache[4096];
    const char *path = NULL;

    (void)unused;
    assert_non_null(text);
    memset(text, 'x', size);
    memcpy(text + size, "\nshort\n", 7);
    fixture_put("large.txt", text, size + 7);
    free(text);
    snprintf(cache, sizeof(cache), "%s", fixture_path("cache"));
    for (int i = 0; i < 2; i++) {
        KilnRecords *records = NULL;

        path = fixture_path("large.txt");
        assert_int_equal(
            kiln_records_open(&(KilnRecordsSpec) { .paths = &path, .n_paths = 1, .cache = cache },
                              &records, NULL),
            KILN_OK);
        assert_int_equal(kiln_records_count(records), 2);
        assert_message(value(records, 0, "text"), "large.txt:1: the row has 104857601 bytes");
        assert_string_equal(value(records, 1, "text"), "short");
        kiln_records_close(records);
    }
}

/* ---- Threads and random bytes ------------------------------------------------------------------
 */

static void *read_all(void *arg)
{
    const KilnRecords *records = arg;
    const size_t column = 1;
    KilnRecord record = { 0 };
    char want[32];
    bool good = true;

    for (int64_t i = 0; i < kiln_records_count(records); i++) {
        snprintf(want, sizeof(want), "text %lld", (long long)i);
        good = kiln_records_read(records, i, &column, 1, &record, NULL) >= 0 &&
               record.fields[0].length == strlen(want) &&
               memcmp(record.fields[0].data, want, strlen(want)) == 0 && good;
    }
    kiln_record_release(&record);
    return good ? arg : NULL;
}

/* Rows of a file of several MiB, which threads look at in pieces: fields with line ends inside,
 * also much longer than a piece, blank lines, and a quote that is never closed. */
static void test_rows_over_pieces(void **unused)
{
    enum { ROWS = 40000, LONG_ROW = 17000, LONG_LINES = 200000 };
    char *text = malloc((size_t)16 << 20);
    size_t n = 0;
    const char *path = fixture_path("pieces.csv");
    KilnRecords *records = NULL;
    KilnError err = { 0 };
    char want[128];

    (void)unused;
    assert_non_null(text);
    n += (size_t)sprintf(text, "a,b\n");
    for (int i = 0; i < ROWS; i++) {
        n += (size_t)sprintf(text + n, "%d,\"x\n", i);
        for (int line = 0; line < (i == LONG_ROW ? LONG_LINES : i % 7); line++)
            n += (size_t)sprintf(text + n, "1,\"\"%d\"\"\n", line);
        n +=
            (size_t)sprintf(text + n, "%.*s\"\n%s", i % 100,
                            "0123456789012345678901234567890123456789012345678901234567890123456789"
                            "012345678901234567890123456789",
                            i % 11 == 0 ? "\n" : "");
    }
    fixture_put("pieces.csv", text, n);
    records = opened(KILN_RECORDS_CSV, "pieces.csv");
    assert_int_equal(kiln_records_count(records), ROWS);
    int64_t line = 2;
    for (int i = 0; i < ROWS; i++) {
        char place[512], expected[512];

        snprintf(want, sizeof(want), "%d", i);
        assert_string_equal(value(records, i, "a"), want);
        snprintf(expected, sizeof(expected), "%s:%lld", path, (long long)line);
        assert_string_equal(kiln_records_location(records, i, place, sizeof(place)), expected);
        line += 2 + (i == LONG_ROW ? LONG_LINES : i % 7) + (i % 11 == 0);
    }
    kiln_records_close(records);
    n += (size_t)sprintf(text + n, "7,\"open\n");
    fixture_put("pieces.csv", text, n);
    assert_true(open_as(KILN_RECORDS_CSV, "pieces.csv", NULL, 0, &records, &err) < 0);
    snprintf(want, sizeof(want), "pieces.csv:%lld: a quote", (long long)line);
    assert_message(err.text, want);
    n += (size_t)sprintf(text + n, "\"8\",9\n");
    fixture_put("pieces.csv", text, n);
    assert_true(open_as(KILN_RECORDS_CSV, "pieces.csv", NULL, 0, &records, &err) < 0);
    snprintf(want, sizeof(want),
             "pieces.csv:%lld: text after a quoted field that begins in line "
             "%lld",
             (long long)line + 1, (long long)line);
    assert_message(err.text, want);
    free(text);
}

static void test_threads(void **unused)
{
    enum { ROWS = 5000, THREADS = 4 };
    char *text = malloc(ROWS * 32), place[256];
    size_t n = (size_t)sprintf(text, "id,text\n");
    pthread_t threads[THREADS];

    (void)unused;
    for (int i = 0; i < ROWS; i++)
        n += (size_t)sprintf(text + n, "%d,text %d\n", i, i);
    fixture_put("many.csv", text, n);
    free(text);
    KilnRecords *records = opened(KILN_RECORDS_AUTO, "many.csv");
    assert_message(kiln_records_location(records, 4321, place, sizeof(place)), "many.csv:4323");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, records), 0);
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;

        pthread_join(threads[i], &good);
        assert_non_null(good);
    }
    kiln_records_close(records);
}

/* Files of random characters that matter to readers: everything is a row or a message. */
static void test_random(void **unused)
{
    static const char alphabet[] = "\n\r\t ,\"\\{}[]:a_1\xc3\xa9\xff\x1f";
    static const KilnRecordFormat formats[] = { KILN_RECORDS_CSV,   KILN_RECORDS_TSV,
                                                KILN_RECORDS_JSONL, KILN_RECORDS_LABELED,
                                                KILN_RECORDS_LINES, KILN_RECORDS_CONLL };
    char text[64];
    KilnRng rng;

    (void)unused;
    kiln_rng_init(&rng, 7, KILN_RNG_USER, 0, 0);
    for (int i = 0; i < 20000; i++) {
        const KilnRecordFormat format = formats[i % (int)KILN_COUNT(formats)];
        const size_t n = kiln_rng_below(&rng, sizeof(text)), column = 0;
        const size_t wanted = format == KILN_RECORDS_JSONL ? 0 : 1; /* keys may be missing */
        KilnRecords *records = NULL;
        KilnRecord record = { 0 };
        KilnError err = { 0 };

        for (size_t j = 0; j < n; j++)
            text[j] = alphabet[kiln_rng_below(&rng, sizeof(alphabet))];
        fixture_put("random", text, n);
        if (open_as(format, "random", NULL, 0, &records, &err) < 0) {
            assert_true(err.text[0] != '\0');
            continue;
        }
        for (int64_t row = 0; row < kiln_records_count(records); row++)
            if (kiln_records_read(records, row, &column, wanted, &record, &err) < 0)
                assert_message(err.text, "random:");
        kiln_record_release(&record);
        kiln_records_close(records);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_bad_csv),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_tsv_without_header),
        cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_json_list),
        cmocka_unit_test(test_wrong_json_lists),
        cmocka_unit_test(test_labeled),
        cmocka_unit_test(test_conll),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_rows_over_pieces),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
