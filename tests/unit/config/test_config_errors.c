/* Error collections: order and limits; and the source snippets in messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/utf8.h"
#include "config/composed.h"
#include "config/override/token.h"
#include "config/provenance/error_list.h"
#include "config/provenance/origin.h"
#include "config/provenance/source_snippet.h"
#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

/* ---- Excerpts ---------------------------------------------------------------------- */

static char *excerpt(KilnOrigin origin, int width)
{
    KilnText text = { 0 };

    kiln_source_snippet_write(&text, &origin, width, false);
    return kiln_text_take(&text);
}

static void test_excerpts_of_files(void **unused)
{
    static const struct {
        const char *file;
        int line, column;
        const char *want;
    } cases[] = {
        { "lr: fast\n", 1, 5, "    1 | lr: fast\n      |     ^~~~\n" },
        { "a: 1\nlr: fast # slow\n", 2, 5, "    2 | lr: fast # slow\n      |     ^~~~\n" },
        { "lr: fast\n", 1, 1, "    1 | lr: fast\n      | ^~\n" },
        { "a: [1, two, 3]\n", 1, 8, "    1 | a: [1, two, 3]\n      |        ^~~\n" },
        { "a: [1, [2], 3] \n", 1, 4, "    1 | a: [1, [2], 3] \n      |    ^~~~~~~~~~~\n" },
        { "a: [1,\n", 1, 4, "    1 | a: [1,\n      |    ^\n" },
        { "a: 'x: y' # z\n", 1, 4, "    1 | a: 'x: y' # z\n      |    ^~~~~~\n" },
        { "{a: ${b.c}, d: 1}\n", 1, 5, "    1 | {a: ${b.c}, d: 1}\n      |     ^~~~~~\n" },
        { "- a\n", 1, 1, "    1 | - a\n      | ^\n" },
        { "\xe6\x9c\xac: \xe6\x9c\xac x\n", 1, 4,
          "    1 | \xe6\x9c\xac: \xe6\x9c\xac x\n      |     ^~~~\n" },
        { "e\xcc\x81: x\n", 1, 5, "    1 | e\xcc\x81: x\n      |    ^\n" },
        { "\ta: x\n", 1, 5, "    1 |         a: x\n      |            ^\n" },
        { "a:\tx\n", 1, 4, "    1 | a:      x\n      |         ^\n" },
        { "a: 1\n", 1, 5, "    1 | a: 1\n      |     ^\n" },
        { "a: 1", 1, 9, "    1 | a: 1\n      |     ^\n" },
        { "a: 1\r\nb: 2\r\n", 2, 4, "    2 | b: 2\n      |    ^\n" },
        { "a: 1\rb: 2", 2, 4, "    2 | b: 2\n      |    ^\n" },
        { "\xef\xbb\xbf"
          "a: 1\n",
          1, 4, "    1 | a: 1\n      |    ^\n" },
        { "a: \033[31mx\n", 1, 4, "    1 | a: ?[31mx\n      |    ^~~~~~\n" },
        { "a: \xff\n", 1, 4, "    1 | a: \xef\xbf\xbd\n      |    ^\n" },
        { "a: 1\n", 2, 1, "    2 | \n      | ^\n" },
        { "a: 1\n", 3, 1, "" },
        { "\xff\xfe"
          "a\0:\0",
          1, 1, "" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Tree tree = tree_make((TreeFile[]) { { "x.yaml", cases[i].file }, { NULL, NULL } });
        char *path = kiln_path_join(tree.dir, "x.yaml");
        char *got = excerpt((KilnOrigin) { path, cases[i].line, cases[i].column }, 80);

        if (strcmp(got, cases[i].want) != 0)
            fail_msg("case %zu: got\n%swant\n%s", i, got, cases[i].want);
        free(got);
        free(path);
        tree_remove(&tree);
    }
}

static void test_excerpts_of_arguments(void **unused)
{
    static const struct {
        const char *source;
        int column;
        const char *want;
    } cases[] = {
        { "argument 1 `lr=fast`", 4, "      | lr=fast\n      |    ^~~~\n" },
        { "argument 1 `lr=fast`", 1, "      | lr=fast\n      | ^~\n" },
        { "argument 2 `model.hiddn=[1,2]`", 7, "      | model.hiddn=[1,2]\n      |       ^~~~~\n" },
        { "argument 2 `a=[1, 'x]', 2]`", 3, "      | a=[1, 'x]', 2]\n      |   ^~~~~~~~~~~~\n" },
        { "argument 2 `a=[1,two]`", 6, "      | a=[1,two]\n      |      ^~~\n" },
        { "argument 2 `a={b: c}`", 7, "      | a={b: c}\n      |       ^\n" },
        { "argument 2 `a=choice(1,2)`", 3, "      | a=choice(1,2)\n      |   ^~~~~~~~~~~\n" },
        { "argument 2 `a=a ` b`", 3, "      | a=a ` b\n      |   ^~~~~\n" },
        { "argument 1 `a=[1,`", 6, "      | a=[1,\n      |      ^\n" },
        { "argument 1 `lr=fast`", 0, "" },
        { "argument `lr=fast`", 3, "" },
        { "default of optimizer/sgd", 3, "" },
        { NULL, 3, "" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got = excerpt((KilnOrigin) { cases[i].source, 0, cases[i].column }, 80);

        if (strcmp(got, cases[i].want) != 0)
            fail_msg("case %zu: got\n%swant\n%s", i, got, cases[i].want);
        free(got);
    }
}

static void test_shipped_files_and_colour(void **unused)
{
    KilnOrigin origin = { "kiln:conf/optimizer/sgd.yaml", 3, 5 };
    KilnText text = { 0 };

    (void)unused;
    kiln_source_snippet_write(&text, &origin, 80, true);
    assert_string_equal(text.data, "    3 | lr: ${lr}\n      |     \033[1;32m^~~~~\033[0m\n");
    kiln_text_clear(&text);
    origin.source = "kiln:conf/optimizer/none.yaml";
    kiln_source_snippet_write(&text, &origin, 80, true);
    assert_int_equal(text.length, 0);
    kiln_text_release(&text);
}

/* Wherever the caret is in a long line, it stays below its character and in the width. */
static void test_long_lines(void **unused)
{
    enum { LENGTH = 300, WIDTH = 40 };
    char source[LENGTH + 32] = "argument 1 `k=";
    size_t start = strlen("argument 1 `");

    (void)unused;
    for (int i = 2; i < LENGTH; i++)
        source[start + (size_t)i] = (char)('a' + i % 26);
    source[start + LENGTH] = '`';
    for (int column = 3; column <= LENGTH; column++) {
        char *got = excerpt((KilnOrigin) { source, 0, column }, WIDTH);
        const char *line = strchr(got, '|') + 2, *below = strchr(got, '\n') + 1;
        const char *caret = strchr(below, '^');
        size_t offset = (size_t)(caret - (strchr(below, '|') + 2));

        assert_int_equal(line[offset], 'a' + (column - 1) % 26);
        assert_in_range(strcspn(got, "\n"), 1, WIDTH);
        assert_in_range(strcspn(below, "\n"), 1, WIDTH);
        free(got);
    }
}

static void test_tokens_never_leave_the_line(void **unused)
{
    static const char *const lines[] = { "",     "a",    "a: 'x",  "a: \"x\\", "[[[",
                                         "]]]",  "${${", "a: ${b", "'''",      "=",
                                         "a=${", "a=f(", "a=]",    "a={",      "a='" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(lines); i++) {
        size_t n = strlen(lines[i]);

        for (size_t at = 0; at <= n; at++) {
            assert_in_range(kiln_token_end(lines[i], n, at, false), at + 1, at < n ? n : n + 1);
            assert_in_range(kiln_token_end(lines[i], n, at, true), at + 1, at < n ? n : n + 1);
        }
    }
}

static void test_characters(void **unused)
{
    static const struct {
        const char *text;
        size_t length;
        uint32_t character;
        int width;
    } cases[] = {
        { "a", 1, 'a', 1 },
        { "\xc3\xa9", 2, 0xe9, 1 },
        { "\xe6\x9c\xac", 3, 0x672c, 2 },
        { "\xf0\x9f\x98\x80", 4, 0x1f600, 2 },
        { "\xcc\x81", 2, 0x301, 0 },
        { "\xff", 1, 0xfffd, 1 },
        { "\xc0\x80", 1, 0xfffd, 1 },     /* overlong */
        { "\xed\xa0\x80", 1, 0xfffd, 1 }, /* half of a surrogate pair */
        { "\xe6\x9c", 1, 0xfffd, 1 },     /* torn */
        { "\xf4\x90\x80\x80", 1, 0xfffd, 1 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        uint32_t c = 0;

        assert_int_equal(kiln_utf8_next(cases[i].text, strlen(cases[i].text), &c), cases[i].length);
        assert_int_equal(c, cases[i].character);
        assert_int_equal(kiln_utf8_width(c), cases[i].width);
    }
}

/* ---- Places ------------------------------------------------------------------------ */

static void test_places(void **unused)
{
    size_t number = 0;
    KilnOrigin origin = { "conf/x.yaml", 3, 5 }, argument = { "argument 12 `a=`b``", 0, 3 };

    (void)unused;
    assert_string_equal(kiln_origin_argument(argument.source, &number), "a=`b``");
    assert_int_equal(number, 12);
    assert_null(kiln_origin_argument("argument x", NULL));
    assert_null(kiln_origin_argument("conf/x.yaml", NULL));
    assert_null(kiln_origin_argument(NULL, NULL));
    assert_int_equal(kiln_origin_prefix("conf/x.yaml:3:5: lr: no", &origin), 16);
    assert_int_equal(kiln_origin_prefix("conf/x.yaml:3:51: lr: no", &origin), 0);
    assert_int_equal(kiln_origin_prefix("argument 12 `a=`b``: no", &argument), 20);
}

/* ---- Collections -------------------------------------------------------------------- */

static void put(KilnErrors *errors, const char *source, int line, int column, const char *text)
{
    KilnError err = { 0 };
    KilnOrigin origin = { source, line, column };

    kiln_error_set(&err, KILN_E_KEY, "%s", text);
    kiln_error_at(&err, &origin);
    assert_int_equal(kiln_errors_add(errors, &err), KILN_E_KEY);
}

static void test_order(void **unused)
{
    static const char *const want[] = { "b:2:1: 1",          "b:2:9: 2",           "b:10:1: 3",
                                        "a:1:1: 4",          "default of: 5",      "default of: 6",
                                        "argument 2 `x`: 7", "argument 10 `x`: 8", "9" };
    KilnConfigFile second = { .source = "a" }, first = { .source = "b" };
    KilnConfig config = { .search.files = &second };
    KilnErrors *errors = NULL, *all = NULL;

    (void)unused;
    second.next = &first; /* the newest is in front */
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_int_equal(kiln_errors_new(&all), KILN_OK);
    put(errors, NULL, 0, 0, "9");
    put(errors, "argument 10 `x`", 0, 1, "8");
    put(errors, "argument 2 `x`", 0, 1, "7");
    put(errors, "default of", 0, 0, "5");
    put(errors, "default of", 0, 0, "6");
    put(errors, "a", 1, 1, "4");
    put(errors, "b", 10, 1, "3");
    put(errors, "b", 2, 9, "2");
    put(errors, "b", 2, 1, "1");
    put(errors, "b", 2, 1, "1"); /* said once */
    kiln_errors_sort(errors, &config);
    kiln_errors_append(all, errors);
    kiln_errors_free(errors);
    kiln_errors_sort(all, NULL); /* the order of the files is known from before */
    assert_int_equal(kiln_errors_count(all), KILN_COUNT(want));
    for (size_t i = 0; i < KILN_COUNT(want); i++)
        assert_string_equal(kiln_errors_text(all, i), want[i]);
    assert_string_equal(kiln_errors_origin(all, 1).source, "b");
    assert_int_equal(kiln_errors_origin(all, 1).column, 9);
    assert_null(kiln_errors_origin(all, 8).source);
    assert_null(kiln_errors_origin(all, 99).source);
    kiln_errors_free(all);
}

static void test_most(void **unused)
{
    KilnErrors *errors = NULL;
    KilnError err = { 0 };
    char text[32];

    (void)unused;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    for (int i = 0; i < 1500; i++) {
        snprintf(text, sizeof(text), "message %d", i);
        put(errors, NULL, 0, 0, text);
    }
    kiln_error_set(&err, KILN_E_KEY, "a warning");
    kiln_errors_warn(errors, &err);
    assert_int_equal(kiln_errors_count(errors), 1000);
    assert_int_equal(kiln_errors_left_out(errors), 501);
    assert_int_equal(kiln_errors_failures(errors), 1500);
    kiln_errors_free(errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_excerpts_of_files),
        cmocka_unit_test(test_excerpts_of_arguments),
        cmocka_unit_test(test_shipped_files_and_colour),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_tokens_never_leave_the_line),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
