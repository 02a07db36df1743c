/* Types of plain scalars in YAML and in overrides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "config/yaml/scalar.h"

typedef struct Case {
    const char *text;
    KilnScalar type;
    const char *canonical; /* NULL: as written */
} Case;

static void check(const Case *cases, size_t n,
                  KilnScalar (*read)(KilnArena *, const char *, const char **))
{
    KilnArena arena = { 0 };

    for (size_t i = 0; i < n; i++) {
        const char *text = NULL;
        KilnScalar type = read(&arena, cases[i].text, &text);
        const char *want = cases[i].canonical != NULL ? cases[i].canonical : cases[i].text;

        if (type != cases[i].type || strcmp(text, want) != 0)
            fail_msg("'%s': type %d '%s', want %d '%s'", cases[i].text, (int)type, text,
                     (int)cases[i].type, want);
    }
    kiln_arena_release(&arena);
}

static void test_yaml(void **unused)
{
    static const Case cases[] = {
        { "", KILN_SCALAR_NULL, "null" },
        { "~", KILN_SCALAR_NULL, "null" },
        { "Null", KILN_SCALAR_NULL, "null" },
        { "nULL", KILN_SCALAR_STR, NULL },
        { "none", KILN_SCALAR_STR, NULL },
        { "yes", KILN_SCALAR_BOOL, "true" },
        { "Off", KILN_SCALAR_BOOL, "false" },
        { "oN", KILN_SCALAR_STR, NULL },
        { "y", KILN_SCALAR_STR, NULL },
        { "0", KILN_SCALAR_INT, NULL },
        { "-0", KILN_SCALAR_INT, "0" },
        { "+5", KILN_SCALAR_INT, "5" },
        { "1_000", KILN_SCALAR_INT, "1000" },
        { "0x1F", KILN_SCALAR_INT, "31" },
        { "-0x10", KILN_SCALAR_INT, "-16" },
        { "0b_11", KILN_SCALAR_INT, "3" },
        { "017", KILN_SCALAR_INT, "15" },
        { "018", KILN_SCALAR_STR, NULL },
        { "0o17", KILN_SCALAR_STR, NULL },
        { "0x", KILN_SCALAR_STR, NULL },
        { "1:30", KILN_SCALAR_INT, "90" },
        { "-1:00:05", KILN_SCALAR_INT, "-3605" },
        { "1:60", KILN_SCALAR_STR, NULL },
        { "123456789012345678901234567890", KILN_SCALAR_INT, NULL },
        { "1e3", KILN_SCALAR_FLOAT, NULL },
        { "1e-3", KILN_SCALAR_FLOAT, NULL },
        { "1.", KILN_SCALAR_FLOAT, NULL },
        { ".5", KILN_SCALAR_FLOAT, NULL },
        { "-.5", KILN_SCALAR_STR, NULL }, /* YAML 1.1 has no sign before a dot */
        { ".5e3", KILN_SCALAR_STR, NULL },
        { ".5e+3", KILN_SCALAR_FLOAT, NULL },
        { "+1.5", KILN_SCALAR_FLOAT, "1.5" },
        { "1_000.5", KILN_SCALAR_FLOAT, "1000.5" },
        { "1:30.5", KILN_SCALAR_FLOAT, "90.5" },
        { ".inf", KILN_SCALAR_FLOAT, NULL },
        { "-.INF", KILN_SCALAR_FLOAT, NULL },
        { ".nan", KILN_SCALAR_FLOAT, NULL },
        { "nan", KILN_SCALAR_STR, NULL },
        { "1e", KILN_SCALAR_STR, NULL },
        { "1.2.3", KILN_SCALAR_STR, NULL },
        { "2024-01-31", KILN_SCALAR_STR, NULL },
        { "???", KILN_SCALAR_MISSING, NULL },
        { "????", KILN_SCALAR_STR, NULL },
        { "${a}", KILN_SCALAR_INTERPOLATION, NULL },
        { "x\\${a}", KILN_SCALAR_INTERPOLATION, NULL },
        { "$a", KILN_SCALAR_STR, NULL },
        { "-", KILN_SCALAR_STR, NULL },
        { "+", KILN_SCALAR_STR, NULL },
    };

    (void)unused;
    check(cases, KILN_COUNT(cases), kiln_scalar_yaml);
}

static void test_value(void **unused)
{
    static const Case cases[] = {
        { "1_000", KILN_SCALAR_INT, "1000" },   { "1__0", KILN_SCALAR_STR, NULL },
        { "017", KILN_SCALAR_STR, NULL },       { "0x1F", KILN_SCALAR_STR, NULL },
        { "1:30", KILN_SCALAR_STR, NULL },      { "yes", KILN_SCALAR_STR, NULL },
        { "TrUe", KILN_SCALAR_BOOL, "true" },   { "NULL", KILN_SCALAR_NULL, "null" },
        { "nullable", KILN_SCALAR_STR, NULL },  { "nan", KILN_SCALAR_FLOAT, ".nan" },
        { "-Inf", KILN_SCALAR_FLOAT, "-.inf" }, { "-.5", KILN_SCALAR_FLOAT, NULL },
        { "5.", KILN_SCALAR_FLOAT, NULL },      { "1e+3", KILN_SCALAR_FLOAT, NULL },
        { "1e-07", KILN_SCALAR_FLOAT, NULL },   { "2024-01-31", KILN_SCALAR_STR, NULL },
        { "1.2.3", KILN_SCALAR_STR, NULL },     { ".", KILN_SCALAR_STR, NULL },
        { "-", KILN_SCALAR_STR, NULL },         { "", KILN_SCALAR_STR, NULL },
    };

    (void)unused;
    check(cases, KILN_COUNT(cases), kiln_scalar_value);
}

static void test_utf8(void **unused)
{
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        { "", true },
        { "abc", true },
        { "\xc3\xa9", true },
        { "\xe2\x82\xac", true },
        { "\xf0\x9f\x98\x80", true },
        { "\xff", false },
        { "\xc3", false },
        { "\xc0\x80", false },
        { "\xe0\x80\x80", false },
        { "\xed\xa0\x80", false },
        { "\xf4\x90\x80\x80", false },
        { "a\x80", false },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        if (kiln_text_is_utf8(cases[i].text, strlen(cases[i].text)) != cases[i].valid)
            fail_msg("case %zu", i);
    assert_false(kiln_text_is_utf8("a\0b", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_value),
        cmocka_unit_test(test_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
