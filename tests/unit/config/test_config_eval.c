/* ${eval:...}: values and types as Python's, and the messages of mistakes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const char config[] = "a: 3\nb: 0\nf: 0.5\nt: text\nflag: true\nn: null\nl: [1, 2]\nm: ???\n"
                             "sub: {x: 7, y: '${eval:${.x} + ${..a}}'}\nbig: 9223372036854775807\n"
                             "name: sub\nself: ${eval:${self} + 1}\n";

/* The value of x with that expression, as YAML, or the message. */
static char *value_of(const char *written)
{
    char text[16384];
    TreeFile files[] = { { "config.yaml", text }, { NULL, NULL } };
    Tree tree;
    KilnConfig *composed = NULL;
    char *messages = NULL, *yaml = NULL;
    KilnError err = { 0 };

    snprintf(text, sizeof(text), "%sx: %s\n", config, written);
    tree = tree_make(files);
    if (tree_compose(&tree, NULL, NULL, &composed, &messages) < 0)
        fail_msg("%s", messages);
    free(messages);
    if (kiln_config_yaml(composed, "x", true, &yaml, &err) < 0) {
        yaml = kiln_strdup(err.text);
        assert_non_null(yaml);
    }
    kiln_config_free(composed);
    tree_remove(&tree);
    return yaml;
}

static void test_values(void **unused)
{
    static const struct {
        const char *expression, *want;
    } cases[] = {
        /* integers stay integers, / gives floats */
        { "1 + 2 * 3", "7" },
        { "(1 + 2) * 3", "9" },
        { "7 / 2", "3.5" },
        { "6 / 2", "3.0" },
        { "9007199254740993 / 9", "1000799917193443.6" },
        { "9223372036854775807 // 1", "9223372036854775807" },
        { "0 * -1", "0" },
        { "7 // 2", "3" },
        { "-7 // 2", "-4" },
        { "7 // -2", "-4" },
        { "-7 % 3", "2" },
        { "7 % -3", "-2" },
        { "7.5 // 2", "3.0" },
        { "-7.5 % 2", "0.5" },
        { "2 ** 10", "1024" },
        { "2 ** -1", "0.5" },
        { "-2 ** 2", "-4" },
        { "2 ** 3 ** 2", "512" },
        { "2 ** -2 ** 2", "0.0625" },
        { "(-1) ** 1000000001", "-1" },
        { "10 - 2 - 3", "5" },
        { "100 / 10 / 2", "5.0" },
        { "1 + 1.0", "2.0" },
        { "1_000 * 2", "2000" },
        { ".5 + 1e3", "1000.5" },
        { "true + 1", "2" },
        { "- - 3", "3" },
        { "+3", "3" },
        { "9223372036854775807", "9223372036854775807" },
        { "-9223372036854775807 - 1", "-9223372036854775808" },
        /* comparisons and conditions */
        { "1 < 2", "true" },
        { "1 < 2 < 3", "true" },
        { "1 < 3 < 2", "false" },
        { "1 == 1.0", "true" },
        { "1 < 3 or 2", "true" },
        { "3 < 1 or 2", "2" },
        { "1 < 2 < 3 and 4", "4" },
        { "true == 1", "true" },
        { "'1' == 1", "false" },
        { "null == null", "true" },
        { "null != 0", "true" },
        { "'a' < 'b'", "true" },
        { "${big} == 9223372036854775807.0", "false" },
        { "not 0", "true" },
        { "not 1 == 2", "true" },
        { "1 and 0 or 5", "5" },
        { "'' or 'x'", "x" },
        { "null and nope(1)", "null" },
        { "1 if 2 > 1 else 0", "1" },
        { "1 if 0 else 2 if 0 else 3", "3" },
        { "True if None == null else False", "true" },
        /* functions */
        { "min(3, 1, 2)", "1" },
        { "max(1, 2, 3)", "3" },
        { "max(1, 2.5)", "2.5" },
        { "min('b', 'a')", "a" },
        { "max(2, 2.0)", "2" },
        { "round(2.5)", "2" },
        { "round(3.5)", "4" },
        { "round(-2.5)", "-2" },
        { "round(2.675, 2)", "2.67" },
        { "round(1250, -2)", "1200" },
        { "round(1350, -2)", "1400" },
        { "round(3, 2)", "3" },
        { "abs(-3)", "3" },
        { "abs(-0.5)", "0.5" },
        { "floor(-0.5)", "-1" },
        { "ceil(0.1)", "1" },
        { "ceil(7)", "7" },
        /* values of the config */
        { "${a} * 2", "6" },
        { "${f} * 2", "1.0" },
        { "${l[1]} + ${l[-1]}", "4" },
        { "${sub.x} - ${sub.y}", "-3" },
        { "${${name}.x}", "7" },
        { "${t}", "text" },
        { "'${t}-${a}' == 'text-3'", "true" },
        { "1 if ${t} == 'text' else 2", "1" },
        { "${a} if ${flag} else ${nope}", "3" },
        { "false and ${nope}", "false" },
        { "${oc.select:nope,4} + ${eval:1 + 1}", "6" },
        { "${m} + 1", "?\?\?" },
        { "1 if ${n} == null else 2", "1" },
    };
    char written[512];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got;

        snprintf(written, sizeof(written), "|-\n  ${eval: %s }", cases[i].expression);
        got = value_of(written);
        got[strcspn(got, "\n")] = '\0';
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].expression, got, cases[i].want);
        free(got);
    }
}

static void test_ways_to_write_it(void **unused)
{
    static const struct {
        const char *written, *want;
    } cases[] = {
        { "${eval:${a} * 2}", "6\n" },
        { "\"${eval: ${a} * 2}\"", "6\n" },
        { "'${ eval :${a} * 2}'", "6\n" },
        { "${eval:'${a} * 2'}", "6\n" },
        { "'${eval:\"${a} * 2\"}'", "6\n" },
        { "${eval:'\"x\" if ${a} else \"y\"'}", "x\n" },
        { "|-\n  ${eval:'it\\'s' if 0 else 'b'}", "b\n" },
        { "|-\n  ${eval:'\\'a\\' + 1 if 0 else 2'}", "2\n" },
        { "a-${eval:${a} + 1}-${eval:1 == 1}", "a-4-True\n" },
        { "[1, '${eval:1 + 1}']", "- 1\n- 2\n" },
        { "${oc.decode:'[${eval:1+1}]'}", "[2]\n" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got = value_of(cases[i].written);

        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].written, got, cases[i].want);
        free(got);
    }
}

static void test_mistakes(void **unused)
{
    static const struct {
        const char *expression, *want;
    } cases[] = {
        { "${a} / ${b}", "config.yaml:13:4: x: division by zero\n  ${a} / ${b}\n       ^" },
        { "1 // 0", "division by zero\n  1 // 0\n    ^" },
        { "1.0 % 0", "division by zero" },
        { "0 ** -1", "division by zero" },
        { "${big} + 1", "the result is too large\n  ${big} + 1\n         ^" },
        { "2 ** 64", "the result is too large" },
        { "1e308 * 10", "the result is too large" },
        { "-(-9223372036854775807 - 1)", "the result is too large" },
        { "9223372036854775808", "the number is too large" },
        { "round(1e300)", "round: the number does not fit an integer" },
        { "(0 - 8) ** 0.5", "no real number" },
        { "${t} + 1",
          "+ needs numbers, got text and a number; ${oc.decode:...} turns text into a" },
        { "null * 2", "* needs numbers, got null and a number" },
        { "-'a'", "- needs a number, got text" },
        { "1 < 'a'", "a number and text have no order" },
        { "max(1, 'a')", "text and a number have no order" },
        { "floor('a')", "floor needs a number, got text" },
        { "${l} + 1", "this is a list; an expression computes with single values" },
        { "a + 1",
          "there is no name 'a'; a value of the config is written ${a}, text 'a'\n  a + 1" },
        { "rond(1)", "there is no function 'rond'; did you mean round?; there are min," },
        { "abs()", "abs takes a number, got 0" },
        { "round(1, 2, 3)", "round takes a number and the digits after the point, got 3" },
        { "round(1.5, 0.5)", "the number of digits must be an integer" },
        { "1 +", "${key}, a function or (...), but the expression ends\n  1 +\n     ^" },
        { "", "expected a value" },
        { "1 2", "expected an operator" },
        { "1 = 2", "expected an operator" },
        { "2x", "a number ends here" },
        { "1.2.3", "'1.2.3' is not a number" },
        { "(1", "expected ')', but the expression ends" },
        { "min(1 2)", "expected ',' or ')'" },
        { "1 if 2", "expected 'else' (A if C else B), but the expression ends" },
        { "'abc", "is not closed" },
        { "${nope} + 1", "there is no key 'nope'" },
        { "${self}", "refers to itself" },
        { "__import__('os')", "there is no function '__import__'" },
        { "'\xc3\xa4\xc3\xb6' + 1", "\n  '\xc3\xa4\xc3\xb6' + 1\n       ^" },
    };
    char written[512];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got;

        snprintf(written, sizeof(written), "|-\n  ${eval:%s}", cases[i].expression);
        got = value_of(written);
        if (strstr(got, cases[i].want) == NULL)
            fail_msg("%s: got\n%s\nwant\n%s", cases[i].expression, got, cases[i].want);
        free(got);
    }
}

/* `before` and `after` n times around "1". */
static char *repeated(const char *before, const char *after, size_t n)
{
    char *text = calloc(1, n * (strlen(before) + strlen(after)) + 64), *end = text;

    assert_non_null(text);
    end += sprintf(end, "|-\n  ${eval:");
    for (size_t i = 0; i < n; i++)
        end += sprintf(end, "%s", before);
    *end++ = '1';
    for (size_t i = 0; i < n; i++)
        end += sprintf(end, "%s", after);
    *end = '}';
    return text;
}

static void test_limits(void **unused)
{
    static const struct {
        const char *before, *after;
        size_t n;
        const char *want;
    } cases[] = {
        { "", "+1", 2000, "2001" },
        { "", "+1", 3000, "longer than 4096 characters" },
        { "(", ")", 60, "1" },
        { "(", ")", 100, "nested deeper than 64 levels" },
        { "-", "", 100, "nested deeper than 64 levels" },
        { "not ", "", 100, "nested deeper than 64 levels" },
        { "2**", "", 100, "nested deeper than 64 levels" },
        { "1 if 1 else ", "", 100, "nested deeper than 64 levels" },
        { "${eval:", "}", 200, "nested deeper than" },
        { "min(", ")", 100, "nested deeper than 64 levels" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *written = repeated(cases[i].before, cases[i].after, cases[i].n);
        char *got = value_of(written);

        if (strstr(got, cases[i].want) == NULL)
            fail_msg("%s: got %s, want %s", written, got, cases[i].want);
        free(got);
        free(written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_ways_to_write_it),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
