/* show: one component, group, section or config file, with examples. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/help/config_users.h"
#include "cli/commands/commands.h"
#include "cli/help/example.h"
#include "cli/screen/screen.h"
#include "config/compose.h"
#include "config/yaml/yaml_writer.h"
#include "kiln/metric.h"
#include "kiln/run.h"
#include "registry/config_schema.h"
#include "schema/options_help.h"
#include "schema/table.h"

typedef struct Show {
    KilnPage *page;
    const KilnComposeRequest *request;
    const char *word;               /* what is asked for */
    const KilnConfig *config;       /* the primary config; NULL: it does not compose */
    const KilnComponent *component; /* what it is, if it is one */
    bool found;                     /* the word is a config file */
} Show;

static void append_table(KilnPage *page, const KilnField *fields)
{
    KilnHelpTable table = { .fields = fields, .prefix = "", .indent = 2 };

    if (kiln_table_count(fields) == 0)
        kiln_page_line(page, 2, "none");
    kiln_help_table(page, &table);
}

/* ---- Components ------------------------------------------------------------------------- */

/* The option of a group that is chosen now; NULL: none. */
static const char *chosen_option(const Show *show, const char *group, size_t length)
{
    const KilnSelection *selection;

    for (size_t i = 0;
         show->config != NULL && (selection = kiln_config_selection(show->config, i)) != NULL; i++)
        if (strlen(selection->key) == length && strncmp(selection->key, group, length) == 0)
            return selection->option;
    return NULL;
}

/* What is chosen now, and the component beside it. */
static void append_beside(const Show *show, KilnText *file, const char *key, const char *dot)
{
    const char *now = chosen_option(show, key, (size_t)(dot - key));
    int indent = 2;

    if (now != NULL && now[0] != '[')
        kiln_text_printf(file, "  defaults:\n    - %s\n", now);
    for (const char *part = dot; part != NULL; indent += 2) {
        const char *next = strchr(part + 1, '.');
        size_t length = next != NULL ? (size_t)(next - part - 1) : strlen(part + 1);

        kiln_text_printf(file, "%*s%.*s:\n", indent, "", (int)length, part + 1);
        part = next;
    }
    kiln_example_file(file, show->component, indent);
}

/* The file is one of a group where the kind has one, else it goes below a key. */
static void append_example(Show *show, const KilnComponentSlot *place)
{
    const KilnComponent *component = show->component;
    const char *dot = place->key.data != NULL ? strchr(place->key.data, '.') : NULL;
    KilnText file = { 0 };

    if (place->listed) {
        kiln_page_heading(show->page, "example: an item of %s", place->key.data);
        kiln_example_file(&file, component, 4);
        if (!file.failed)
            memcpy(file.data + 2, "- ", 2);
    } else if (dot != NULL && !kiln_starts_with(place->key.data, "kiln.")) {
        kiln_page_heading(show->page, "example: conf/%.*s/mine.yaml", (int)(dot - place->key.data),
                          place->key.data);
        append_beside(show, &file, place->key.data, dot);
    } else {
        kiln_page_heading(show->page, "example: conf/%s%s/mine.yaml", dot != NULL ? "kiln/" : "",
                          dot != NULL ? dot + 1 : place->key.data);
        kiln_example_file(&file, component, 2);
    }
    if (file.failed)
        show->page->text.failed = true;
    else
        kiln_text_append(&show->page->text, file.data);
    kiln_text_release(&file);
}

/* One line that changes an option, one that sweeps over it. What is kiln's own is the
 * same for all runs of a sweep. */
static void append_lines(Show *show, const KilnComponentSlot *place, const char *words,
                         const char *value)
{
    const KilnField *field = place->listed ? NULL : kiln_example_field(show->component->fields);
    const char *key = place->key.data;
    KilnText *text = &show->page->text;
    bool own = kiln_starts_with(key, "kiln.");

    kiln_text_printf(text, "  train%s%s", own ? " -m lr=0.1,0.01" : "", words);
    if (field != NULL)
        kiln_text_printf(text, " %s.%s=%s", key, field->name, value);
    kiln_text_char(text, '\n');
    if (!own && field != NULL && strchr(field->value, '$') == NULL)
        kiln_text_printf(text, "  train -m%s %s.%s=%s,%s\n", words, key, field->name, field->value,
                         value);
}

static void append_try(Show *show, const KilnComponentSlot *place)
{
    const KilnField *field = place->listed ? NULL : kiln_example_field(show->component->fields);
    KilnText words = { 0 }, value = { 0 };

    kiln_page_heading(show->page, "try");
    kiln_text_append(&words, place->choose.data);
    if (!place->listed)
        kiln_example_required(&words, show->component->fields, place->key.data);
    if (field != NULL)
        kiln_example_value(&value, field);
    if (words.failed || value.failed)
        show->page->text.failed = true;
    else
        append_lines(show, place, words.data, value.data);
    kiln_text_release(&words);
    kiln_text_release(&value);
}

/* What a metric counts that no task of kiln's own gives; NULL: one does. */
static const char *without_task(const KilnComponent *component)
{
    if (component->kind != KILN_KIND_METRIC)
        return NULL;
    switch (component->ops.metric->takes) {
    case KILN_METRIC_VALUES:
        return "numbers";
    case KILN_METRIC_RANKINGS:
        return "rankings";
    case KILN_METRIC_SEQUENCES:
        return "texts or tags";
    default:
        return NULL;
    }
}

static void append_use(Show *show, const KilnComponentSlot *place)
{
    const char *counted = without_task(show->component);

    if (counted != NULL) {
        kiln_page_heading(show->page, "used by");
        kiln_text_printf(
            &show->page->text,
            "  a task from a plugin that gives it %s (kiln/metric.h); kiln's own tasks "
            "give classes\n",
            counted);
        return;
    }
    append_example(show, place);
    append_try(show, place);
}

static KilnStatus show_component(Show *show, KilnError *err)
{
    const KilnComponent *c = show->component;
    KilnComponentSlot place = { 0 };

    kiln_page_heading(show->page, "%s/%s: %s", kiln_kind_name(c->kind), c->name, c->summary);
    kiln_page_heading(show->page, "options");
    append_table(show->page, c->fields);
    kiln_place_find(show->config, show->request->registry, show->request->sections, c, &place);
    if (place.key.failed || place.choose.failed) {
        show->page->text.failed = true;
    } else {
        append_use(show, &place);
    }
    kiln_place_release(&place);
    kiln_page_heading(show->page, "chosen by");
    return kiln_config_users_print(show->page, show->request, c, err);
}

/* ---- Groups, sections, files ---------------------------------------------------------------- */

static KilnStatus show_group(Show *show, const KilnGroupType *type, KilnError *err)
{
    const KilnRegistry *registry = show->request->registry;
    bool typed = type->form == KILN_GROUP_COMPONENT || type->form == KILN_GROUP_MAP;

    if (type->form == KILN_GROUP_SECTION) {
        kiln_page_heading(show->page, "%s: %s", show->word, type->section->summary);
        append_table(show->page, type->section->fields);
    }
    for (size_t i = 0; typed && i < kiln_registry_count(registry); i++) {
        const KilnComponent *c = kiln_registry_at(registry, i);

        if (c->kind != type->kind)
            continue;
        kiln_page_heading(show->page, "%s/%s: %s", kiln_kind_name(c->kind), c->name, c->summary);
        append_table(show->page, c->fields);
    }
    kiln_page_heading(show->page, "files");
    KilnStatus status = kiln_config_users_print_group(show->page, show->request, show->word, err);
    kiln_page_heading(show->page, "more");
    kiln_page_pair(show->page, 36, "kiln show GROUP/NAME", "one of them, with examples");
    return status;
}

static void append_yaml(Show *show, const char *key, const KilnConfigNode *node)
{
    KilnEntry entry = { .key = key, .value = (KilnConfigNode *)node };
    KilnConfigNode map = { .kind = KILN_NODE_MAP, .entries = &entry, .count = 1 };
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text };

    if (kiln_write_node(&writer, key != NULL ? &map : node, NULL) >= 0)
        for (const char *line = text.data; line != NULL && *line != '\0';) {
            size_t n = strcspn(line, "\n");

            kiln_text_printf(&show->page->text, "  %.*s\n", (int)n, line);
            line += n + (line[n] == '\n');
        }
    kiln_text_release(&text);
}

static void visit_file(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    Show *show = ctx;

    (void)group;
    (void)option;
    if (strcmp(file->path, show->word) != 0 || file->content->layer == KILN_LAYER_DEFAULT)
        return;
    show->found = true;
    kiln_page_heading(show->page, "%s: %s", show->word, file->source);
    if (file->package != NULL)
        kiln_text_printf(&show->page->text, "  # @package %s\n", file->package);
    if (file->defaults != NULL)
        append_yaml(show, "defaults", file->defaults);
    append_yaml(show, NULL, file->content);
}

/* ---- Finding what is meant ------------------------------------------------------------------ */

/* "callbacks/early_stopping" and "task/vision" name components by their groups. */
static const KilnComponent *in_group(const Show *show)
{
    const char *slash = strrchr(show->word, '/');
    KilnGroupType type;
    KilnText group = { 0 };
    const KilnComponent *found = NULL;

    if (slash == NULL)
        return NULL;
    kiln_text_append_n(&group, show->word, (size_t)(slash - show->word));
    if (!group.failed && kiln_group_type(show->request, group.data, &type, NULL) >= 0 &&
        (type.form == KILN_GROUP_COMPONENT || type.form == KILN_GROUP_MAP))
        found = kiln_registry_find(show->request->registry, type.kind, slash + 1);
    kiln_text_release(&group);
    return found;
}

static void visit_name(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    (void)file;
    if (group[0] != '\0')
        kiln_text_printf(ctx, "%s/%s\n%s\n%s\n", group, option, option, group);
}

/* The nearest of files, components and groups. */
static KilnStatus unknown(const Show *show, KilnError *err)
{
    const KilnRegistry *registry = show->request->registry;
    KilnText names = { 0 };
    const char **list = NULL;
    size_t n = 0, count = 0;
    KilnStatus status = kiln_compose_files(show->request, visit_name, &names, err);

    if (status < 0) {
        kiln_text_release(&names);
        return status;
    }
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *c = kiln_registry_at(registry, i);

        kiln_text_printf(&names, "%s/%s\n%s\n%s\n", kiln_kind_name(c->kind), c->name, c->name,
                         kiln_kind_name(c->kind));
    }
    for (const char *p = names.data; p != NULL && *p != '\0'; p++)
        n += *p == '\n';
    list = calloc(n + 1, sizeof(*list));
    for (char *p = names.data; list != NULL && p != NULL && count < n; p += strlen(p) + 1) {
        list[count++] = p;
        *strchr(p, '\n') = '\0';
    }
    const char *near = list != NULL ? kiln_nearest(show->word, list, count) : NULL;
    status = kiln_error_set(err, KILN_E_KEY,
                            "there is no component, group, section or config file \"%.80s\"%s%s%s; "
                            "kiln list shows components, kiln schema groups",
                            show->word, near != NULL ? "; did you mean \"" : "",
                            near != NULL ? near : "", near != NULL ? "\"?" : "");
    free(list);
    kiln_text_release(&names);
    return status;
}

static KilnStatus show_word(Show *show, KilnError *err)
{
    const KilnRegistry *registry = show->request->registry;
    KilnGroupType type;
    KilnError ignored, ambiguous = { 0 };

    show->component = in_group(show);
    if (show->component != NULL ||
        (strchr(show->word, '/') != NULL &&
         kiln_registry_target(registry, show->word, KILN_KIND_ANY, &show->component, NULL) >= 0))
        return show_component(show, err);
    KilnStatus status = kiln_compose_files(show->request, visit_file, show, err);
    if (status < 0 || show->found)
        return status;
    if (kiln_group_type(show->request, show->word, &type, &ignored) >= 0)
        return show_group(show, &type, err);
    if (kiln_registry_target(registry, show->word, KILN_KIND_ANY, &show->component, &ambiguous) >=
        0)
        return show_component(show, err);
    if (strstr(ambiguous.text, "is the name of") != NULL) {
        *err = ambiguous;
        return ambiguous.status;
    }
    return unknown(show, err);
}

/* What stands in the primary config, when that composes. */
static KilnConfig *present_config(const KilnComposeRequest *request)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;

    if (kiln_errors_new(&errors) >= 0 && kiln_compose(request, &config, errors) < 0)
        config = NULL;
    kiln_errors_free(errors);
    return config;
}

static KilnStatus print(const KilnComposeRequest *request, const char *word, KilnError *err)
{
    KilnPage page = kiln_screen_page();
    KilnConfig *config = present_config(request);
    Show show = { .page = &page, .request = request, .word = word, .config = config };
    KilnStatus status = show_word(&show, err);

    kiln_config_free(config);
    if (status < 0)
        kiln_text_release(&page.text);
    else if (kiln_screen_print(&page) != 0)
        status = kiln_error_nomem(err, 0);
    return status;
}

int kiln_command_show(KilnArgs *args)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status < 0)
        return kiln_screen_exit_status(status);
    KilnComposeRequest request = kiln_command_request(args, registry);
    request.overrides = NULL; /* the word is a name */
    if (args->n_words != 1)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "show takes one name (model/resnet, optimizer, trainer), not %zu",
                                args->n_words);
    else
        status = print(&request, args->words[0], &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    kiln_registry_free(registry);
    return kiln_screen_exit_status(status);
}
