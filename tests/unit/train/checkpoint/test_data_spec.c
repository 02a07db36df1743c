/* The data spec of a checkpoint: what is written is read again, and invalid JSON is refused. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "train/checkpoint/checkpoint.h"

static const char *const words[] = { "the", "cat", "sat" };
static const char *const colours[] = { "red", "green" };
static const KilnRowColumn columns[] = {
    { .name = "age" },
    { .name = "colour", .n_ids = 2, .id_names = colours },
};
static const KilnFeature features[] = {
    { .name = "text",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .shape = { 1, { 9 } },
      .varies = true,
      .pad = 2.0,
      .n_ids = 3,
      .id_names = words },
    { .name = "row",
      .content = KILN_ROW,
      .dtype = KILN_I32,
      .shape = { 1, { 2 } },
      .columns = columns },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
};
static const KilnDataSpec spec = {
    .features = features, .n_features = 3, .n_classes = 2, .class_names = colours
};

static void test_read_what_was_written(void **unused)
{
    json_t *saved = kiln_data_spec_json(&spec);
    KilnArena arena = { 0 };
    KilnDataSpec read;

    (void)unused;
    assert_non_null(saved);
    assert_true(kiln_data_spec_read(saved, &arena, &read));
    assert_int_equal(kiln_spec_check(&read, NULL), KILN_OK);
    assert_int_equal(read.n_features, 3);
    assert_int_equal(read.n_classes, 2);
    assert_string_equal(read.class_names[1], "green");
    assert_true(read.features[0].varies && read.features[0].pad == 2.0);
    assert_int_equal(read.features[0].n_ids, 3);
    assert_string_equal(read.features[0].id_names[2], "sat");
    assert_null(read.features[0].columns);
    assert_null(read.features[1].id_names);
    assert_string_equal(read.features[1].columns[0].name, "age");
    assert_int_equal(read.features[1].columns[0].n_ids, 0);
    assert_null(read.features[1].columns[0].id_names);
    assert_string_equal(read.features[1].columns[1].id_names[1], "green");
    assert_int_equal(read.features[2].content, KILN_LABEL);
    assert_null(read.features[2].id_names);
    kiln_arena_release(&arena);
    json_decref(saved);
}

static void test_invalid_is_refused(void **unused)
{
    static const char *const texts[] = {
        "{\"features\": [{\"dtype\": \"i32\"}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i33\"}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i32\", \"shape\": [-1]}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i32\", \"ids\": -1}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i32\", \"ids\": 2, \"id_names\": "
        "[\"a\"]}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i32\", \"ids\": 1, \"id_names\": [1]}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i32\", \"shape\": [2], \"columns\": []}]}",
        "{\"features\": [{\"name\": \"x\", \"dtype\": \"i32\", \"columns\": [{\"name\": \"a\"}]}]}",
        "{\"classes\": [1]}",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(texts); i++) {
        json_t *saved = json_loads(texts[i], 0, NULL);
        KilnArena arena = { 0 };
        KilnDataSpec read;

        assert_non_null(saved);
        if (kiln_data_spec_read(saved, &arena, &read))
            fail_msg("accepted: %s", texts[i]);
        kiln_arena_release(&arena);
        json_decref(saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_what_was_written),
        cmocka_unit_test(test_invalid_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
