/* The datamodule libsvm: lines, features of its samples, side files, held-out queries, what it
 * saves. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kiln/files/libsvm.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

static void test_lines(void **unused)
{
    static const struct {
        const char *text, *message; /* NULL: it is good */
        int n;
    } cases[] = {
        { "1 1:0.5 7:-2e3", NULL, 2 },
        { "-1.5 qid:3 0:1 # note 9:9", NULL, 1 },
        { "2", NULL, 0 },
        { "3:nan 4:1", NULL, 2 },
        { " \t+1\t2:3 \r", NULL, 1 },
        { "1 1:1 1:2", "indices must ascend", 0 },
        { "1 x:1", "\"x:1\" is no INDEX:VALUE", 0 },
        { "1 1:", "is no INDEX:VALUE", 0 },
        { "1 -2:1", "is no INDEX:VALUE", 0 },
        { "1 99999999999:1", "is no INDEX:VALUE", 0 },
        { "1 1:1e39", "is no INDEX:VALUE", 0 },
        { "nan 1:1", "is no label", 0 },
        { "1 2 3:1", "\"2\" is no INDEX:VALUE", 0 },
        { "1 qid:-1 1:1", "is no query", 0 },
        { "1 qid:1 qid:2", "once", 0 },
        { "1111111111111111111111111111111111111111111111111111111111111111111111", "too long", 0 },
    };
    KilnLibsvmRow row = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const KilnString line = { cases[i].text, strlen(cases[i].text) };
        KilnError err = { 0 };
        const KilnStatus status = kiln_libsvm_parse(line, &row, &err);

        if ((status >= 0) != (cases[i].message == NULL) ||
            (status >= 0 ? row.n != cases[i].n : strstr(err.text, cases[i].message) == NULL))
            fail_msg("\"%s\": status %d, %lld values: %s", cases[i].text, (int)status,
                     (long long)row.n, err.text);
    }
    kiln_libsvm_row_release(&row);
}

static KilnStatus open_rows(const char *text, const char *more, Built *ret, KilnError *err)
{
    const KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = 1 };
    char options[512];

    fixture_put("rows.svm", text, strlen(text));
    snprintf(options, sizeof(options), "files: { train: ['%s'] }, val_fraction: 0.5%s",
             fixture_path("rows.svm"), more);
    return open_data("libsvm", options, &context, ret, err);
}

static KilnDataSpec spec_of(const Built *built)
{
    KilnDataSpec spec;

    assert_int_equal(data_ops(built)->spec(built->instance, &spec, NULL), KILN_OK);
    return spec;
}

static void test_samples(void **unused)
{
    Built built;
    KilnError err = { 0 };
    float x[3];
    int32_t label = 9;
    void *data[] = { x, &label };

    (void)unused;
    assert_int_equal(
        open_rows("+1 1:2 3:4\n-1 2:1\n\n# nothing\n+1 3:1\n-1 1:1\n", "", &built, &err), KILN_OK);
    const KilnDataSpec spec = spec_of(&built);
    assert_int_equal(spec.n_features, 2);
    assert_int_equal(spec.features[0].shape.dim[0], 3);
    assert_int_equal(spec.n_classes, 2);
    assert_string_equal(spec.class_names[0], "-1");
    const KilnDataset train = open_split(&built, KILN_TRAIN), val = open_split(&built, KILN_VAL);
    assert_int_equal(train.count, 2);
    assert_int_equal(val.count, 2);
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(train.get(train.ctx, i, NULL, &(KilnSample) { .data = data }, &err),
                         KILN_OK);
        assert_true(label == 0 || label == 1);
        assert_int_equal(train.label(train.ctx, i), label);
        assert_non_null(strstr(train.name(train.ctx, i), "rows.svm:"));
        assert_true(isnan(x[0]) || isnan(x[1]));
    }
    built_free(&built);
    assert_int_equal(open_rows("1.5 1:2\n2 1:3\n", ", absent: zero, first_index: 0", &built, &err),
                     KILN_OK);
    assert_string_equal(spec_of(&built).features[1].name, "target");
    assert_int_equal(spec_of(&built).features[0].shape.dim[0], 2);
    built_free(&built);
}

static void test_queries_and_side_files(void **unused)
{
    static const char queries[] = "2\n1\n3\n", weights[] = "1\n1\n1\n2\n2\n2\n";
    Built built;
    KilnError err = { 0 };
    float x[1], target, weight;
    int32_t query, last = -1;
    void *data[] = { x, &target, &query, &weight };
    int64_t rows = 0;

    (void)unused;
    fixture_put("rows.svm.query", queries, sizeof(queries) - 1);
    fixture_put("rows.svm.weight", weights, sizeof(weights) - 1);
    assert_int_equal(open_rows("0 1:1\n1 1:2\n0 1:3\n2 1:4\n0 1:5\n1 1:6\n", "", &built, &err),
                     KILN_OK);
    assert_int_equal(spec_of(&built).n_features, 4);
    for (int split = KILN_TRAIN; split <= KILN_VAL; split++) {
        const KilnDataset set = open_split(&built, (KilnSplit)split);

        rows += set.count;
        for (int64_t i = 0; i < set.count; i++) {
            assert_int_equal(set.get(set.ctx, i, NULL, &(KilnSample) { .data = data }, &err),
                             KILN_OK);
            assert_int_equal(query, x[0] < 3 ? 0 : x[0] < 4 ? 1 : 2);
            assert_true(weight == (x[0] < 4 ? 1.0f : 2.0f));
            assert_true(i == 0 || query >= last);
            last = query;
        }
    }
    assert_int_equal(rows, 6);
    built_free(&built);
    assert_int_equal(open_rows("0 1:1\n1 1:2\n", "", &built, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "rows.svm.query:2"));
    assert_int_equal(
        open_rows("0 1:1\n1 1:2\n0 1:3\n2 1:4\n0 1:5\n1 1:6\n0 1:1\n", "", &built, &err),
        KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "for 6 of 7 rows"));
    remove(fixture_path("rows.svm.query"));
    remove(fixture_path("rows.svm.weight"));
}

static void test_what_is_saved(void **unused)
{
    const KilnDataContext context = { .stage = KILN_STAGE_PREDICT, .fitted = fixture_path(".") };
    Built built, again;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(open_rows("5 2:2\n7 4:4\n", "", &built, &err), KILN_OK);
    assert_int_equal(data_ops(&built)->save_preprocessing(built.instance, fixture_path("."), &err),
                     KILN_OK);
    assert_int_equal(open_data("libsvm", "", &context, &again, &err), KILN_OK);
    assert_int_equal(spec_of(&again).features[0].shape.dim[0], 4);
    assert_string_equal(spec_of(&again).class_names[1], "7");
    built_free(&again);
    built_free(&built);
    fixture_put("libsvm.txt", "0 1\n", 4);
    assert_int_equal(open_data("libsvm", "", &context, &again, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "libsvm.txt: is damaged"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_queries_and_side_files),
        cmocka_unit_test(test_what_is_saved),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
