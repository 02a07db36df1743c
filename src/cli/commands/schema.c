/* schema: what config files may say, as an outline or as JSON Schema. */
#include "registry/config_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "kiln/run.h"
#include "schema/options_help.h"

typedef struct Outline {
    KilnPage *page;
    const KilnComposeRequest *request;
} Outline;

static void append_table(const Outline *outline, const KilnField *fields, const char *prefix,
                         int indent)
{
    KilnHelpTable table = { .fields = fields, .prefix = prefix, .indent = indent };

    kiln_help_table(outline->page, &table);
}

static void append_components(const Outline *outline, KilnKind kind)
{
    const KilnRegistry *registry = outline->request->registry;

    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *c = kiln_registry_at(registry, i);
        KilnText name = { 0 };

        if (c->kind != kind)
            continue;
        kiln_text_printf(&name, "_target_: %s/%s", kiln_kind_name(kind), c->name);
        if (!name.failed)
            kiln_page_pair(outline->page, 40, name.data, c->summary);
        kiln_text_release(&name);
        append_table(outline, c->fields, "", 4);
    }
}

/* "conf/model/: one model; files: cnn linear mlp resnet" */
static void append_heading(const Outline *outline, const char *group, const char *what)
{
    char **names = NULL;
    size_t count = 0;
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s/*.yaml: %s", group, what);
    if (kiln_compose_options(outline->request, group, false, &names, &count, NULL) >= 0 &&
        count > 0) {
        kiln_text_append(&text, "; there are");
        for (size_t i = 0; i < count; i++)
            kiln_text_printf(&text, "%s %s", i > 0 ? "," : "", names[i]);
    }
    kiln_page_heading(outline->page, "%s", text.failed ? group : text.data);
    kiln_names_free(names, count);
    kiln_text_release(&text);
}

static KilnStatus append_group(const Outline *outline, const char *group, KilnError *err)
{
    KilnPage *page = outline->page;
    KilnText what = { 0 };
    KilnGroupType type;
    KilnStatus status = kiln_group_type(outline->request, group, &type, err);

    if (status < 0)
        return status;
    switch (type.form) {
    case KILN_GROUP_COMPONENT:
        kiln_text_printf(&what, "one %s", kiln_kind_name(type.kind));
        append_heading(outline, group, what.failed ? "" : what.data);
        append_components(outline, type.kind);
        break;
    case KILN_GROUP_MAP:
        kiln_text_printf(&what, "any number of %ss, each below a name of its own",
                         kiln_kind_name(type.kind));
        append_heading(outline, group, what.failed ? "" : what.data);
        append_components(outline, type.kind);
        break;
    case KILN_GROUP_SECTION:
        append_heading(outline, group, type.section->summary);
        append_table(outline, type.section->fields, "", 2);
        break;
    case KILN_GROUP_ROOT:
        append_heading(outline, group, "keys of the whole config (# @package _global_)");
        break;
    default:
        append_heading(outline, group, "any keys");
        break;
    }
    if (type.form != KILN_GROUP_SECTION && type.form != KILN_GROUP_COMPONENT &&
        type.form != KILN_GROUP_MAP)
        kiln_page_pair(page, 12, "defaults", "list of files to merge");
    kiln_text_release(&what);
    return KILN_OK;
}

static void append_primary(const Outline *outline)
{
    KilnPage *page = outline->page;

    kiln_page_heading(page, "config.yaml: the primary config");
    kiln_page_pair(
        page, 12, "defaults",
        "list of files to merge, in order: GROUP: OPTION, the name of a file, _self_ for "
        "this one; `override /GROUP: OPTION` changes a choice made elsewhere");
    for (const KilnSection *s = outline->request->sections; s->key != NULL; s++) {
        KilnText prefix = { 0 };

        kiln_text_printf(&prefix, "%s%s", s->key, s->key[0] != '\0' ? "." : "");
        if (!prefix.failed)
            append_table(outline, s->fields, prefix.data, 2);
        kiln_text_release(&prefix);
    }
    kiln_page_pair(page, 12, "NAME", "any key of your own, used as ${NAME}");
}

static KilnStatus append_outline(const Outline *outline, const char *group, KilnError *err)
{
    char **names = NULL;
    size_t count = 0;
    KilnStatus status = KILN_OK;

    if (group[0] != '\0')
        return append_group(outline, group, err);
    append_primary(outline);
    status = kiln_compose_options(outline->request, "", true, &names, &count, err);
    for (size_t i = 0; i < count && status >= 0; i++)
        if (strcmp(names[i], "kiln") != 0)
            status = append_group(outline, names[i], err);
    kiln_names_free(names, count);
    kiln_page_heading(outline->page, "more");
    kiln_page_pair(outline->page, 28, "kiln schema --json [GROUP]",
                   "the same as JSON Schema, for editors");
    return status;
}

static KilnStatus print(const KilnArgs *args, const KilnComposeRequest *request, KilnError *err)
{
    const char *group = args->n_words > 0 ? args->words[0] : "";
    KilnPage page = kiln_screen_page();
    Outline outline = { .page = &page, .request = request };
    char *json = NULL;
    KilnStatus status = args->json ? kiln_group_schema(request, group, &json, err)
                                   : append_outline(&outline, group, err);

    if (status >= 0 && json != NULL)
        kiln_text_printf(&page.text, "%s\n", json);
    free(json);
    if (status < 0)
        kiln_text_release(&page.text);
    else if (kiln_screen_print(&page) != 0)
        status = kiln_error_nomem(err, 0);
    return status;
}

int kiln_command_schema(KilnArgs *args)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status < 0)
        return kiln_screen_exit_status(status);
    KilnComposeRequest request = kiln_command_request(args, registry);
    request.overrides = NULL; /* the word is a name */
    if (args->n_words > 1)
        status = kiln_error_set(&err, KILN_E_USAGE, "schema takes one group, not %zu words",
                                args->n_words);
    else
        status = print(args, &request, &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    kiln_registry_free(registry);
    return kiln_screen_exit_status(status);
}
