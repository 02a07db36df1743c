/* Rows that trees split: columns, targets, queries; names of metrics; a booster over categories. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/boost.h"
#include "tests/support/cmocka.h"

static const KilnRowColumn numbers[] = { { .name = "age" }, { .name = "size" } };
static const KilnRowColumn kinds[] = { { .name = "colour", .n_ids = 8 } };
static const KilnFeature features[] = {
    { .name = "x",
      .content = KILN_ROW,
      .dtype = KILN_F32,
      .shape = { 1, { 2 } },
      .columns = numbers },
    { .name = "ids",
      .content = KILN_ROW,
      .dtype = KILN_I32,
      .shape = { 1, { 1 } },
      .columns = kinds },
    { .name = "target", .content = KILN_LABEL, .dtype = KILN_F32 },
    { .name = "query", .content = KILN_LABEL, .dtype = KILN_I32 },
    { .name = "weight", .content = KILN_LABEL, .dtype = KILN_F32 },
};
static const KilnDataSpec spec = { .features = features, .n_features = KILN_COUNT(features) };

enum { ROWS = 4 };
static const float age[ROWS] = { 1, NAN, 3, 4 }, size[ROWS] = { 5, 6, 7, 8 };
static const int32_t colour[ROWS] = { 2, -1, 0, 7 };
static const float target[ROWS] = { 0, 1, 2, 0 }, weight[ROWS] = { 1, 2, 3, 4 };

/* A table with other columns in between, and those queries (NULL: none). */
static KilnTable table_of(KilnColumn list[8], const int32_t *queries)
{
    const char *const texts[ROWS] = { NULL };
    const KilnColumn columns[] = {
        { "note", KILN_F32, NULL, texts },    { "age", KILN_F32, age, NULL },
        { "size", KILN_F32, size, NULL },     { "colour", KILN_I32, colour, NULL },
        { "target", KILN_F32, target, NULL }, { "weight", KILN_F32, weight, NULL },
        { "query", KILN_I32, queries, NULL },
    };

    memcpy(list, columns, sizeof(columns));
    return (KilnTable) { .n_rows = ROWS,
                         .columns = list,
                         .n_columns = KILN_COUNT(columns) - (queries == NULL),
                         .label = 4 };
}

static void test_rows(void **unused)
{
    static const int32_t queries[ROWS] = { 5, 5, 9, 9 };
    KilnBoostColumns columns = { 0 };
    KilnBoostRows rows = { 0 };
    KilnColumn list[8];
    KilnError err = { 0 };
    const KilnTable table = table_of(list, queries);

    (void)unused;
    assert_int_equal(kiln_boost_columns_init(&spec, &columns, &err), KILN_OK);
    assert_int_equal(columns.n, 3);
    assert_string_equal(columns.names[2], "colour");
    assert_true(columns.categories[2] && !columns.categories[0] && columns.named);
    assert_int_equal(kiln_boost_column(&columns, "size"), 1);
    assert_int_equal(kiln_boost_column(&columns, "none"), -1);
    assert_int_equal(kiln_boost_rows_init(&spec, &columns, &table, &rows, &err), KILN_OK);
    assert_true(rows.values[0] == 1.0f && isnan(rows.values[3]) && isnan(rows.values[5]));
    assert_true(rows.values[11] == 7.0f && rows.targets[2] == 2.0f);
    assert_int_equal(rows.n_groups, 2);
    assert_int_equal(rows.groups[0], 2);
    assert_true(rows.weights[0] == 1.0f && rows.weights[1] == 3.0f); /* of the first rows */
    kiln_boost_rows_release(&rows);
    kiln_boost_columns_release(&columns);
}

static void test_refused(void **unused)
{
    static const int32_t apart[ROWS] = { 5, 9, 5, 9 };
    static const KilnFeature image = {
        .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .shape = { 3, { 2, 2, 1 } }
    };
    const KilnDataSpec images = { .features = &image, .n_features = 1 };
    const KilnDataSpec none = { .features = features + 2, .n_features = 1 };
    KilnBoostColumns columns = { 0 };
    KilnBoostRows rows = { 0 };
    KilnColumn list[8];
    KilnError err = { 0 };
    KilnTable table = table_of(list, apart);

    (void)unused;
    assert_int_equal(kiln_boost_columns_init(&images, &columns, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "\"image\", image"));
    assert_int_equal(kiln_boost_columns_init(&none, &columns, &err), KILN_E_SHAPE);
    assert_int_equal(kiln_boost_columns_init(&spec, &columns, &err), KILN_OK);
    assert_int_equal(kiln_boost_rows_init(&spec, &columns, &table, &rows, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "query 5 are in several places"));
    kiln_boost_rows_release(&rows);
    list[4].data = age; /* a target that is missing */
    assert_int_equal(kiln_boost_rows_init(&spec, &columns, &table, &rows, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "row 2: its target is nan"));
    kiln_boost_rows_release(&rows);
    table.n_columns = 3;
    assert_int_equal(kiln_boost_rows_init(&spec, &columns, &table, &rows, &err), KILN_E_MISSING);
    kiln_boost_rows_release(&rows);
    kiln_boost_columns_release(&columns);
}

static void test_metric_names(void **unused)
{
    static const struct {
        const char *name;
        bool known, higher;
    } cases[] = {
        { "rmse", true, false },   { "auc", true, true },        { "ndcg@5", true, true },
        { "ndcg@5-", true, true }, { "error@0.7", true, false }, { "rmse@2", false, false },
        { "ndcg@", false, false }, { "ndcg@x", false, false },   { "ndcg@5--", false, false },
        { "foo", false, false },   { "", false, false },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        bool higher = false;

        if (kiln_boost_metric(cases[i].name, &higher) != cases[i].known ||
            higher != cases[i].higher)
            fail_msg("%s", cases[i].name);
    }
}

static const KilnRowColumn wide[] = { { .name = "kind", .n_ids = 32 } };
static const KilnFeature kind[] = {
    { .name = "ids",
      .content = KILN_ROW,
      .dtype = KILN_I32,
      .shape = { 1, { 1 } },
      .columns = wide },
    { .name = "target", .content = KILN_LABEL, .dtype = KILN_F32 },
};

/* Categories whose targets no order of the numbers explains. */
static void test_categories(void **unused)
{
    enum { N = 320 };
    const KilnDataSpec kind_spec = { .features = kind, .n_features = 2 };
    KilnBoostColumns columns = { 0 };
    KilnBoostRows rows = { .n = N, .columns = 1 };
    KilnBoostData *data = NULL;
    KilnBooster *booster = NULL;
    KilnError err = { 0 };
    float got[N];

    (void)unused;
    if (kiln_boost_supported(&err) < 0)
        skip();
    assert_int_equal(kiln_boost_columns_init(&kind_spec, &columns, &err), KILN_OK);
    rows.values = malloc(N * sizeof(float));
    rows.targets = malloc(N * sizeof(float));
    for (int i = 0; i < N; i++) {
        rows.values[i] = (float)(i % 32);
        rows.targets[i] = i % 32 * 7 % 3 == 0 ? 1.0f : 0.0f;
    }
    assert_int_equal(kiln_boost_data_new(&columns, &rows, 1, &data, &err), KILN_OK);
    assert_int_equal(kiln_booster_new(data, &booster, &err), KILN_OK);
    assert_int_equal(kiln_booster_set(booster, "tree_method", "hist", &err), KILN_OK);
    assert_int_equal(kiln_booster_set(booster, "max_depth", "1", &err), KILN_OK);
    for (int round = 0; round < 40; round++)
        assert_int_equal(kiln_booster_update(booster, round, data, &err), KILN_OK);
    assert_int_equal(kiln_booster_predict(booster, rows.values, N, 1, true, 1, got, &err), KILN_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(got[i] - rows.targets[i]) < 0.01f);
    /* Rows of another width are an error, not a crash. */
    assert_int_equal(kiln_booster_predict(booster, rows.values, N / 2, 2, true, 1, got, &err),
                     KILN_E_RANGE);
    assert_null(strstr(err.text, "Stack trace"));
    kiln_booster_free(booster);
    kiln_boost_data_free(data);
    kiln_boost_rows_release(&rows);
    kiln_boost_columns_release(&columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_metric_names),
        cmocka_unit_test(test_categories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
