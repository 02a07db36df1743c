/* The self-check of options tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/table.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

typedef struct Opts {
    bool b;
    int64_t i;
    double f;
    char *s;
    int64_t *l;
    size_t l_count;
    KilnInstance *c;
} Opts;

/* Sound; each case spoils one thing. */
static const KilnField good = { KILN_ONE_(Opts, i, int64_t),
                                .type = KILN_TYPE_I64,
                                .value = "3",
                                .min = 1,
                                .max = 5,
                                .help = "text" };

static const KilnField end = KILN_FIELD_END;

static void refused(const char *what, KilnField field, const char *want)
{
    const KilnField table[] = { field, field.renamed != NULL ? good : end, end };
    KilnError err = { 0 };
    KilnStatus status = kiln_table_check(table, KILN_COUNT(table), sizeof(Opts), &err);

    if (status != (want == NULL ? KILN_OK : KILN_E_PLUGIN) ||
        (want != NULL && strstr(err.text, want) == NULL))
        fail_msg("%s: %d %s", what, status, err.text);
}

#define CHOICES(list) f.choices = list, f.n_choices = KILN_COUNT(list)
#define SPOIL(what, want, ...)                                                                     \
    do {                                                                                           \
        KilnField f = good;                                                                        \
        __VA_ARGS__;                                                                               \
        refused(what, f, want);                                                                    \
    } while (0)

static void test_numbers(void **unused)
{
    (void)unused;
    SPOIL("good", NULL, (void)f);
    SPOIL("required", NULL, f.value = NULL);
    SPOIL("interpolation", NULL, f.value = "${seed}");
    SPOIL("camel case", "snake_case", f.name = "batchSize");
    SPOIL("no name", "snake_case", f.name = NULL);
    SPOIL("digit", "snake_case", f.name = "1st");
    SPOIL("empty name", "snake_case", f.name = "");
    SPOIL("no help", "no help", f.help = NULL);
    SPOIL("empty help", "no help", f.help = "");
    SPOIL("text default", "expected an integer, got \"x\"", f.value = "x");
    SPOIL("float default", "expected an integer", f.value = "1.5");
    SPOIL("default out of range", "expected an integer from 1 to 5, got 6", f.value = "6");
    SPOIL("null default", "expected an integer, got null", f.value = "null");
    SPOIL("broken YAML", "option i: its default [1", f.value = "[1");
    SPOIL("list default", "got a list", f.value = "[1]");
    SPOIL("bounds", "lower bound", f.min = 6);
    SPOIL("offset", "options struct", f.offset = sizeof(Opts));
    SPOIL("huge offset", "options struct", f.offset = SIZE_MAX - 3);
    SPOIL("size", "options struct", f.size = 4);
    SPOIL("type", "kiln does not know its type", f.type = (KilnType)99);
    SPOIL("shape", "kiln does not know its type", f.shape = (KilnShapeOf)9);
    SPOIL("pair", "within a pair", f.shape = KILN_MAPPING, f.pair_size = 8, f.value_offset = 8);
    SPOIL("value in the key", "within a pair", f.shape = KILN_MAPPING, f.pair_size = 16);
    SPOIL("map", NULL, f.shape = KILN_MAPPING, f.pair_size = 16, f.value_offset = 8,
          f.value = "{a: 1}");
    SPOIL("map", "got 9", f.shape = KILN_MAPPING, f.pair_size = 16, f.value_offset = 8,
          f.value = "{a: 9}");
    SPOIL("optional", NULL, f.optional = true, f.value = "null");
    SPOIL("optional", NULL, f.optional = true);
    SPOIL("item size", "item_size", f.item_size = 4);
    SPOIL("former name", NULL, f.name = "j", f.renamed = "i");
    SPOIL("former name", "of no option", f.name = "j", f.renamed = "x");
    SPOIL("former name", "of no option", f.name = "j", f.renamed = "j");
}

static void test_other_types(void **unused)
{
    static const KilnChoice none[] = { { NULL, 0 } };
    static const KilnChoice twice[] = { { "a", 1 }, { "b", 2 }, { "a", 3 }, { NULL, 0 } };

    (void)unused;
    SPOIL("bool", "expected true or false", f.type = KILN_TYPE_BOOL, f.size = f.item_size = 1,
          f.value = "1");
    SPOIL("choice", "expected one of min, max", f.type = KILN_TYPE_ENUM, CHOICES(toy_modes));
    SPOIL("choice", NULL, f.type = KILN_TYPE_ENUM, CHOICES(toy_modes), f.value = "max");
    SPOIL("no choices", "no choices", f.type = KILN_TYPE_ENUM, CHOICES(none));
    SPOIL("NULL choices", "no choices", f.type = KILN_TYPE_ENUM, f.choices = NULL);
    SPOIL("choice twice", "same name", f.type = KILN_TYPE_ENUM, CHOICES(twice), f.value = "a");
    SPOIL("list", NULL, f.shape = KILN_LIST, f.value = "[1, 5]");
    SPOIL("list item", "got 9", f.shape = KILN_LIST, f.value = "[1, 9]");
    SPOIL("no list", "expected a list", f.shape = KILN_LIST, f.value = "1");
    SPOIL("count", "count is not within", f.shape = KILN_LIST, f.count_offset = sizeof(Opts) - 1);
    SPOIL("duration", NULL, f.type = KILN_TYPE_DURATION, f.value = "00:00:04");
    SPOIL("duration", "got 6", f.type = KILN_TYPE_DURATION, f.value = "6");
    SPOIL("duration", "lower bound", f.type = KILN_TYPE_DURATION, f.min = 7);
    SPOIL("size", "got \"1K\"", f.type = KILN_TYPE_SIZE, f.value = "1K");
    SPOIL("no table", "has no table", f.type = KILN_TYPE_STRUCT);
    SPOIL("empty table", "has no table", f.type = KILN_TYPE_STRUCT, f.fields = &end,
          f.n_fields = 1);
    SPOIL("no length", "the options table of i is unknown", f.type = KILN_TYPE_STRUCT,
          f.fields = &end);
    SPOIL("no end", "the options table of i has no end", f.type = KILN_TYPE_STRUCT,
          f.fields = &good, f.n_fields = 1);
    SPOIL("component", NULL, f.type = KILN_TYPE_COMPONENT, f.value = "{_target_: x}");
    SPOIL("null component", "got null", f.type = KILN_TYPE_COMPONENT, f.value = "null");
    SPOIL("null component", NULL, f.type = KILN_TYPE_COMPONENT, f.value = "null",
          f.optional = true);
    SPOIL("kind", "kind of component", f.type = KILN_TYPE_COMPONENT,
          f.component_kind = KILN_KIND_COUNT);
}

static void test_nested_tables(void **unused)
{
    KilnField inner[] = { good, KILN_FIELD_END };
    KilnField outer = { KILN_ONE_(Opts, i, int64_t), .type = KILN_TYPE_STRUCT, KILN_FIELDS(inner),
                        .value = "{}", .help = "text" };
    KilnField circle[] = { outer, KILN_FIELD_END };

    (void)unused;
    inner[0].offset = 0;
    refused("nested", outer, NULL);
    outer.value = "{i: 4}";
    refused("default", outer, NULL);
    outer.value = "{i: 6}";
    refused("default", outer, "option i: its default {i: 6}: expected an integer from 1 to 5");
    outer.value = "{j: 4}";
    refused("default", outer, "j is not one of its options");
    outer.value = "3";
    refused("default", outer, "expected a mapping");
    outer.value = "{}";
    inner[0].help = NULL;
    refused("row", outer, "option i.i: it has no help text");
    inner[0].help = "text";
    inner[0].offset = 1;
    refused("member", outer, "option i.i: its member is not within");
    circle[0].fields = circle;
    circle[0].n_fields = KILN_COUNT(circle);
    circle[0].offset = 0;
    refused("circle", circle[0], "nested too deep, or contains itself");
}

static void test_whole_tables(void **unused)
{
    const KilnField twice[] = { good, good, KILN_FIELD_END };
    KilnField endless[KILN_MAX_FIELDS + 2];
    char names[KILN_MAX_FIELDS + 2][8];
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_table_check(NULL, 0, 0, &err), KILN_OK);
    assert_int_equal(kiln_table_check(twice, KILN_COUNT(twice), sizeof(Opts), &err), KILN_E_PLUGIN);
    assert_non_null(strstr(err.text, "option i: two options have this name"));
    for (size_t i = 0; i < KILN_COUNT(endless); i++) {
        snprintf(names[i], sizeof(names[i]), "n%zu", i);
        endless[i] = good;
        endless[i].name = names[i];
    }
    endless[KILN_MAX_FIELDS + 1].type = KILN_TYPE_END;
    assert_int_equal(kiln_table_check(endless, KILN_COUNT(endless), sizeof(Opts), &err),
                     KILN_E_PLUGIN);
    assert_non_null(strstr(err.text, "more than 64 options"));
    for (size_t i = 0; toy_components[i] != NULL; i++)
        if (kiln_component_check(toy_components[i], &err) < 0)
            fail_msg("%s", err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_nested_tables),
        cmocka_unit_test(test_whole_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
