/* JSON Schema of options tables: one table row for each type, shape and flag. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "registry/config_schema.h"
#include "schema/json_schema.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

static size_t toy_count(void)
{
    return KILN_COUNT(toy_components) - 1;
}

/* The value at "a/b/0/c" below `json`; fails the test when nothing is there. */
static json_t *at(json_t *json, const char *path)
{
    char part[64];

    for (const char *p = path; *p != '\0'; p += strspn(p, "/")) {
        size_t n = strcspn(p, "/");

        assert_true(n < sizeof(part));
        memcpy(part, p, n);
        part[n] = '\0';
        json = json_is_array(json) ? json_array_get(json, (size_t)(part[0] - '0'))
                                   : json_object_get(json, part);
        if (json == NULL)
            fail_msg("no %s in %s", part, path);
        p += n;
    }
    return json;
}

static void check_text(json_t *json, const char *path, const char *want)
{
    const char *text = json_string_value(at(json, path));

    assert_non_null(text);
    assert_string_equal(text, want);
}

static void test_types(void **unused)
{
    KilnJsonSchema schema = { .components = toy_components, .count = toy_count() };
    json_t *table = kiln_json_table(&schema, toy_all_fields, false, false);
    json_t *all = at(table, "properties");

    (void)unused;
    assert_true(json_is_false(at(table, "additionalProperties")));
    check_text(all, "flag/anyOf/0/type", "boolean");
    assert_true(json_is_true(at(all, "flag/default")));
    check_text(all, "flag/description", "a flag");
    check_text(all, "count/anyOf/0/type", "integer");
    assert_int_equal(json_integer_value(at(all, "count/anyOf/0/minimum")), -5);
    assert_int_equal(json_integer_value(at(all, "count/anyOf/0/maximum")), 1000);
    check_text(all, "rate/anyOf/0/type", "number");
    assert_null(json_object_get(at(all, "rate/anyOf/0"), "maximum"));
    check_text(all, "label/anyOf/0/type/0", "string");
    check_text(all, "note/anyOf/1/type", "null");
    check_text(all, "mode/anyOf/0/enum/1", "max");
    check_text(all, "sizes/anyOf/0/type", "array");
    check_text(all, "sizes/anyOf/0/items/anyOf/0/type", "integer");
    check_text(all, "sizes/anyOf/1/$ref", "#/definitions/interpolation");
    assert_int_equal(json_integer_value(at(all, "sizes/default/1")), 2);
    json_decref(table);
}

static void test_components(void **unused)
{
    KilnJsonSchema schema = { .components = toy_components, .count = toy_count() };
    json_t *task = kiln_json_table(&schema, toy_task_fields, true, false);

    (void)unused;
    check_text(task, "properties/defaults/$ref", "#/definitions/defaults");
    check_text(task, "properties/model/anyOf/0/$ref", "#/definitions/model");
    check_text(task, "properties/teacher/anyOf/1/type", "null");
    check_text(task, "properties/transforms/anyOf/0/items/anyOf/0/$ref", "#/definitions/transform");
    check_text(task, "properties/hooks/anyOf/0/additionalProperties/anyOf/0/$ref",
               "#/definitions/callback");
    assert_true(schema.referred[KILN_KIND_MODEL] && schema.referred[KILN_KIND_CALLBACK]);
    assert_false(schema.referred[KILN_KIND_LOGGER]);
    json_decref(task);
}

/* All that is referred to is defined, and no more. */
static void test_document(void **unused)
{
    json_t *defaults = json_pack("{s:s}", "type", "array");
    KilnJsonSchema schema = { .components = toy_components,
                              .count = toy_count(),
                              .defaults = defaults };
    char *text = kiln_json_document(&schema, "a title",
                                    kiln_json_component(&schema, KILN_KIND_MODULE, true));
    json_t *document;

    (void)unused;
    assert_non_null(text);
    document = json_loads(text, 0, NULL);
    assert_non_null(document);
    check_text(document, "title", "a title");
    assert_non_null(at(document, "definitions/model/anyOf/1/allOf"));
    assert_non_null(at(document, "definitions/callback"));
    assert_non_null(at(document, "definitions/interpolation"));
    assert_null(json_object_get(at(document, "definitions"), "module"));
    assert_null(json_object_get(at(document, "definitions"), "logger"));
    for (const char *p = text; (p = strstr(p, "#/definitions/")) != NULL;) {
        char name[64];
        size_t n;

        p += strlen("#/definitions/");
        n = strcspn(p, "\"");
        assert_true(n < sizeof(name));
        memcpy(name, p, n);
        name[n] = '\0';
        assert_non_null(at(at(document, "definitions"), name));
    }
    json_decref(document);
    json_decref(defaults);
    free(text);
}

typedef struct Limits {
    double timeout;
    int64_t memory;
} Limits;

typedef struct Job {
    Limits limits;
    int64_t colour, depth;
} Job;

static const KilnField limits_fields[] = {
    KILN_FIELD_DURATION(Limits, timeout, "1h", 1.0, 86400.0, "longest time"),
    KILN_FIELD_SIZE(Limits, memory, "64MiB", 0, 1e12, "most memory"),
    KILN_FIELD_END,
};

static const KilnChoice colours[] = { { "auto", 0 }, { "on", 1 }, { NULL, 0 } };
static const KilnChoice depths[] = { { "18", 18 }, { "34", 34 }, { NULL, 0 } };

static const KilnField job_fields[] = {
    { .name = "limits", .type = KILN_TYPE_STRUCT, .fields = limits_fields, .help = "allowed" },
    KILN_FIELD_ENUM(Job, colour, "auto", colours, "colours"),
    KILN_FIELD_ENUM(Job, depth, NULL, depths, "layers"),
    { .name = "layers", .type = KILN_TYPE_ENUM, .renamed = "depth" },
    KILN_FIELD_END,
};

static void test_marks(void **unused)
{
    KilnJsonSchema schema = { 0 };
    json_t *table = kiln_json_table(&schema, job_fields, false, true);
    json_t *all = at(table, "properties");

    (void)unused;
    assert_true(json_is_true(at(table, "additionalProperties")));
    check_text(all, "limits/anyOf/0/properties/timeout/anyOf/0/type", "number");
    check_text(all, "limits/anyOf/0/properties/timeout/default", "1h");
    check_text(all, "limits/anyOf/0/properties/memory/anyOf/1/type", "string");
    assert_true(json_is_false(at(all, "limits/anyOf/0/additionalProperties")));
    check_text(all, "colour/anyOf/0/enum/1", "on");
    assert_true(json_is_true(at(all, "colour/anyOf/0/enum/2")));
    assert_int_equal(json_integer_value(at(all, "depth/anyOf/0/enum/0")), 18);
    check_text(all, "depth/description", "layers (required)");
    check_text(all, "layers/deprecationMessage", "its name is depth now");
    assert_int_equal(json_integer_value(at(all, "layers/anyOf/0/enum/1")), 34);
    json_decref(table);
}

/* `kiln` is a section, and so are parts of it, in any order. */
static void test_nested_sections(void **unused)
{
    static const KilnSection sections[] = {
        { .key = "",
          .fields = toy_root_fields,
          .size = sizeof(ToyRoot),
          .open = true,
          .summary = "r" },
        { .key = "kiln.run", .fields = limits_fields, .size = sizeof(Limits), .summary = "runs" },
        { .key = "kiln", .fields = toy_wide_fields, .open = true, .summary = "own" },
        { .key = "kiln.sweep", .fields = job_fields, .open = true, .summary = "sweeps" },
        { .key = NULL },
    };
    char *folder = folder_make();
    KilnComposeRequest request = { .config_path = folder, .sections = sections };
    char *text = NULL;
    json_t *document, *kiln;

    (void)unused;
    assert_int_equal(kiln_group_schema(&request, "", &text, NULL), KILN_OK);
    document = json_loads(text, 0, NULL);
    kiln = at(document, "properties/kiln/anyOf/0");
    check_text(kiln, "description", "own");
    assert_true(json_is_true(at(kiln, "additionalProperties")));
    assert_non_null(at(kiln, "properties/width"));
    assert_non_null(at(kiln, "properties/run/anyOf/0/properties/timeout"));
    assert_true(json_is_false(at(kiln, "properties/run/anyOf/0/additionalProperties")));
    assert_non_null(at(kiln, "properties/sweep/anyOf/0/properties/depth"));
    json_decref(document);
    free(text);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),           cmocka_unit_test(test_components),
        cmocka_unit_test(test_document),        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_nested_sections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
