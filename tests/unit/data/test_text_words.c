/* Words of sentences and their places, spans of tags, names with numbers. */
#include <stdio.h>
#include <string.h>

#include "kiln/tools/name_list.h"
#include "kiln/tools/tag_spans.h"
#include "kiln/tools/text_words.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

static KilnString string(const char *text)
{
    return (KilnString) { text, strlen(text) };
}

/* "word@begin-end ..." of what kiln_words_of_value finds. */
static void test_words(void **unused)
{
    static const struct {
        const char *value, *text, *want;
    } cases[] = {
        { "new  york", "new  york", "new@0-3 york@5-9 " },
        { "  a\tb\n", "  a\tb\n", "a@2-3 b@4-5 " },
        { "", "", "" },
        { " \xe3\x80\x80 ", " \xe3\x80\x80 ", "" },
        { "\xc3\x89mile\xe3\x80\x80s\xc3\xa3o", "\xc3\x89mile\xe3\x80\x80s\xc3\xa3o",
          "\xc3\x89mile@0-5 s\xc3\xa3o@6-9 " },
        /* a combining accent is a code point of its own; an emoji is one */
        { "e\xcc\x81 \xf0\x9f\x98\x80", "e\xcc\x81 \xf0\x9f\x98\x80",
          "e\xcc\x81@0-2 \xf0\x9f\x98\x80@3-4 " },
        { "new york\x1f, \x1f", "new york , ", "new york@0-8 , @9-11 " },
        { "\x1f"
          "a\x1f",
          " a", "@0-0 a@1-2 " },
    };
    KilnWords words = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char got[256] = "";
        size_t at = 0;
        KilnError err = { 0 };

        assert_int_equal(kiln_words_of_value(&words, string(cases[i].value), &err), KILN_OK);
        for (size_t w = 0; w < words.n; w++)
            at += (size_t)snprintf(
                got + at, sizeof(got) - at, "%.*s@%d-%d ", (int)kiln_words_at(&words, w).length,
                kiln_words_at(&words, w).data, (int)words.list[w].begin, (int)words.list[w].end);
        assert_string_equal(got, cases[i].want);
        assert_string_equal(words.text.data != NULL ? words.text.data : "", cases[i].text);
    }
    kiln_words_release(&words);
}

/* "TYPE first-last, ..." of tags, as seqeval and conlleval find them. */
static void test_spans(void **unused)
{
    static const struct {
        const char *tags, *want;
    } cases[] = {
        { "", "" },
        { "O O", "" },
        { "B-x I-x O B-y", "x 0-1, y 3-3, " },
        { "B-x B-x I-x", "x 0-0, x 1-2, " },
        { "I-x I-x I-y", "x 0-1, y 2-2, " },
        { "O I-x", "x 1-1, " },
        { "B-a-b I-a-b", "a-b 0-1, " },
        { "S-x E-x B-y E-y O", "x 0-0, x 1-1, y 2-3, " },
        { "B B O I", "_ 0-0, _ 1-1, _ 3-3, " },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnSpanFinder finder = { 0 };
        KilnTagSpan span;
        KilnString rest = string(cases[i].tags), tag;
        char got[256] = "";
        size_t at = 0;
        bool more = true;

        while (more) {
            more = kiln_value_next_item(&rest, false, &tag);
            if (more ? kiln_span_next(&finder, tag, &span) : kiln_span_end(&finder, &span))
                at += (size_t)snprintf(got + at, sizeof(got) - at, "%.*s %d-%d, ",
                                       (int)span.type.length, span.type.data, (int)span.first,
                                       (int)span.last);
        }
        assert_string_equal(got, cases[i].want);
    }
}

static void test_names(void **unused)
{
    static const char *const names[] = { "b", "a", "ab", "b", "aa", "" };
    KilnNameList sorted = { .sorted = true }, plain = { 0 }, read = { 0 };
    KilnError err = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        assert_int_equal(kiln_name_list_add(&sorted, string(names[i]), &err), KILN_OK);
        assert_int_equal(kiln_name_list_add(&plain, string(names[i]), &err), KILN_OK);
    }
    assert_int_equal(sorted.n, 5);
    assert_string_equal(sorted.names[0], "");
    assert_string_equal(sorted.names[2], "aa");
    assert_string_equal(plain.names[3], "aa");
    for (size_t i = 0; i < sorted.n; i++)
        assert_int_equal(kiln_name_list_find(&sorted, string(sorted.names[i])), i);
    assert_int_equal(kiln_name_list_find(&sorted, string("abc")), -1);
    assert_int_equal(kiln_name_list_find(&plain, string("c")), -1);
    assert_int_equal(kiln_name_list_write(&plain, work, "names.txt", &err), KILN_OK);
    assert_int_equal(kiln_name_list_read(&read, work, "names.txt", &err), KILN_OK);
    assert_int_equal(read.n, plain.n);
    for (size_t i = 0; i < read.n; i++)
        assert_string_equal(read.names[i], plain.names[i]);
    assert_int_equal(kiln_name_list_read(&read, work, "none", &err), KILN_E_IO);
    kiln_name_list_release(&sorted);
    kiln_name_list_release(&plain);
    kiln_name_list_release(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_spans),
        cmocka_unit_test_setup_teardown(test_names, make_work, remove_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
