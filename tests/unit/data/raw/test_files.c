/* Raw samples in .jsonl, .txt and .safetensors files, whole and damaged. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/raw/raw_input.h"
#include "kiln/files/safetensors.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

static const char *const png[] = { ".png", NULL };
static const KilnRawField fields[] = {
    { .name = "text", .types = KILN_RAW_TEXT },
    { .name = "image", .types = KILN_RAW_PATH, .optional = true, .endings = png },
    { .name = "x", .types = KILN_RAW_ARRAY | KILN_RAW_NUMBER, .optional = true },
};
enum { TEXT, IMAGE, X, FIELDS };

static KilnStatus open_file(const char *name, const KilnRawField *of, size_t n, KilnRawInput *ret,
                            KilnError *err)
{
    return kiln_raw_input_open(fixture_path(name), of, n, NULL, ret, err);
}

static void put_text(const char *name, const char *text)
{
    fixture_put(name, text, strlen(text));
}

/* The values of sample `index` by field; `raw` must be freed by done. */
static KilnStatus values_of(const KilnRawInput *input, int64_t index, KilnRawSample *raw,
                            KilnRawValue ret[FIELDS], KilnError *err)
{
    KilnStatus status = input->set.get(input->set.ctx, index, raw, err);

    return status < 0 ? status : kiln_raw_match(fields, FIELDS, raw, ret, err);
}

static void test_jsonl(void **unused)
{
    KilnRawInput input = { 0 };
    KilnRawValue values[FIELDS];
    KilnRawSample raw;

    (void)unused;
    put_text("a.jsonl", "\r\n{\"text\": \"\\u00e4\", \"image\": \"b/c.png\", \"x\": 2}\r\n"
                        "{\"more\": [[]], \"text\": \"\", \"image\": \"/d.png\", "
                        "\"x\": [[1, 2, 3], [4, 5, 6]]}\n  \n"
                        "{\"image\": null, \"x\": [1.5, 2], \"text\": \"c\"}");
    assert_int_equal(open_file("a.jsonl", fields, FIELDS, &input, NULL), KILN_OK);
    assert_int_equal(input.set.count, 3);
    assert_string_equal(input.set.name(input.set.ctx, 0), "a.jsonl:2");
    assert_string_equal(input.set.name(input.set.ctx, 2), "a.jsonl:5");
    assert_int_equal(values_of(&input, 0, &raw, values, NULL), KILN_OK);
    assert_string_equal(values[TEXT].text, "\xc3\xa4");
    assert_string_equal(values[IMAGE].text, fixture_path("b/c.png"));
    assert_true(values[X].type == KILN_RAW_NUMBER && values[X].number == 2.0);
    input.set.done(input.set.ctx, &raw);
    assert_int_equal(values_of(&input, 1, &raw, values, NULL), KILN_OK);
    assert_string_equal(values[IMAGE].text, "/d.png");
    assert_true(kiln_shape_equal(&values[X].shape, &KILN_SHAPE(2, 3)));
    assert_int_equal(values[X].dtype, KILN_I32);
    assert_int_equal(((const int32_t *)values[X].data)[5], 6);
    input.set.done(input.set.ctx, &raw);
    assert_int_equal(values_of(&input, 2, &raw, values, NULL), KILN_OK);
    assert_int_equal(values[IMAGE].type, 0);
    assert_int_equal(values[X].dtype, KILN_F32);
    assert_true(((const float *)values[X].data)[0] == 1.5f);
    input.set.done(input.set.ctx, &raw);
    kiln_raw_input_release(&input);
}

static void test_bad_lines(void **unused)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        { "{\"text\": \"a\"", "b.jsonl:1: not JSON: '}' expected" },
        { "{\"text\": \"a\", \"text\": \"b\"}", "duplicate object key" },
        { "\"text\"", "not a JSON object; expected {\"text\": ...}" },
        { "{\"text\": \"\xff\"}", "not JSON: unable to decode byte 0xff" },
        { "{\"text\": \"a\", \"x\": NaN}", "not JSON: " },
        { "{\"text\": \"a\", \"x\": 1e400}", "not JSON: real number overflow" },
        { "{\"text\": \"a\", \"x\": 99999999999999999999}", "not JSON: too big integer" },
        { "{\"text\": \"a\", \"x\": [1, [2]]}", "x: expected a list of numbers" },
        { "{\"text\": \"a\", \"x\": [[1], [2, 3]]}", "x: expected a list of numbers" },
        { "{\"text\": \"a\", \"x\": [\"b\"]}", "x: expected a list of numbers" },
        { "{\"text\": \"a\", \"x\": [[[[[[[1]]]]]]]}", "x: expected a list of numbers" },
        { "{\"text\": \"a\", \"x\": {}}", "x: a JSON object; expected number or array" },
        { "{\"text\": 1}", "text: the value is a number; expected text (text)" },
        { "{}", "text is missing; expected text (text), image (path; optional)" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnRawInput input = { 0 };
        KilnRawValue values[FIELDS];
        KilnRawSample raw = { 0 };
        KilnError err = { 0 };

        put_text("b.jsonl", cases[i].line);
        assert_int_equal(open_file("b.jsonl", fields, FIELDS, &input, &err), KILN_OK);
        assert_true(values_of(&input, 0, &raw, values, &err) < 0);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s: %s", cases[i].line, err.text);
        if (raw.values != NULL)
            input.set.done(input.set.ctx, &raw);
        kiln_raw_input_release(&input);
    }
}

/* Any cut or changed byte is an error or another sample, never a crash. */
static void test_mutations(void **unused)
{
    static const char whole[] = "{\"text\": \"a\\n\xc3\xa4\", \"x\": [[1, 2.5e3], [-3, 4]]}\n";
    char line[sizeof(whole)];

    (void)unused;
    for (size_t i = 0; i < 4 * sizeof(whole); i++) {
        static const char bytes[] = { '\0', '[', '"', '\n' };
        KilnRawInput input = { 0 };
        KilnRawValue values[FIELDS];

        memcpy(line, whole, sizeof(whole));
        line[i / 4] = bytes[i % 4];
        fixture_put("c.jsonl", line, sizeof(whole) - 1);
        if (open_file("c.jsonl", fields, FIELDS, &input, NULL) < 0)
            continue;
        for (int64_t k = 0; k < input.set.count; k++) {
            KilnRawSample raw = { 0 };

            (void)!values_of(&input, k, &raw, values, NULL);
            if (raw.values != NULL)
                input.set.done(input.set.ctx, &raw);
        }
        kiln_raw_input_release(&input);
    }
}

static void test_txt(void **unused)
{
    KilnRawInput input = { 0 };
    KilnRawSample raw;
    KilnError err = { 0 };

    (void)unused;
    fixture_put("a.txt", "one two\r\n\n three\n\xff\nx\0y\nlast", 27);
    assert_int_equal(open_file("a.txt", fields, 1, &input, &err), KILN_OK);
    assert_int_equal(input.set.count, 5);
    assert_int_equal(input.set.get(input.set.ctx, 0, &raw, NULL), KILN_OK);
    assert_string_equal(raw.values[0].text, "one two");
    input.set.done(input.set.ctx, &raw);
    assert_int_equal(input.set.get(input.set.ctx, 1, &raw, NULL), KILN_OK);
    assert_string_equal(raw.values[0].text, " three");
    input.set.done(input.set.ctx, &raw);
    assert_int_equal(input.set.get(input.set.ctx, 2, &raw, &err), KILN_E_FORMAT);
    assert_string_equal(err.text, "a.txt:4: the line is not UTF-8; convert the file");
    assert_int_equal(input.set.get(input.set.ctx, 3, &raw, &err), KILN_E_FORMAT);
    assert_string_equal(err.text, "a.txt:5: the line has a NUL byte; expected text");
    assert_int_equal(input.set.get(input.set.ctx, 4, &raw, NULL), KILN_OK);
    assert_string_equal(raw.values[0].text, "last");
    input.set.done(input.set.ctx, &raw);
    /* The file shrinks while it is open. */
    assert_int_equal(truncate(fixture_path("a.txt"), 3), 0);
    assert_int_equal(input.set.get(input.set.ctx, 4, &raw, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "was truncated while it was read"));
    kiln_raw_input_release(&input);
}

static void test_safetensors(void **unused)
{
    static const KilnRawField row[] = {
        { .name = "x", .types = KILN_RAW_ARRAY },
        { .name = "age", .types = KILN_RAW_NUMBER, .optional = true },
    };
    static const float x[] = { 1, 2, 3, 4, 5, 6 };
    static const int32_t age[] = { 30, 40, 50 };
    KilnStView views[] = {
        { .name = "x", .dtype = KILN_F32, .shape = KILN_SHAPE(3, 2), .data = x },
        { .name = "age", .dtype = KILN_I32, .shape = KILN_SHAPE(3), .data = age },
    };
    KilnRawInput input = { 0 };
    KilnRawValue values[2];
    KilnRawSample raw;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_safetensors_write(fixture_path("a.safetensors"), views, 2, NULL, 0, NULL),
                     KILN_OK);
    assert_int_equal(open_file("a.safetensors", row, 2, &input, &err), KILN_OK);
    assert_int_equal(input.set.count, 3);
    assert_int_equal(input.set.get(input.set.ctx, 2, &raw, NULL), KILN_OK);
    assert_int_equal(kiln_raw_match(row, 2, &raw, values, NULL), KILN_OK);
    assert_true(kiln_shape_equal(&values[0].shape, &KILN_SHAPE(2)));
    assert_true(((const float *)values[0].data)[1] == 6.0f);
    assert_true(values[1].number == 50.0);
    input.set.done(input.set.ctx, &raw);
    kiln_raw_input_release(&input);
    views[1].shape = KILN_SHAPE(2);
    assert_int_equal(kiln_safetensors_write(fixture_path("b.safetensors"), views, 2, NULL, 0, NULL),
                     KILN_OK);
    assert_int_equal(open_file("b.safetensors", row, 2, &input, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "age is [2], but x has 3 samples"));
    /* The only array is that of the only required field. */
    views[0].name = "other";
    assert_int_equal(kiln_safetensors_write(fixture_path("c.safetensors"), views, 1, NULL, 0, NULL),
                     KILN_OK);
    assert_int_equal(open_file("c.safetensors", row, 2, &input, &err), KILN_OK);
    kiln_raw_input_release(&input);
    views[1].shape = KILN_SHAPE(3);
    assert_int_equal(kiln_safetensors_write(fixture_path("d.safetensors"), views, 2, NULL, 0, NULL),
                     KILN_OK);
    assert_int_equal(open_file("d.safetensors", row, 2, &input, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "has no array \"x\", only other, age; expected arrays whose "
                                     "first axis is the samples: x (array), age (number; "
                                     "optional)"));
}

static void test_refused(void **unused)
{
    KilnRawInput input = { 0 };
    KilnError err = { 0 };

    (void)unused;
    put_text("note.md", "x");
    assert_int_equal(open_file("note.md", fields, 1, &input, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text,
                           "note.md: is no kind of file that has samples; expected a "
                           ".jsonl or .json file (a JSON object per line, or a list of them), a "
                           ".csv, .tsv or .parquet "
                           "file (the header has the names), a .txt file (a sample per line) "
                           "with text (text)"));
    assert_int_equal(open_file(".", &fields[X], 1, &input, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "is a folder, and samples are no files here; expected a "
                                     ".jsonl or .json file (a JSON object per line, or a list of "
                                     "them), a .csv, .tsv or .parquet "
                                     "file (the header has the names), a .safetensors file"));
}

static void test_json_list(void **unused)
{
    KilnRawInput input = { 0 };
    KilnRawSample sample;
    KilnError err = { 0 };

    (void)unused;
    put_text("a.json", "[{\"text\": \"a\"},\n\n {\"text\": 3},\n7]\n");
    assert_int_equal(open_file("a.json", fields, FIELDS, &input, &err), KILN_OK);
    assert_int_equal(input.set.count, 3);
    assert_string_equal(input.set.name(input.set.ctx, 1), "a.json:3");
    assert_int_equal(input.set.get(input.set.ctx, 0, &sample, &err), KILN_OK);
    assert_string_equal(sample.values[0].text, "a");
    input.set.done(input.set.ctx, &sample);
    assert_int_equal(input.set.get(input.set.ctx, 2, &sample, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "a.json:4: not a JSON object"));
    kiln_raw_input_release(&input);
    put_text("a.json", "[{\"text\": \"a\"}");
    assert_int_equal(open_file("a.json", fields, FIELDS, &input, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "a.json:1: the list is not closed"));
    put_text("a.json", "{\"text\": \"a\"}\n");
    assert_int_equal(open_file("a.json", fields, FIELDS, &input, &err), KILN_OK);
    assert_int_equal(input.set.count, 1);
    kiln_raw_input_release(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jsonl),     cmocka_unit_test(test_json_list),
        cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_txt),       cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
