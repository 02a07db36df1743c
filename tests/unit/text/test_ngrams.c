/* Words, n-grams of words and n-grams of characters have fastText's ids, as
 * tests/record/ngrams.py recorded them. fastText has no <pad>: its ids are lower by 1. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kiln/tokenizer.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/loader_fixture.h"

/* The texts to train on. */
typedef struct Reader {
    const json_t *texts;
    size_t next;
} Reader;

static bool next_text(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Reader *reader = ctx;
    const json_t *text = json_array_get(reader->texts, reader->next++);

    (void)ret_status;
    (void)err;
    *ret = (KilnString) { json_string_value(text), json_string_length(text) };
    return text != NULL;
}

static void train(Built *built, const json_t *texts, const json_t *setting)
{
    Reader reader = { .texts = texts };
    const KilnTexts source = { .next = next_text, .ctx = &reader };
    char options[200];
    KilnError err = { 0 };

    snprintf(options, sizeof(options), "word_ngrams: %d, minn: %d, maxn: %d, buckets: %d",
             (int)json_integer_value(json_object_get(setting, "word_ngrams")),
             (int)json_integer_value(json_object_get(setting, "minn")),
             (int)json_integer_value(json_object_get(setting, "maxn")),
             (int)json_integer_value(json_object_get(setting, "buckets")));
    if (build_yaml(built, KILN_KIND_TOKENIZER, "ngrams", options, &err) < 0 ||
        kiln_tokenizer_train(built->instance, &source, NULL, &err) < 0)
        fail_msg("%s: %s", options, err.text);
}

static void encode(const KilnInstance *tokenizer, const char *text, KilnEncoding *ret)
{
    const KilnTokenizerInput input = { .text = { text, strlen(text) } };
    KilnError err = { 0 };

    if (kiln_tokenizer_encode(tokenizer, &input, ret, &err) < 0)
        fail_msg("'%s': %s", text, err.text);
}

/* That the first ids are those wanted, which are fastText's. */
static void check_ids(const char *text, const KilnEncoding *got, const json_t *want)
{
    for (size_t i = 0; i < json_array_size(want); i++) {
        const int id = (int)json_integer_value(json_array_get(want, i)) + 1;

        if (i >= got->n || got->ids[i] != id)
            fail_msg("'%s': id %zu of %zu is %d, expected %d", text, i, got->n,
                     i < got->n ? got->ids[i] : -1, id);
    }
}

static int compare_ids(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void check_setting(const KilnInstance *tokenizer, const json_t *setting)
{
    KilnEncoding encoding = { 0 };
    const char *text;
    const json_t *word;
    json_t *want;
    size_t i;

    json_array_foreach(json_object_get(setting, "words"), i, word)
    {
        const KilnString string = { json_string_value(word), json_string_length(word) };

        assert_int_equal(kiln_tokenizer_id(tokenizer, string), i + 1);
    }
    /* A word's own ids are followed by those of </s> and of n-grams of words. */
    json_object_foreach(json_object_get(setting, "subwords"), text, want)
    {
        encode(tokenizer, text, &encoding);
        check_ids(text, &encoding, want);
        assert_int_equal(encoding.ids[json_array_size(want)],
                         kiln_tokenizer_special(tokenizer, KILN_TOKEN_EOS));
    }
    /* The ids of lines are recorded in ascending order. */
    json_object_foreach(json_object_get(setting, "lines"), text, want)
    {
        encode(tokenizer, text, &encoding);
        qsort(encoding.ids, encoding.n, sizeof(*encoding.ids), compare_ids);
        assert_int_equal(encoding.n, json_array_size(want));
        check_ids(text, &encoding, want);
    }
    kiln_encoding_release(&encoding);
}

static void test_recorded_ids(void **unused)
{
    json_error_t why;
    json_t *file = json_load_file("tests/data/ngrams.json", 0, &why);
    const json_t *setting;
    size_t i;

    (void)unused;
    if (file == NULL)
        fail_msg("%s:%d: %s", why.source, why.line, why.text);
    json_array_foreach(json_object_get(file, "settings"), i, setting)
    {
        Built built;

        train(&built, json_object_get(file, "texts"), setting);
        check_setting(built.instance, setting);
        built_free(&built);
    }
    assert_int_equal(i, 6);
    json_decref(file);
}

/* Check the texts of ids, each followed by a NUL. */
static void check_texts(const char *options, const KilnTokenizerInput *input,
                        const char *const *want)
{
    static const char texts[] = "[\"the c\\u00e4t sat\"]";
    json_t *training = json_loads(texts, 0, NULL);
    json_t *setting = json_loads(options, 0, NULL);
    KilnEncoding encoding = { 0 };
    KilnText got = { 0 };
    KilnError err = { 0 };
    Built built;
    size_t n = 0, at = 0;

    train(&built, training, setting);
    assert_int_equal(kiln_tokenizer_spell(built.instance, input, &got, &err), KILN_OK);
    assert_int_equal(kiln_tokenizer_encode(built.instance, input, &encoding, &err), KILN_OK);
    for (; want[n] != NULL; n++) {
        assert_true(at < got.length);
        assert_string_equal(got.data + at, want[n]);
        at += strlen(got.data + at) + 1;
    }
    assert_int_equal(at, got.length);
    assert_int_equal(n, encoding.n);
    kiln_encoding_release(&encoding);
    kiln_text_release(&got);
    built_free(&built);
    json_decref(setting);
    json_decref(training);
}

static void test_texts_of_ids(void **unused)
{
    static const char words[] = "{\"word_ngrams\": 3, \"minn\": 0, \"maxn\": 0, \"buckets\": 9}";
    static const char parts[] = "{\"word_ngrams\": 1, \"minn\": 3, \"maxn\": 4, \"buckets\": 9}";
    static const char *const ngrams[] = { "the",
                                          "c\xc3\xa4t",
                                          "</s>",
                                          "the dog",
                                          "the dog c\xc3\xa4t",
                                          "dog c\xc3\xa4t",
                                          "dog c\xc3\xa4t </s>",
                                          "c\xc3\xa4t </s>",
                                          NULL };
    static const char *const pair[] = { "</s>", "\xc3\xa4 </s>", "sat", "</s>", "sat </s>", NULL };
    static const char *const subwords[] = { "c\xc3\xa4t", "<c\xc3\xa4",  "<c\xc3\xa4t",
                                            "c\xc3\xa4t", "c\xc3\xa4t>", "\xc3\xa4t>",
                                            "</s>",       NULL };
    const KilnString second = { "sat", 3 };
    const KilnTokenizerInput one = { .text = { " the  dog\tc\xc3\xa4t", 14 } };
    const KilnTokenizerInput two = { .text = { "\xc3\xa4", 2 }, .pair = &second };
    const KilnTokenizerInput word = { .text = { "c\xc3\xa4t", 4 } };

    (void)unused;
    check_texts(words, &one, ngrams);
    check_texts(words, &two, pair);
    check_texts(parts, &word, subwords);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded_ids),
                                        cmocka_unit_test(test_texts_of_ids) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
