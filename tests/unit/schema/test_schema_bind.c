/* Loading checked config trees into options structs, and freeing them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/bind.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

/* The options in `yaml`; freed with drop. */
static ToyAll *bind(const char *yaml)
{
    KilnArena arena = { 0 };
    KilnConfigNode *map;
    void *options = NULL;
    KilnError err = { 0 };

    if (kiln_node_parse(&arena, yaml, "case", &map, &err) < 0 ||
        kiln_bind(NULL, map, "x", toy_all_fields, sizeof(ToyAll), &options, &err) < 0)
        fail_msg("%s: %s", yaml, err.text);
    kiln_arena_release(&arena);
    return options;
}

static void drop(ToyAll *options)
{
    kiln_options_free(toy_all_fields, sizeof(ToyAll), options);
}

static void test_defaults(void **unused)
{
    void *options = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(setenv("HOME", "/home/me", 1), 0);
    if (kiln_bind(NULL, NULL, "x", toy_all_fields, sizeof(ToyAll), &options, &err) < 0)
        fail_msg("%s", err.text);
    const ToyAll *all = options;
    assert_true(all->flag);
    assert_int_equal(all->count, 3);
    assert_true(all->rate == 0.5);
    assert_string_equal(all->label, "plain");
    assert_null(all->note);
    assert_string_equal(all->file, "/home/me/x");
    assert_null(all->spare);
    assert_int_equal(all->mode, 1);
    assert_int_equal(all->sizes_count, 2);
    assert_int_equal(all->sizes[1], 2);
    assert_int_equal(all->weights_count, 0);
    assert_int_equal(all->names_count, 2);
    assert_string_equal(all->names[1], "b");
    drop(options);
}

static void test_text_stays_as_it_is(void **unused)
{
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        { "label: ''", "" },
        { "label: 'null'", "null" },
        { "label: '~'", "~" },
        { "label: 007", NULL },
        { "label: \"a\\\"b\\\\c\\n\\td: [x] # y\"", "a\"b\\c\n\td: [x] # y" },
        { "label: \"\\u00e9\\u4e2d\\U0001F600\\x7f\\x85\\u2028\\ufeff\"",
          "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\x7f\xc2\x85\xe2\x80\xa8\xef\xbb\xbf" },
        { "label: ' leading and trailing '", " leading and trailing " },
        { "label: '*alias &anchor !tag %x @y `z`'", "*alias &anchor !tag %x @y `z`" },
        { "label: '---'", "---" },
        { "label: \"\\x01\\x1b[0m\"", "\x01\x1b[0m" },
        { "label: 1.50", "1.50" },
        { "label: yes", NULL },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        ToyAll *all = bind(cases[i].yaml);

        assert_non_null(all->label);
        if (cases[i].want != NULL)
            assert_string_equal(all->label, cases[i].want);
        drop(all);
    }
}

static void test_long_text(void **unused)
{
    KilnText yaml = { 0 };

    (void)unused;
    kiln_text_append(&yaml, "label: '");
    for (int i = 0; i < 100000; i++)
        kiln_text_append(&yaml, "word ");
    kiln_text_append(&yaml, ".'");
    assert_false(yaml.failed);
    ToyAll *all = bind(yaml.data);
    assert_int_equal(strlen(all->label), 500001);
    drop(all);
    kiln_text_release(&yaml);
}

static void test_optional_text(void **unused)
{
    ToyAll *all = bind("{note: '', spare: '~/a b', file: '~'}");

    (void)unused;
    assert_string_equal(all->note, "");
    assert_string_equal(all->spare, "/home/me/a b");
    assert_string_equal(all->file, "/home/me");
    drop(all);
    all = bind("{note: 'null', spare: null, file: '~other/x'}");
    assert_string_equal(all->note, "null");
    assert_null(all->spare);
    assert_string_equal(all->file, "~other/x");
    drop(all);
}

static void test_numbers(void **unused)
{
    static const double rates[] = { 0.0, 0.1, 1e-310, 5e-324, 1.7976931348623157e308, 3.0 };
    char yaml[64];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(rates); i++) {
        snprintf(yaml, sizeof(yaml), "rate: %.17g", rates[i]);
        ToyAll *all = bind(yaml);
        assert_true(all->rate == rates[i]);
        drop(all);
    }
    ToyAll *all = bind("{rate: .inf, count: -5, mode: max, flag: false}");
    assert_true(isinf(all->rate));
    assert_int_equal(all->count, -5);
    assert_int_equal(all->mode, -7);
    assert_false(all->flag);
    drop(all);
}

typedef struct Wide {
    int64_t low, high;
    double odd;
} Wide;

static void test_extremes(void **unused)
{
    static const KilnField fields[] = {
        KILN_FIELD_I64(Wide, low, "-9223372036854775808", -(double)INFINITY, (double)INFINITY, "x"),
        KILN_FIELD_I64(Wide, high, "9223372036854775807", -(double)INFINITY, (double)INFINITY, "x"),
        KILN_FIELD_F64(Wide, odd, "-.inf", -(double)INFINITY, (double)INFINITY, "x"),
        KILN_FIELD_END,
    };
    void *options = NULL;
    KilnError err = { 0 };

    (void)unused;
    if (kiln_bind(NULL, NULL, "x", fields, sizeof(Wide), &options, &err) < 0)
        fail_msg("%s", err.text);
    const Wide *wide = options;
    assert_true(wide->low == INT64_MIN);
    assert_true(wide->high == INT64_MAX);
    assert_true(isinf(wide->odd) && wide->odd < 0);
    kiln_options_free(fields, sizeof(Wide), options);
}

static void test_lists(void **unused)
{
    ToyAll *all = bind("{sizes: [], weights: [-1, 0.5, 1e-3], names: ['', null_, 'null', 3]}");

    (void)unused;
    assert_int_equal(all->sizes_count, 0);
    assert_int_equal(all->weights_count, 3);
    assert_true(all->weights[0] == -1.0 && all->weights[2] == 1e-3);
    assert_int_equal(all->names_count, 4);
    assert_string_equal(all->names[0], "");
    assert_string_equal(all->names[2], "null");
    assert_string_equal(all->names[3], "3");
    drop(all);
}

static void test_refused(void **unused)
{
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        { "count: x", "x.count: expected an integer, got \"x\"" },
        { "sizes: 3", "x.sizes: expected a list of integers, got 3" },
        { "sizes: [1, b]", "x.sizes[1]: expected an integer, got \"b\"" },
        { "note: []", "x.note: expected text or null, got a list" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *map;
        void *options = &arena;
        KilnError err = { 0 };

        assert_int_equal(kiln_node_parse(&arena, cases[i].yaml, "case", &map, &err), KILN_OK);
        assert_true(kiln_bind(NULL, map, "x", toy_all_fields, sizeof(ToyAll), &options, &err) < 0);
        assert_string_equal(err.text, cases[i].want);
        assert_ptr_equal(options, &arena); /* untouched */
        kiln_arena_release(&arena);
    }
}

/* The rich options in `yaml`; freed with drop_rich. */
static ToyRich *bind_rich(const char *yaml)
{
    KilnArena arena = { 0 };
    KilnConfigNode *map;
    void *options = NULL;
    KilnError err = { 0 };

    if (kiln_node_parse(&arena, yaml, "case", &map, &err) < 0 ||
        kiln_bind(NULL, map, "x", toy_rich_fields, sizeof(ToyRich), &options, &err) < 0)
        fail_msg("%s: %s", yaml, err.text);
    kiln_arena_release(&arena);
    return options;
}

static void drop_rich(ToyRich *options)
{
    kiln_options_free(toy_rich_fields, sizeof(ToyRich), options);
}

static void test_rich_defaults(void **unused)
{
    ToyRich *rich = bind_rich("{}");

    (void)unused;
    assert_null(rich->maybe_flag);
    assert_null(rich->maybe_count);
    assert_true(*rich->maybe_rate == 0.5);
    assert_null(rich->maybe_mode);
    assert_true(rich->timeout == 90.0);
    assert_int_equal(rich->limit, 64 << 20);
    assert_int_equal(rich->flags_count, 2);
    assert_true(rich->flags[0] && !rich->flags[1]);
    assert_int_equal(rich->modes[0], -7);
    assert_true(rich->timeouts[1] == 120.0);
    assert_int_equal(rich->limits[0], 1024);
    assert_null(rich->chosen);
    assert_int_equal(rich->counts_count, 2);
    assert_string_equal(rich->counts[1].key, "two");
    assert_int_equal(rich->counts[1].value, 2);
    assert_null(rich->env);
    assert_int_equal(rich->window.length, 8);
    assert_int_equal(rich->window.pad.left, 1);
    assert_null(rich->window.pad.right);
    assert_null(rich->extra);
    assert_int_equal(rich->stages_count, 0);
    assert_int_equal(rich->named_count, 0);
    drop_rich(rich);
}

static void test_optional_values(void **unused)
{
    ToyRich *rich = bind_rich(
        "{maybe_flag: false, maybe_count: 0, maybe_rate: null, maybe_mode: "
        "min, maybe_timeout: 00:01:00, maybe_limit: 2GB, chosen: [], env: {}}");

    (void)unused;
    assert_false(*rich->maybe_flag);
    assert_int_equal(*rich->maybe_count, 0);
    assert_null(rich->maybe_rate);
    assert_int_equal(*rich->maybe_mode, 1);
    assert_true(*rich->maybe_timeout == 60.0);
    assert_int_equal(*rich->maybe_limit, 2000000000);
    assert_non_null(rich->chosen); /* empty is not null */
    assert_int_equal(rich->chosen_count, 0);
    assert_non_null(rich->env);
    assert_int_equal(rich->env_count, 0);
    drop_rich(rich);
    rich = bind_rich("{chosen: [3, 1], env: {A: '', b.c: '~', '1': \"\\u00e9\"}}");
    assert_int_equal(rich->chosen_count, 2);
    assert_int_equal(rich->chosen[1], 1);
    assert_int_equal(rich->env_count, 3);
    assert_string_equal(rich->env[0].value, "");
    assert_string_equal(rich->env[1].key, "b.c");
    assert_string_equal(rich->env[1].value, "~");
    assert_string_equal(rich->env[2].key, "1");
    assert_string_equal(rich->env[2].value, "\xc3\xa9");
    drop_rich(rich);
}

static void test_maps(void **unused)
{
    ToyRich *rich = bind_rich("{switches: {b: true, a: false}, counts: {}, rates: {x: 1, y: 1e-3}, "
                              "labels: {k: null_, 'a \\\"': ' '}, map_modes: {m: max}}");

    (void)unused;
    assert_int_equal(rich->switches_count, 2);
    assert_string_equal(rich->switches[0].key, "b"); /* in file order */
    assert_true(rich->switches[0].value && !rich->switches[1].value);
    assert_int_equal(rich->counts_count, 0);
    assert_true(rich->rates[0].value == 1.0 && rich->rates[1].value == 1e-3);
    assert_string_equal(rich->labels[1].key, "a \\\"");
    assert_string_equal(rich->labels[1].value, " ");
    assert_int_equal(rich->map_modes[0].value, -7);
    drop_rich(rich);
}

static void test_structs(void **unused)
{
    ToyRich *rich = bind_rich("window: {shape: hann, pad: {right: 3}}\n"
                              "extra: {length: 5}\n"
                              "stages: [{name: a}, {name: b, width: 3, pads: [{left: 2}, {}]},\n"
                              "  {name: c, pads: []}]\n"
                              "named: {p: {name: q, pads: null}, r: {name: s, pads: []}}\n");

    (void)unused;
    assert_int_equal(rich->window.length, 8);
    assert_string_equal(rich->window.shape, "hann");
    assert_int_equal(*rich->window.pad.right, 3);
    assert_int_equal(rich->extra->length, 5);
    assert_int_equal(rich->extra->pad.left, 1);
    assert_int_equal(rich->stages_count, 3);
    assert_int_equal(rich->stages[0].width, 16);
    assert_null(rich->stages[0].pads);
    assert_null(rich->stages[0].filter);
    assert_int_equal(rich->stages[1].pads_count, 2);
    assert_int_equal(rich->stages[1].pads[0].left, 2);
    assert_int_equal(rich->stages[1].pads[1].left, 1);
    assert_non_null(rich->stages[2].pads);
    assert_int_equal(rich->stages[2].pads_count, 0);
    assert_string_equal(rich->named[0].key, "p");
    assert_string_equal(rich->named[0].value.name, "q");
    assert_null(rich->named[0].value.pads);
    assert_non_null(rich->named[1].value.pads);
    drop_rich(rich);
}

static void test_rich_refused(void **unused)
{
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        { "window: 3", "x.window: expected a mapping of options, got 3" },
        { "window: null", "x.window: expected a mapping of options, got null" },
        { "window: {pad: {left: 10}}",
          "x.window.pad.left: expected an integer from 0 to 9, got 10" },
        { "stages: [{name: a, width: 0}]", "x.stages[0].width: expected an integer from 1" },
        { "stages: [{}]", "x.stages[0].name: required value missing (what it is called)" },
        { "named: {k: {name: a, pads: [{}, {left: x}]}}", "x.named.k.pads[1].left: expected an" },
        { "named: []", "x.named: expected a mapping of mappings, got a list" },
        { "counts: {a: null}", "x.counts.a: expected an integer, got null" },
        { "chosen: [null]", "x.chosen[0]: expected an integer, got null" },
        { "chosen: 1", "x.chosen: expected a list of integers or null, got 1" },
        { "flags: null", "x.flags: expected a list of booleans, got null" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *map;
        void *options = NULL;
        KilnError err = { 0 };

        assert_int_equal(kiln_node_parse(&arena, cases[i].yaml, "case", &map, &err), KILN_OK);
        assert_true(kiln_bind(NULL, map, "x", toy_rich_fields, sizeof(ToyRich), &options, &err) <
                    0);
        if (strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s: %s", cases[i].yaml, err.text);
        kiln_arena_release(&arena);
    }
}

static void test_home_must_be_known(void **unused)
{
    void *options = NULL;
    KilnError err = { 0 };

    (void)unused;
    unsetenv("HOME");
    assert_int_equal(kiln_bind(NULL, NULL, "", toy_all_fields, sizeof(ToyAll), &options, &err),
                     KILN_E_MISSING);
    assert_string_equal(err.text, "file: ~/x: HOME is not set, so ~ can't be expanded");
}

static void test_nothing(void **unused)
{
    static const KilnField children[] = {
        KILN_FIELD_COMPONENT_OPT(ToyNest, inner, KILN_KIND_MODEL, "null", "x"),
        KILN_FIELD_END,
    };
    void *options = NULL;

    (void)unused;
    assert_int_equal(kiln_bind(NULL, NULL, "", NULL, 0, &options, NULL), KILN_OK);
    assert_null(options);
    kiln_options_free(NULL, 0, NULL);
    assert_int_equal(kiln_bind(NULL, NULL, "", NULL, 8, &options, NULL), KILN_OK);
    assert_non_null(options);
    kiln_options_free(NULL, 8, options);
    assert_int_equal(kiln_bind(NULL, NULL, "", children, sizeof(ToyNest), &options, NULL), KILN_OK);
    assert_null(((ToyNest *)options)->inner);
    kiln_options_free(children, sizeof(ToyNest), options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_text_stays_as_it_is),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_optional_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_rich_defaults),
        cmocka_unit_test(test_optional_values),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_structs),
        cmocka_unit_test(test_rich_refused),
        cmocka_unit_test(test_home_must_be_known), /* last: HOME is gone */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
