/* Mistakes in tags of words: data/tag_check.h. */
#include "tests/support/cmocka.h"

#include <string.h>

#include "data/tag_check.h"

enum { MOST = 8 };

/* Words and tags that alternate, ending with NULL. */
static void add(KilnTagCheck *check, const char *const *pairs)
{
    KilnString words[MOST], tags[MOST];
    int64_t n = 0;

    for (; pairs[2 * n] != NULL; n++) {
        words[n] = (KilnString) { pairs[2 * n], strlen(pairs[2 * n]) };
        tags[n] = (KilnString) { pairs[2 * n + 1], strlen(pairs[2 * n + 1]) };
    }
    kiln_tag_check_add(check, words, tags, n, "a.conll:1");
}

static void test_strays(void **unused)
{
    KilnTagCheck check = { 0 };

    (void)unused;
    add(&check, (const char *const[]) { "New", "B-city", "York", "I-city", NULL });
    assert_int_equal(check.strays, 0);
    add(&check, (const char *const[]) { "Rome", "I-city", NULL });           /* at the start */
    add(&check, (const char *const[]) { "a", "O", "Rome", "I-city", NULL }); /* after O */
    add(&check,
        (const char *const[]) { "Ada", "B-person", "York", "I-city", NULL }); /* other type */
    assert_int_equal(check.strays, 3);
    assert_string_equal(check.stray, "a.conll:1: word 1 \"Rome\": I-city");
    add(&check, (const char *const[]) { "x", "B-a", "y", "I-a", "z", "E-a", "w", "S-b", NULL });
    assert_int_equal(check.strays, 3);
    assert_int_equal(check.sentences, 5);
}

static void test_words_of_spans(void **unused)
{
    KilnTagCheck check = { 0 };

    (void)unused;
    add(&check, (const char *const[]) { "New York", "B-city", "is here", "O", NULL });
    assert_int_equal(check.spaces, 1);
    add(&check,
        (const char *const[]) { "Ulm", "B-city", "\xe2\x80\x9c", "I-city", ".", "O", NULL });
    assert_int_equal(check.punctuated, 1);
    add(&check, (const char *const[]) { "St.", "B-city", "Ives", "I-city", NULL });
    assert_int_equal(check.punctuated, 1);
    add(&check, (const char *const[]) { "so", "O", NULL });
    add(&check, (const char *const[]) { NULL });
    assert_int_equal(check.outside, 2);
    assert_int_equal(check.spans, 3);
}

static void count(void *ctx, const KilnDataFinding *finding)
{
    int *levels = ctx;

    levels[finding->level]++;
    assert_non_null(finding->text);
}

/* Parts of speech have no spans to report. */
static void test_report(void **unused)
{
    KilnTagCheck check = { 0 }, speech = { 0 };
    int levels[4] = { 0 };

    (void)unused;
    add(&speech, (const char *const[]) { "a", "DET", "dog", "NOUN", NULL });
    kiln_tag_check_report(&speech, "train", count, levels);
    assert_int_equal(levels[KILN_CHECK_NOTE] + levels[KILN_CHECK_PASSED], 0);
    add(&check, (const char *const[]) { "Rome", "B-city", "a", "O", "York", "I-city", NULL });
    kiln_tag_check_report(&check, "train", count, levels);
    assert_int_equal(levels[KILN_CHECK_NOTE], 1);
    assert_int_equal(levels[KILN_CHECK_WARNING], 1);
    assert_int_equal(levels[KILN_CHECK_PASSED], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_words_of_spans),
        cmocka_unit_test(test_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
