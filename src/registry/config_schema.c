/* Finds what a group's files are about, and describes it as JSON Schema. */
#include "registry/config_schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "schema/json_schema.h"
#include "schema/table.h"

static const KilnSection *section_find(const KilnComposeRequest *request, const char *key)
{
    const KilnSection *section = request->sections;

    for (; section != NULL && section->key != NULL; section++)
        if (strcmp(section->key, key) == 0)
            return section;
    return NULL;
}

/* ---- What a group is ------------------------------------------------------------------ */

typedef struct Scan {
    const char *group;
    bool there, global;
} Scan;

static void scan_file(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    Scan *scan = ctx;
    size_t n = strlen(scan->group);

    (void)option;
    if (strncmp(group, scan->group, n) != 0 || (group[n] != '\0' && group[n] != '/'))
        return;
    scan->there = true;
    if (file->package != NULL && strcmp(file->package, "_global_") == 0)
        scan->global = true;
}

static KilnStatus unknown_group(const KilnComposeRequest *request, const char *group,
                                KilnError *err)
{
    char **names = NULL;
    size_t count = 0;
    KilnText text = { 0 };
    KilnStatus status = kiln_compose_options(request, "", true, &names, &count, err);

    if (status < 0)
        return status;
    const char *near = kiln_nearest(group, (const char *const *)names, count);
    kiln_text_printf(&text, "there is no group \"%.80s\"", group);
    if (near != NULL)
        kiln_text_printf(&text, "; did you mean \"%s\"?", near);
    kiln_text_append(&text, "\n  there are: ");
    for (size_t i = 0; i < count; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    status = text.failed ? kiln_error_nomem(err, 0)
                         : kiln_error_set(err, KILN_E_KEY, "%s", text.data);
    kiln_text_release(&text);
    kiln_names_free(names, count);
    return status;
}

/* The row of the root's table that has the group's name; NULL: none. */
static const KilnField *root_field(const KilnComposeRequest *request, const char *group)
{
    const KilnSection *root = section_find(request, "");
    const KilnField *field = root != NULL ? kiln_table_find(root->fields, group) : NULL;

    return field != NULL && field->type == KILN_TYPE_COMPONENT ? field : NULL;
}

/* The section of a folder: "kiln/run" is that of `kiln.run`. */
static const KilnSection *group_section(const KilnComposeRequest *request, const char *group)
{
    const KilnSection *section = request->sections;

    for (; section != NULL && section->key != NULL; section++) {
        size_t i = 0;

        while (group[i] != '\0' && (group[i] == '/' ? '.' : group[i]) == section->key[i])
            i++;
        if (i > 0 && group[i] == '\0' && section->key[i] == '\0')
            return section;
    }
    return NULL;
}

/* Groups that say by their name what they are. */
static bool named_type(const KilnComposeRequest *request, const char *group, KilnGroupType *ret)
{
    const KilnField *field = root_field(request, group);
    const KilnSection *section = group_section(request, group);
    const char *name = kiln_starts_with(group, "kiln/") ? group + strlen("kiln/") : group;
    KilnKind kind = kiln_kind_find(name, strlen(name));

    if (group[0] == '\0')
        *ret = (KilnGroupType) { .form = KILN_GROUP_ROOT, .section = section_find(request, "") };
    else if (field != NULL)
        *ret = (KilnGroupType) { .form = field->shape == KILN_ONE ? KILN_GROUP_COMPONENT
                                                                  : KILN_GROUP_MAP,
                                 .kind = field->component_kind };
    else if (section != NULL)
        *ret = (KilnGroupType) { .form = KILN_GROUP_SECTION, .section = section };
    else if (kind != KILN_KIND_ANY)
        *ret = (KilnGroupType) { .form = KILN_GROUP_COMPONENT, .kind = kind };
    else
        return false;
    return true;
}

KilnStatus kiln_group_type(const KilnComposeRequest *request, const char *group, KilnGroupType *ret,
                           KilnError *err)
{
    Scan scan = { .group = group };

    if (named_type(request, group, ret))
        return KILN_OK;
    KilnStatus status = kiln_compose_files(request, scan_file, &scan, err);
    if (status < 0)
        return status;
    if (!scan.there)
        return unknown_group(request, group, err);
    *ret = (KilnGroupType) { .form = scan.global ? KILN_GROUP_ROOT : KILN_GROUP_FREE,
                             .section = scan.global ? section_find(request, "") : NULL };
    return KILN_OK;
}

/* ---- Defaults lists --------------------------------------------------------------------- */

/* Append the options of a group, those of the folders in it as "mnist/cnn". */
static void add_options(const KilnComposeRequest *request, const char *group, const char *path,
                        json_t *ret)
{
    char **names = NULL;
    size_t count = 0, skip = strlen(group);

    for (int folders = 0; folders < 2; folders++) {
        if (kiln_compose_options(request, path, folders == 1, &names, &count, NULL) < 0)
            return;
        for (size_t i = 0; i < count; i++) {
            KilnText name = { 0 };

            kiln_text_printf(&name, "%s/%s", path, names[i]);
            if (!name.failed && folders == 1)
                add_options(request, group, name.data, ret);
            else if (!name.failed)
                json_array_append_new(ret, json_string(name.data + skip + 1));
            kiln_text_release(&name);
        }
        kiln_names_free(names, count);
    }
}

/* An entry's value: an option, which may be one of a file yet to be written; several;
 * or none. */
static json_t *option_json(const KilnComposeRequest *request, const char *group)
{
    json_t *known = json_array(), *value;

    add_options(request, group, group, known);
    value = json_pack("{s:[{s:[s,s]}, {s:s, s:{s:s}}]}", "anyOf", "type", "string", "null", "type",
                      "array", "items", "type", "string");
    if (json_array_size(known) > 0)
        json_array_insert_new(json_object_get(value, "anyOf"), 0,
                              json_pack("{s:O}", "enum", known));
    json_decref(known);
    return value;
}

/* GROUP: OPTION for every group, and the same with `override /` in front. */
static json_t *choices_json(const KilnComposeRequest *request)
{
    json_t *choices = json_object();
    char **names = NULL;
    size_t count = 0;

    if (kiln_compose_options(request, "", true, &names, &count, NULL) < 0)
        return choices;
    for (size_t i = 0; i < count; i++) {
        json_t *option = strcmp(names[i], "kiln") != 0 ? option_json(request, names[i]) : NULL;
        KilnText override = { 0 };

        kiln_text_printf(&override, "override /%s", names[i]);
        if (option != NULL && !override.failed) {
            json_object_set(choices, names[i], option);
            json_object_set(choices, override.data, option);
        }
        kiln_text_release(&override);
        json_decref(option);
    }
    kiln_names_free(names, count);
    return choices;
}

/* `defaults:` of a file: names of files, and one GROUP: OPTION each. */
static json_t *defaults_json(const KilnComposeRequest *request)
{
    return json_pack(
        "{s:s, s:s, s:{s:[{s:s}, {s:s, s:i, s:i, s:o, s:{s:[s,s,s]}}]}}", "description",
        "the files that this one is merged from, in order: GROUP: OPTION, a file's name, _self_",
        "type", "array", "items", "anyOf", "type", "string", "type", "object", "minProperties", 1,
        "maxProperties", 1, "properties", choices_json(request), "additionalProperties", "type",
        "string", "array", "null");
}

/* ---- Documents ---------------------------------------------------------------------------- */

/* The table at `name` within `properties`, made when it is not there: a mapping of any
 * keys, which may also be null or an interpolation. */
static json_t *open_table(json_t *properties, const char *name, size_t length)
{
    char *key = strndup(name, length);
    json_t *there = key != NULL ? json_object_get(properties, key) : NULL;

    if (key != NULL && there == NULL &&
        json_object_set_new(properties, key,
                            json_pack("{s:[{s:s, s:{}, s:b}, {s:s}, {s:s}]}", "anyOf", "type",
                                      "object", "properties", "additionalProperties", true, "type",
                                      "null", "$ref", "#/definitions/interpolation")) == 0)
        there = json_object_get(properties, key);
    free(key);
    return json_array_get(json_object_get(there, "anyOf"), 0);
}

/* A section's table at its place: `kiln.run` is `run` in the table `kiln`, which may be
 * a section too. */
static bool put_section(KilnJsonSchema *schema, json_t *properties, const KilnSection *section)
{
    json_t *own = kiln_json_table(schema, section->fields, false, section->open);
    json_t *table = NULL;
    bool good = own != NULL;

    for (const char *key = section->key; good && *key != '\0'; key += strspn(key, ".")) {
        size_t length = strcspn(key, ".");

        table = open_table(properties, key, length);
        properties = json_object_get(table, "properties");
        key += length;
    }
    good = good && properties != NULL &&
           json_object_update(properties, json_object_get(own, "properties")) == 0 &&
           json_object_set(table, "additionalProperties",
                           json_object_get(own, "additionalProperties")) == 0 &&
           json_object_set_new(table, "description", json_string(section->summary)) == 0;
    json_decref(own);
    return good;
}

/* Groups at the top that hold one component each, and are no row of the root's table. */
static bool put_groups(const KilnComposeRequest *request, KilnJsonSchema *schema,
                       json_t *properties)
{
    char **names = NULL;
    size_t count = 0;
    bool good = kiln_compose_options(request, "", true, &names, &count, NULL) >= 0;

    for (size_t i = 0; i < count && good; i++) {
        KilnField field = { .name = names[i],
                            .type = KILN_TYPE_COMPONENT,
                            .optional = true,
                            .value = "null",
                            .help = "chosen from the group of that name" };
        KilnGroupType type;

        if (json_object_get(properties, names[i]) != NULL ||
            !named_type(request, names[i], &type) || type.form != KILN_GROUP_COMPONENT)
            continue;
        field.component_kind = type.kind;
        good = json_object_set_new(properties, names[i], kiln_json_value(schema, &field)) == 0;
    }
    kiln_names_free(names, count);
    return good;
}

static json_t *root_json(const KilnComposeRequest *request, KilnJsonSchema *schema)
{
    const KilnSection *root = section_find(request, "");
    json_t *table = kiln_json_table(schema, root != NULL ? root->fields : NULL, true,
                                    root == NULL || root->open);
    json_t *properties = json_object_get(table, "properties");
    bool good = properties != NULL && put_groups(request, schema, properties);

    for (const KilnSection *s = request->sections; s != NULL && s->key != NULL && good; s++)
        if (s->key[0] != '\0')
            good = put_section(schema, properties, s);
    if (good)
        return table;
    json_decref(table);
    return NULL;
}

static json_t *type_json(const KilnComposeRequest *request, KilnJsonSchema *schema,
                         const KilnGroupType *type)
{
    switch (type->form) {
    case KILN_GROUP_ROOT:
        return root_json(request, schema);
    case KILN_GROUP_COMPONENT:
        return kiln_json_component(schema, type->kind, true);
    case KILN_GROUP_MAP:
        return kiln_json_component_map(schema, type->kind, true);
    case KILN_GROUP_SECTION:
        return kiln_json_table(schema, type->section->fields, true, type->section->open);
    default:
        return kiln_json_table(schema, NULL, true, true);
    }
}

KilnStatus kiln_group_schema(const KilnComposeRequest *request, const char *group, char **ret,
                             KilnError *err)
{
    KilnJsonSchema schema = { 0 };
    KilnGroupType type;
    KilnText title = { 0 };
    KilnStatus status = kiln_group_type(request, group, &type, err);

    if (status < 0)
        return status;
    if (request->registry != NULL) {
        schema.components = request->registry->items;
        schema.count = request->registry->count;
    }
    if (group[0] == '\0')
        kiln_text_append(&title, "kiln: a config");
    else
        kiln_text_printf(&title, "kiln: a file of group %s", group);
    schema.defaults = defaults_json(request);
    char *text = NULL;
    if (schema.defaults != NULL && !title.failed)
        text = kiln_json_document(&schema, title.data, type_json(request, &schema, &type));
    json_decref(schema.defaults);
    kiln_text_release(&title);
    if (text == NULL)
        return kiln_error_nomem(err, 0);
    *ret = text;
    return KILN_OK;
}
