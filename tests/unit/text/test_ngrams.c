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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded_ids) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
