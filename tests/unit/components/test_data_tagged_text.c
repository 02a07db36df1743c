/* The datamodule tagged_text: features of its samples, tags that training lacks, a user's sentence,
 * and what it saves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

static const char train[] = "Ada\tB-per\nlives\tO\nin\tO\nNew\tB-loc\nYork\tI-loc\n\n"
                            "lives\tO\n7\tO\n\nin\tO\nin\tO\n",
                  test[] = "\xc3\x89mile\tB-per\nlives\tO\n\nAda\tB-org\n";

enum { ROOM = 64 };

/* A sample with room for each feature of the spec. */
typedef struct Held {
    int32_t numbers[8][ROOM];
    char *texts[8];
    void *data[8];
    int64_t lengths[8];
    KilnSample sample;
} Held;

static int number_of(const KilnDataSpec *spec, const char *name)
{
    const KilnFeature *feature = kiln_spec_feature(spec, name);

    return feature != NULL ? (int)(feature - spec->features) : -1;
}

static Held *held_new(const KilnDataSpec *spec)
{
    Held *held = calloc(1, sizeof(*held));

    assert_non_null(held);
    for (size_t f = 0; f < spec->n_features; f++)
        held->data[f] = spec->features[f].content == KILN_TEXT ? (void *)&held->texts[f]
                                                               : (void *)held->numbers[f];
    held->sample = (KilnSample) { held->data, held->lengths };
    return held;
}

static void held_free(Held *held)
{
    for (size_t f = 0; f < KILN_COUNT(held->texts); f++)
        free(held->texts[f]);
    free(held);
}

static KilnDataSpec spec_of(const Built *built)
{
    KilnDataSpec spec;

    assert_int_equal(data_ops(built)->spec(built->instance, &spec, NULL), KILN_OK);
    return spec;
}

static void check_numbers(const KilnDataSpec *spec, const Held *held, const char *name,
                          const int32_t *want, size_t n)
{
    const int f = number_of(spec, name);

    assert_true(f >= 0);
    for (size_t i = 0; i < n; i++)
        if (held->numbers[f][i] != want[i])
            fail_msg("%s[%zu] is %d, not %d", name, i, (int)held->numbers[f][i], (int)want[i]);
}

/* Files and the options that read them. */
static KilnStatus open_tagged(const char *more, const char *fitted, KilnStage stage, Built *ret,
                              KilnError *err)
{
    const KilnDataContext context = { .stage = stage, .seed = 1, .fitted = fitted };
    char options[900];

    fixture_put("train.conll", train, sizeof(train) - 1);
    fixture_put("test.conll", test, sizeof(test) - 1);
    snprintf(options, sizeof(options),
             "files: { train: ['%s'], test: ['%s'] }, columns: [text, tags], max_length: 8, "
             "word_length: 4, val_fraction: 0, "
             "tokenizer: { _target_: tokenizer/words, split: white_space, digits: true }%s",
             fixture_path("train.conll"), fixture_path("test.conll"), more);
    return open_data("tagged_text", options, &context, ret, err);
}

static void test_features(void **unused)
{
    static const int32_t spans[] = { 0, 3, 4, 9, 10, 12, 13, 16, 17, 21 };
    static const char *const tags[] = { "B-per", "O", "O", "B-loc", "I-loc" };
    KilnError err = { 0 };
    Built built;

    (void)unused;
    if (open_tagged(", characters: characters, unknown: keep", NULL, KILN_STAGE_FIT, &built, &err) <
        0)
        fail_msg("%s", err.text);
    const KilnDataSpec spec = spec_of(&built);
    assert_int_equal(kiln_spec_check(&spec, &err), KILN_OK);
    const KilnDataset dataset = open_split(&built, KILN_TRAIN);
    assert_int_equal(dataset.count, 3);
    assert_false(kiln_dataset_has(&dataset, "true_tags"));
    Held *held = held_new(&spec);
    dataset.lengths(dataset.ctx, 0, held->lengths);
    assert_int_equal(held->lengths[number_of(&spec, "tags")], 5);
    assert_int_equal(held->lengths[number_of(&spec, "characters")], 5);
    assert_int_equal(dataset.get(dataset.ctx, 0, NULL, &held->sample, &err), KILN_OK);
    check_numbers(&spec, held, "words", spans, KILN_COUNT(spans));
    const KilnFeature *feature = kiln_spec_feature(&spec, "tags");
    assert_int_equal(feature->n_ids, 5); /* with <unknown> */
    for (size_t i = 0; i < KILN_COUNT(tags); i++)
        assert_string_equal(feature->id_names[held->numbers[number_of(&spec, "tags")][i]], tags[i]);
    /* "Ada" has three characters and a padding, "York" has four */
    const int32_t *characters = held->numbers[number_of(&spec, "characters")];
    assert_int_equal(characters[3], 0);
    assert_int_not_equal(characters[4 * 4 + 3], 0);
    held_free(held);
    built_free(&built);
}

/* A tag that training lacks is one name more; the text of the file's tags has it as it is. */
static void test_unknown(void **unused)
{
    KilnError err = { 0 };
    Built built;

    (void)unused;
    assert_int_equal(open_tagged("", NULL, KILN_STAGE_FIT, &built, &err), KILN_E_KEY);
    assert_non_null(strstr(err.text, "test.conll:4: word 1 \"Ada\": the tag \"B-org\""));
    err = (KilnError) { 0 };
    if (open_tagged(", unknown: keep", NULL, KILN_STAGE_FIT, &built, &err) < 0)
        fail_msg("%s", err.text);
    const KilnDataSpec spec = spec_of(&built);
    const KilnDataset dataset = open_split(&built, KILN_TEST);
    Held *held = held_new(&spec);
    assert_int_equal(dataset.get(dataset.ctx, 1, NULL, &held->sample, &err), KILN_OK);
    const KilnFeature *tags = kiln_spec_feature(&spec, "tags");
    assert_string_equal(tags->id_names[held->numbers[number_of(&spec, "tags")][0]], "<unknown>");
    assert_string_equal(held->texts[number_of(&spec, "true_tags")], "B-org");
    assert_string_equal(held->texts[number_of(&spec, "text")], "Ada");
    held_free(held);
    built_free(&built);
}

/* A user's sentence gets the ids that it has in the test split, also from a checkpoint. */
static void test_preprocess(void **unused)
{
    static const char text[] = "\xc3\x89mile lives";
    static const char *const same[] = { "tokens", "first_tokens", "characters", "words" };
    const char more[] = ", characters: characters, unknown: keep, pieces: true";
    KilnError err = { 0 };
    Built built, fitted;
    const KilnRawValue value = { .name = "text", .type = KILN_RAW_TEXT, .text = text };

    (void)unused;
    if (open_tagged(more, NULL, KILN_STAGE_FIT, &built, &err) < 0)
        fail_msg("%s", err.text);
    fixture_put("fitted/none", "", 0);
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", fixture_path("fitted"));
    assert_int_equal(data_ops(&built)->save_preprocessing(built.instance, folder, &err), KILN_OK);
    if (open_tagged(more, folder, KILN_STAGE_PREDICT, &fitted, &err) < 0)
        fail_msg("%s", err.text);
    const KilnDataSpec spec = spec_of(&built);
    const KilnDataset dataset = open_split(&built, KILN_TEST);
    Held *in_split = held_new(&spec), *given = held_new(&spec);
    dataset.lengths(dataset.ctx, 0, in_split->lengths);
    assert_int_equal(dataset.get(dataset.ctx, 0, NULL, &in_split->sample, &err), KILN_OK);
    assert_int_equal(data_ops(&fitted)->preprocess(fitted.instance, &value, &given->sample, &err),
                     KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(same); i++) {
        const int f = number_of(&spec, same[i]);

        assert_int_equal(given->lengths[f], in_split->lengths[f]);
        assert_memory_equal(given->numbers[f], in_split->numbers[f], sizeof(given->numbers[f]));
    }
    assert_string_equal(given->texts[number_of(&spec, "text")], text);
    const KilnRawValue blank = { .name = "text", .type = KILN_RAW_TEXT, .text = "  " };
    assert_int_equal(data_ops(&fitted)->preprocess(fitted.instance, &blank, &given->sample, &err),
                     KILN_E_MISSING);
    held_free(in_split);
    held_free(given);
    built_free(&built);
    built_free(&fitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_preprocess),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
