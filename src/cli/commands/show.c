/* kiln show: one component, group, section or config file, with examples. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/help/config_users.h"
#include "cli/help/example.h"
#include "cli/help/selection.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "config/compose.h"
#include "kiln/metric.h"
#include "registry/config_schema.h"
#include "registry/registry.h"
#include "registry/signature/model_match.h"

typedef struct Show {
    KilnPage *page;
    const KilnComposeRequest *request;
    const char *word;               /* the name on the command line */
    const char *const *plugins;     /* loaded by flags, NULL-terminated */
    const KilnConfig *config;       /* the primary config; NULL: it does not compose */
    const KilnComponent *component; /* the named one; NULL: none */
    bool found;                     /* the word is a config file */
    KilnArena arena;
    const char **names; /* that could be meant by an unknown word */
    size_t n_names, capacity;
} Show;

/* ---- Components ------------------------------------------------------------------------- */

/* A file of a group that adds the component below a key: callbacks.early_stopping. */
static void append_below_key(const Show *show, const char *key, const char *dot)
{
    const KilnSelection *now = kiln_selection_find(show->config, key, (size_t)(dot - key));
    KilnText *text = &show->page->text;
    int indent = 2;

    if (now != NULL && now->option != NULL && now->option[0] != '[')
        kiln_text_printf(text, "  defaults:\n    - %s\n", now->option);
    for (; *dot == '.'; indent += 2) {
        const char *part = dot + 1;

        dot = part + strcspn(part, ".");
        kiln_text_printf(text, "%*s%.*s:\n", indent, "", (int)(dot - part), part);
    }
    kiln_example_file(text, show->component, indent);
}

/* A config file that selects the component, with all its options. */
static void append_example(const Show *show, const KilnComponentSlot *slot)
{
    const char *key = slot->key, *dot = strchr(key, '.');
    KilnText *text = &show->page->text;

    if (slot->listed) {
        kiln_page_heading(show->page, "example: an item of %s", key);
        const size_t start = text->length;
        kiln_example_file(text, show->component, 4);
        if (!text->failed)
            memcpy(text->data + start + 2, "- ", 2);
    } else if (dot != NULL && !kiln_starts_with(key, "kiln.")) {
        kiln_page_heading(show->page, "example: conf/%.*s/mine.yaml", (int)(dot - key), key);
        append_below_key(show, key, dot);
    } else {
        kiln_page_heading(show->page, "example: conf/%s%s/mine.yaml", dot != NULL ? "kiln/" : "",
                          dot != NULL ? dot + 1 : key);
        kiln_example_file(text, show->component, 2);
    }
}

/* One line that changes an option, and one that sweeps it. Options of kiln's own are the same for
 * all runs of a sweep; a tokenizer is trained alone. */
static void append_try(Show *show, const KilnComponentSlot *slot)
{
    const KilnField *fields = show->component->fields, *field = NULL;
    const char *words = slot->overrides, *value = NULL;
    KilnText *text = &show->page->text;
    const bool own = kiln_starts_with(slot->key, "kiln.");
    const bool alone = show->component->kind == KILN_KIND_TOKENIZER;

    if (!slot->listed) {
        words = kiln_arena_printf(&show->arena, "%s%s", words,
                                  kiln_example_required(&show->arena, fields, slot->key));
        field = kiln_example_field(&show->arena, fields, &value);
    }
    if (kiln_registry_plugin_of(show->request->registry, show->component) != NULL)
        for (const char *const *plugin = show->plugins; *plugin != NULL; plugin++)
            words = kiln_arena_printf(&show->arena, " --plugin %s%s", *plugin, words);
    kiln_page_heading(show->page, "try");
    kiln_text_printf(text, "  %s%s",
                     alone ? "kiln tokenizer train files=FILE"
                     : own ? "train -m lr=0.1,0.01"
                           : "train",
                     words);
    if (field != NULL)
        kiln_text_printf(text, " %s.%s=%s", slot->key, field->name, value);
    kiln_text_char(text, '\n');
    if (!own && !alone && field != NULL && strchr(field->value, '$') == NULL)
        kiln_text_printf(text, "  train -m%s %s.%s=%s,%s\n", words, slot->key, field->name,
                         field->value, value);
}

/* The inputs of a metric that no built-in task provides; NULL: one does. */
static const char *plugin_inputs(const KilnComponent *component)
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
    case KILN_METRIC_DETECTIONS:
        return "boxes";
    default:
        return NULL;
    }
}

/* Whether a model gives nothing for a sample as a whole, nor classes, so that it is part of other
 * models. */
static bool is_part(const KilnComponent *component)
{
    if (component->kind != KILN_KIND_MODEL)
        return false;
    const KilnSignature *signature = component->ops.model->signature;
    for (size_t i = 0; i < signature->n_outputs; i++)
        if (signature->outputs[i].content == KILN_VECTOR ||
            (signature->outputs[i].axes != NULL &&
             strstr(signature->outputs[i].axes, "classes") != NULL))
            return false;
    return true;
}

/* The models that may have this one as a part. */
static void append_wholes(const Show *show)
{
    const KilnRegistry *registry = show->request->registry;
    const KilnSignature *part = show->component->ops.model->signature;

    kiln_page_heading(show->page, "used by");
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *whole = kiln_registry_at(registry, i);
        size_t n = 0;
        const KilnModelUse *uses = kiln_component_models(whole, &n);

        for (size_t u = 0; u < n; u++) {
            const KilnModelPair pair = { .use = &uses[u], .signature = part };

            if (uses[u].feeds == NULL && kiln_model_match(&pair).misfit == KILN_FITS)
                kiln_text_printf(&show->page->text, "  %s/%s, in its option %s\n",
                                 kiln_kind_name(whole->kind), whole->name, uses[u].option);
        }
    }
}

static void append_use(Show *show)
{
    const char *inputs = plugin_inputs(show->component);

    if (is_part(show->component)) {
        append_wholes(show);
        return;
    }
    if (inputs != NULL) {
        kiln_page_heading(show->page, "used by");
        kiln_text_printf(&show->page->text,
                         "  a task from a plugin that gives it %s (kiln/metric.h); kiln's own "
                         "tasks give classes\n",
                         inputs);
        return;
    }
    const KilnComponentSlot slot = kiln_component_slot_find(&show->arena, show->config,
                                                            show->request, show->component);
    if (show->arena.failed)
        return;
    append_example(show, &slot);
    append_try(show, &slot);
}

static void append_heading(const Show *show, const KilnComponent *c)
{
    kiln_page_heading(show->page, "%s/%s: %s", kiln_kind_name(c->kind), c->name, c->summary);
}

static KilnStatus show_component(Show *show, KilnError *err)
{
    append_heading(show, show->component);
    kiln_selection_signature(show->page, show->component);
    kiln_page_heading(show->page, "options");
    kiln_selection_options(show->page, show->component->fields, "", NULL);
    append_use(show);
    kiln_page_heading(show->page, "selected by");
    return kiln_config_users_print(show->page, show->request, show->component, NULL, err);
}

/* ---- Groups, sections, files ---------------------------------------------------------------- */

static KilnStatus show_group(const Show *show, const KilnGroupType *type, KilnError *err)
{
    const KilnRegistry *registry = show->request->registry;
    bool typed = type->form == KILN_GROUP_COMPONENT || type->form == KILN_GROUP_MAP;

    if (type->form == KILN_GROUP_SECTION) {
        kiln_page_heading(show->page, "%s: %s", show->word, type->section->summary);
        kiln_selection_options(show->page, type->section->fields, "", NULL);
    }
    for (size_t i = 0; typed && i < kiln_registry_count(registry); i++) {
        const KilnComponent *c = kiln_registry_at(registry, i);

        if (c->kind != type->kind)
            continue;
        append_heading(show, c);
        kiln_selection_signature(show->page, c);
        kiln_selection_options(show->page, c->fields, "", NULL);
    }
    kiln_page_heading(show->page, "files");
    KilnStatus status = kiln_config_users_print(show->page, show->request, NULL, show->word, err);
    kiln_page_heading(show->page, "more");
    kiln_page_pair(show->page, 36, "kiln show GROUP/NAME", "one of them, with examples");
    return status;
}

/* Show the file that the word names, as it is. */
static void visit_file(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    static const char inside[] = "kiln:conf/"; /* the program */
    static const size_t largest = (size_t)1 << 26;
    Show *show = ctx;
    char *text = NULL;
    size_t size;

    (void)group;
    (void)option;
    if (strcmp(file->path, show->word) != 0 || file->content->layer == KILN_LAYER_DEFAULT)
        return;
    show->found = true;
    kiln_page_heading(show->page, "%s: %s", show->word, file->source);
    const KilnShippedFile *shipped = kiln_starts_with(file->source, inside)
                                         ? kiln_shipped_find(file->source + strlen(inside))
                                         : NULL;
    if (shipped == NULL && kiln_file_read(file->source, largest, &text, &size, NULL) < 0)
        return;
    for (const char *line = shipped != NULL ? shipped->text : text; *line != '\0';) {
        const size_t n = strcspn(line, "\n");

        kiln_text_printf(&show->page->text, "%s%.*s\n", n > 0 ? "  " : "", (int)n, line);
        line += n + (line[n] == '\n');
    }
    free(text);
}

/* ---- Finding the name ----------------------------------------------------------------------- */

/* "callbacks/early_stopping" and "task/vision" name components by their groups. */
static const KilnComponent *in_group(Show *show)
{
    const char *slash = strrchr(show->word, '/'), *group = NULL;
    KilnGroupType type;

    if (slash != NULL)
        group = kiln_arena_strndup(&show->arena, show->word, (size_t)(slash - show->word));
    if (group == NULL || kiln_group_type(show->request, group, &type, NULL) < 0 ||
        (type.form != KILN_GROUP_COMPONENT && type.form != KILN_GROUP_MAP))
        return NULL;
    return kiln_registry_find(show->request->registry, type.kind, slash + 1);
}

/* Add "group/option", "option" and "group" to the names that could be meant. */
static void add_names(Show *show, const char *group, const char *option)
{
    const char *const added[] = { kiln_arena_printf(&show->arena, "%s/%s", group, option),
                                  kiln_arena_strdup(&show->arena, option),
                                  kiln_arena_strdup(&show->arena, group) };

    if (KILN_ARENA_RESERVE(&show->arena, show->names, show->capacity, show->n_names + 3))
        for (size_t i = 0; i < KILN_COUNT(added) && !show->arena.failed; i++)
            show->names[show->n_names++] = added[i];
}

static void visit_name(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    (void)file;
    if (group[0] != '\0')
        add_names(ctx, group, option);
}

static KilnStatus unknown(Show *show, KilnError *err)
{
    const KilnRegistry *registry = show->request->registry;
    KilnStatus status = kiln_compose_files(show->request, visit_name, show, err);

    if (status < 0)
        return status;
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *c = kiln_registry_at(registry, i);

        add_names(show, kiln_kind_name(c->kind), c->name);
    }
    const char *nearest = kiln_nearest(show->word, show->names, show->n_names);
    return kiln_error_set(err, KILN_E_KEY,
                          "there is no component, group, section or config file "
                          "\"%.80s\"%s%s%s; `kiln list` lists components, `train --help` groups, "
                          "--plugin FILE.so adds those of a plugin",
                          show->word, nearest != NULL ? "; did you mean \"" : "",
                          nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

static KilnStatus show_word(Show *show, KilnError *err)
{
    const KilnRegistry *registry = show->request->registry;
    KilnGroupType type;
    KilnError ignored, ambiguous = { 0 };
    KilnStatus status;

    if (kiln_starts_with(show->word, KILN_PYTHON_PREFIX)) {
        status = kiln_registry_describe(registry, show->word, KILN_KIND_ANY, NULL, &show->component,
                                        err);

        return status >= 0 ? show_component(show, err) : status;
    }
    show->component = in_group(show);
    if (show->component != NULL ||
        (strchr(show->word, '/') != NULL &&
         kiln_registry_target(registry, show->word, KILN_KIND_ANY, &show->component, NULL) >= 0))
        return show_component(show, err);
    status = kiln_compose_files(show->request, visit_file, show, err);
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

static KilnStatus print(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config, void *ctx,
                        KilnError *err)
{
    KilnComposeRequest request = kiln_command_request(args, registry);
    KilnPage page = kiln_screen_page();

    (void)ctx;
    if (args->n_words != 1)
        return kiln_error_set(err, KILN_E_USAGE,
                              "show takes one name (model/resnet, optimizer, trainer), not %zu",
                              args->n_words);
    request.overrides = NULL;                     /* the word is a name */
    (void)!kiln_compose(&request, &config, NULL); /* help works without it */
    Show show = { .page = &page,
                  .request = &request,
                  .word = args->words[0],
                  .plugins = args->plugins,
                  .config = config };
    KilnStatus status = show_word(&show, err);

    page.text.failed |= show.arena.failed;
    kiln_arena_release(&show.arena);
    kiln_config_free(config);
    if (status < 0)
        kiln_text_release(&page.text);
    else if (kiln_screen_print(&page) != 0)
        status = kiln_error_nomem(err, 0);
    return status;
}

int kiln_command_show(KilnArgs *args)
{
    return kiln_command_run(args, false, print, NULL);
}
