/* The check of a sample's description: types, ids and their names. */
#include <string.h>

#include "kiln/data.h"
#include "tests/support/cmocka.h"

static const char *const colours[] = { "red", "green" };
static const char *const others[] = { "red", "blue" };
static const char *const unnamed[] = { "red", NULL };

#define ROW .name = "row", .content = KILN_ROW, .shape = { 1, { 2 } }

static KilnStatus check(const KilnFeature *feature, int64_t n_classes, KilnError *err)
{
    const KilnDataSpec spec = {
        .features = feature,
        .n_features = 1,
        .n_classes = n_classes,
        .class_names = n_classes > 0 ? colours : NULL,
    };

    return kiln_spec_check(&spec, err);
}

static void test_ids_are_checked(void **unused)
{
    static const KilnRowColumn numbers[] = { { .name = "a" }, { .name = "b" } };
    static const KilnRowColumn mixed[] = { { .name = "a" },
                                           { .name = "b", .n_ids = 2, .id_names = colours } };
    static const KilnRowColumn nameless[] = { { .name = "a" }, { .n_ids = 2 } };
    static const KilnRowColumn half[] = { { .name = "a", .n_ids = 2, .id_names = unnamed },
                                          { .name = "b" } };
    static const struct {
        KilnFeature feature;
        int64_t n_classes;
        const char *message; /* NULL: valid */
    } cases[] = {
        { { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 }, 2, NULL },
        { { .name = "label",
            .content = KILN_LABEL,
            .dtype = KILN_I32,
            .n_ids = 2,
            .id_names = colours },
          2,
          NULL },
        { { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .n_ids = 3 },
          2,
          "feature \"label\" has 3 ids, but the data have 2 classes" },
        { { .name = "label",
            .content = KILN_LABEL,
            .dtype = KILN_I32,
            .n_ids = 2,
            .id_names = others },
          2,
          "id 1 is called \"blue\", but the class is called \"green\"" },
        { { .name = "tag",
            .content = KILN_LABEL,
            .dtype = KILN_I32,
            .n_ids = 2,
            .id_names = unnamed },
          0,
          "feature \"tag\": id 1 has no name" },
        { { .name = "x", .content = KILN_LABEL, .n_ids = 2 }, 0, "has 2 ids and is f32" },
        { { .name = "x", .content = KILN_LABEL, .dtype = KILN_I32, .n_ids = -1 }, 0, "has -1 ids" },
        { { ROW, .columns = numbers }, 0, NULL },
        { { ROW, .dtype = KILN_I32, .columns = mixed }, 0, NULL },
        { { ROW, .columns = mixed }, 0, "column \"b\" of feature \"row\" has 2 ids and is f32" },
        { { ROW, .dtype = KILN_I32, .columns = nameless },
          0,
          "column 1 of feature \"row\" has no name" },
        { { ROW, .dtype = KILN_I32, .columns = half },
          0,
          "column \"a\" of feature \"row\": id 1 has no name" },
        { { .name = "v", .content = KILN_VECTOR, .shape = { 1, { 2 } }, .columns = numbers },
          0,
          "only a row has columns" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        const KilnStatus status = check(&cases[i].feature, cases[i].n_classes, &err);

        assert_int_equal(status, cases[i].message != NULL ? KILN_E_SHAPE : KILN_OK);
        if (cases[i].message != NULL && strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, err.text);
    }
}

static void test_classes_need_names(void **unused)
{
    const KilnDataSpec spec = { .n_classes = 2 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_spec_check(&spec, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "the 2 classes of the data have no names"));
}

static void test_ids_of_features(void **unused)
{
    static const KilnFeature features[] = {
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        { .name = "tag",
          .content = KILN_LABEL,
          .dtype = KILN_I32,
          .shape = { 1, { 3 } },
          .n_ids = 2,
          .id_names = others },
        { .name = "x", .content = KILN_VECTOR, .shape = { 1, { 3 } } },
    };
    const KilnDataSpec spec = {
        .features = features, .n_features = 3, .n_classes = 2, .class_names = colours
    };
    const char *const *names;

    (void)unused;
    assert_int_equal(kiln_spec_check(&spec, NULL), KILN_OK);
    assert_int_equal(kiln_spec_ids(&spec, &features[0], &names), 2);
    assert_ptr_equal(names, colours);
    assert_int_equal(kiln_spec_ids(&spec, &features[1], &names), 2);
    assert_ptr_equal(names, others);
    assert_int_equal(kiln_spec_ids(&spec, &features[2], &names), 0);
    assert_null(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_checked),
        cmocka_unit_test(test_classes_need_names),
        cmocka_unit_test(test_ids_of_features),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
