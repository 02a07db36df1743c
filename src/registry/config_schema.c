/* Finds what a group's files configure, and describes it as JSON Schema (schema/json_schema.c). */
#include "registry/config_schema.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "config/tree/tree.h"
#include "schema/bind.h"
#include "schema/json_schema.h"
#include "schema/table.h"

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
    kiln_text_append(&text, "\n  groups: ");
    for (size_t i = 0; i < count; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    kiln_names_free(names, count);
    return kiln_text_to_error(&text, KILN_E_KEY, err);
}

/* The row of the root's table that has the group's name; NULL: none. */
static const KilnField *root_field(const KilnComposeRequest *request, const char *group)
{
    const KilnSection *root = kiln_section_find(request->sections, "");
    const KilnField *field = root != NULL ? kiln_table_find(root->fields, group) : NULL;

    return field != NULL && field->type == KILN_TYPE_COMPONENT ? field : NULL;
}

/* The section of a folder: "kiln/run" is that of `kiln.run`. */
static const KilnSection *group_section(const KilnComposeRequest *request, const char *group)
{
    char key[KILN_PATH_PART];

    snprintf(key, sizeof(key), "%s", group);
    for (char *slash = key; (slash = strchr(slash, '/')) != NULL;)
        *slash = '.';
    return kiln_section_find(request->sections, key);
}

/* The type of a group by its name. */
static bool named_type(const KilnComposeRequest *request, const char *group, KilnGroupType *ret)
{
    const KilnField *field = root_field(request, group);
    const KilnSection *section = group_section(request, group);
    const char *name = kiln_starts_with(group, "kiln/") ? group + strlen("kiln/") : group;
    KilnKind kind = kiln_kind_find(name, strlen(name));

    if (group[0] == '\0')
        *ret = (KilnGroupType) { .form = KILN_GROUP_ROOT,
                                 .section = kiln_section_find(request->sections, "") };
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
                             .section = scan.global ? kiln_section_find(request->sections, "")
                                                    : NULL };
    return KILN_OK;
}

/* ---- Defaults lists --------------------------------------------------------------------- */

/* Add an option to the list of its top group, those of the folders in it as "mnist/cnn". */
static void add_option(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    json_t **groups = ctx;
    const size_t length = strcspn(group, "/");
    char top[KILN_PATH_PART];

    (void)file;
    if (length == 0 || length >= sizeof(top))
        return;
    snprintf(top, sizeof(top), "%.*s", (int)length, group);
    if (json_object_get(*groups, top) == NULL)
        kiln_json_put(groups, top, json_array());
    json_array_append_new(json_object_get(*groups, top),
                          group[length] != '\0' ? json_sprintf("%s/%s", group + length + 1, option)
                                                : json_string(option));
}

/* GROUP: OPTION for every group, and the same with `override /` before it. The value is an option
 * (perhaps of a file yet to be written), several, or none. */
static json_t *selections_json(const KilnComposeRequest *request)
{
    json_t *groups = json_object(), *selections = json_object(), *options;
    const char *name;
    char override[KILN_PATH_PART + 16];

    (void)!kiln_compose_files(request, add_option, &groups, NULL);
    json_object_foreach(groups, name, options)
    {
        json_t *option = json_pack("{s:[{s:O}, {s:[s,s]}, {s:s, s:{s:s}}]}", "anyOf", "enum",
                                   options, "type", "string", "null", "type", "array", "items",
                                   "type", "string");

        snprintf(override, sizeof(override), "override /%s", name);
        kiln_json_put(&selections, name, json_incref(option));
        kiln_json_put(&selections, override, option);
    }
    json_decref(groups);
    return selections;
}

/* `defaults:` of a file: names of files, and one GROUP: OPTION each. */
static json_t *defaults_json(const KilnComposeRequest *request)
{
    return json_pack(
        "{s:s, s:s, s:{s:[{s:s}, {s:s, s:i, s:i, s:o, s:{s:[s,s,s]}}]}}", "description",
        "the files that this one is merged from, in order: GROUP: OPTION, a file's name, _self_",
        "type", "array", "items", "anyOf", "type", "string", "type", "object", "minProperties", 1,
        "maxProperties", 1, "properties", selections_json(request), "additionalProperties", "type",
        "string", "array", "null");
}

/* ---- Documents ---------------------------------------------------------------------------- */

/* The table at `name` within `properties`, made if missing: a mapping of any keys, null, or an
 * interpolation. */
static json_t *open_table(json_t *properties, const char *name)
{
    json_t *table = json_object_get(properties, name);

    if (table == NULL) {
        table = json_pack("{s:[{s:s, s:{}, s:b}, {s:s}, {s:s}]}", "anyOf", "type", "object",
                          "properties", "additionalProperties", true, "type", "null", "$ref",
                          "#/definitions/interpolation");
        if (json_object_set_new(properties, name, table) != 0)
            return NULL;
    }
    return json_array_get(json_object_get(table, "anyOf"), 0);
}

/* Put a section's table at its key: `kiln.run` is `run` in the table `kiln`, which may be a section
 * too. */
static bool put_section(KilnJsonSchema *schema, json_t *properties, const KilnSection *section)
{
    json_t *own = kiln_json_table(schema, section->fields, false, section->open), *table = NULL;
    char part[KILN_PATH_PART];

    for (const char *rest = section->key; properties != NULL && kiln_path_next(&rest, part);) {
        table = open_table(properties, part);
        properties = json_object_get(table, "properties");
    }
    bool good = own != NULL && properties != NULL &&
                json_object_update(properties, json_object_get(own, "properties")) == 0 &&
                json_object_set(table, "additionalProperties",
                                json_object_get(own, "additionalProperties")) == 0 &&
                json_object_set_new(table, "description", json_string(section->summary)) == 0;
    json_decref(own);
    return good;
}

/* Put the top groups that hold one component each and are no row of the root's table. */
static bool put_groups(const KilnComposeRequest *request, KilnJsonSchema *schema,
                       json_t *properties)
{
    char **names = NULL;
    size_t count = 0;
    bool good = kiln_compose_options(request, "", true, &names, &count, NULL) >= 0;

    for (size_t i = 0; i < count && good; i++) {
        KilnGroupType type;

        if (json_object_get(properties, names[i]) != NULL ||
            !named_type(request, names[i], &type) || type.form != KILN_GROUP_COMPONENT)
            continue;
        const KilnField field = { .name = names[i],
                                  .type = KILN_TYPE_COMPONENT,
                                  .optional = true,
                                  .value = "null",
                                  .help = "selected from the group of that name",
                                  .component_kind = type.kind };
        good = json_object_set_new(properties, names[i], kiln_json_value(schema, &field)) == 0;
    }
    kiln_names_free(names, count);
    return good;
}

static json_t *root_json(const KilnComposeRequest *request, KilnJsonSchema *schema)
{
    const KilnSection *root = kiln_section_find(request->sections, "");
    json_t *table = kiln_json_table(schema, root != NULL ? root->fields : NULL, true,
                                    root == NULL || root->open);
    json_t *properties = json_object_get(table, "properties");
    bool good = properties != NULL && put_groups(request, schema, properties);

    for (const KilnSection *s = request->sections; s != NULL && s->key != NULL && good; s++)
        good = s->key[0] == '\0' || put_section(schema, properties, s);
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
    char *text = NULL;
    KilnStatus status = kiln_group_type(request, group, &type, err);

    if (status < 0)
        return status;
    if (request->registry != NULL) {
        schema.components = request->registry->items;
        schema.count = request->registry->count;
    }
    kiln_text_append(&title, group[0] == '\0' ? "kiln: a config" : "kiln: a file of group ");
    kiln_text_append(&title, group);
    schema.defaults = defaults_json(request);
    if (!title.failed)
        text = kiln_json_document(&schema, title.data, type_json(request, &schema, &type));
    json_decref(schema.defaults);
    kiln_text_release(&title);
    if (text == NULL)
        return kiln_error_nomem(err, 0);
    *ret = text;
    return KILN_OK;
}
