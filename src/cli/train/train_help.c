/* train --help: usage, groups, the selected components and values; with arguments, the options of
 * what they select. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/help/selection.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "config/yaml/output.h"
#include "config/compose.h"
#include "kiln/embed/run.h"
#include "registry/option_defaults.h"
#include "registry/registry.h"
#include "schema/table.h"

/* Where the right columns start. */
enum { GROUPS = 16, VALUES = 36 };

typedef struct Help {
    KilnPage *page;
    const KilnArgs *args;
    const KilnRegistry *registry;
    const KilnConfig *config; /* NULL: it does not compose */
    const KilnComposeRequest *request;
    bool named; /* append_options: what the arguments name, not the rest */
    bool any;   /* a component has been shown */
} Help;

static void append_usage(KilnPage *page)
{
    static const char *const examples[] = {
        "train",
        "the default config",
        "train model=resnet lr=0.1",
        "another option of a group, another value",
        "train model.dropout=0.1 seed=7",
        "any option of a selected component",
        "train +note=x '~callbacks.progress_bar'",
        "add a key, delete a key",
        "train experiment=mnist/cnn datamodule.root=DIR",
        "a recipe: several groups and values at once",
        "train resume=last",
        "resume the newest run, in its folder, with its config",
        "train resume=RUN trainer.max_epochs=20",
        "resume another one, with overrides on top",
        "train ckpt_path=last",
        "a new run from the newest one's last checkpoint",
        "train -m model=mlp,cnn lr=0.1,0.01",
        "a sweep: one run for each combination",
        "train model=resnet --help",
        "the options of what the words select",
    };

    kiln_page_words(page, 7, "usage: train [GROUP=OPTION...] [KEY=VALUE...] [FLAG...]");
    kiln_text_append(&page->text, "\n\n");
    kiln_page_words(page, 0,
                    "Composes a config, checks it, trains, and leaves everything in a run folder.");
    kiln_page_heading(page, "examples");
    for (size_t i = 0; i < KILN_COUNT(examples); i += 2)
        kiln_page_pair(page, 50, examples[i], "%s", examples[i + 1]);
}

/* ---- Groups ------------------------------------------------------------------------ */

/* Whether `option` is the selected one ("mlp") or one of several ("[a, b]"). */
static bool is_selected(const KilnSelection *selection, const char *option)
{
    size_t length = strlen(option);
    const char *at = selection != NULL && selection->option != NULL ? selection->option : "";

    for (at += strspn(at, "[, "); *at != '\0'; at += strspn(at, "], ")) {
        size_t word = strcspn(at, "], ");

        if (word == length && strncmp(at, option, length) == 0)
            return true;
        at += word;
    }
    return false;
}

typedef struct Groups {
    const Help *help;
    KilnText name, options; /* of the group whose options are being read: "model", "cnn* mlp " */
} Groups;

static void end_group(Groups *groups)
{
    if (groups->options.length > 0)
        kiln_page_pair(groups->help->page, GROUPS, groups->name.data, "%s", groups->options.data);
    kiln_text_clear(&groups->name);
    kiln_text_clear(&groups->options);
}

/* Folders inside a group of the defaults list are part of its options' names
 * (experiment=mnist/cnn); others are groups of their own. */
static void add_option(void *ctx, const char *path, const char *option, const KilnConfigFile *file)
{
    Groups *groups = ctx;
    const KilnConfig *config = groups->help->config;
    size_t length = strlen(path), n = length;

    if (path[0] == '\0')
        return;
    while (n > 0 && kiln_selection_find(config, path, n) == NULL)
        while (n > 0 && path[--n] != '/')
            ;
    length = n > 0 ? n : length;
    if (groups->name.length != length || strncmp(groups->name.data, path, length) != 0) {
        end_group(groups);
        kiln_text_append_n(&groups->name, path, length);
    }
    const size_t start = path[length] == '/' ? length + 1 : 0; /* of the option's name */
    const char *name = start > 0 ? file->path + start : option;
    kiln_text_printf(&groups->options, "%s%s ", name,
                     is_selected(kiln_selection_find(config, path, length), name) ? "*" : "");
}

static void append_groups(const Help *help)
{
    Groups groups = { .help = help };

    kiln_page_heading(help->page, "groups and their options: GROUP=OPTION (* is selected)");
    (void)!kiln_compose_files(help->request, add_option, &groups, NULL);
    end_group(&groups);
    help->page->text.failed |= groups.name.failed || groups.options.failed;
    kiln_text_release(&groups.name);
    kiln_text_release(&groups.options);
}

/* ---- Components and values ----------------------------------------------------------- */

static void append_component(void *ctx, const KilnConfigNode *node, const char *path,
                             const KilnComponent *component)
{
    Help *help = ctx;

    (void)node;
    if (kiln_starts_with(path, "kiln."))
        return;
    if (!help->any)
        kiln_page_heading(help->page, "selected components");
    help->any = true;
    kiln_text_printf(&help->page->text, "  %s", path);
    kiln_page_beside(help->page, VALUES, "%s: %s", component->name, component->summary);
}

/* Append the paths of values that refer to ${name}: "optimizer.lr, model.lr". */
static void append_users(KilnText *text, const KilnConfig *config, const KilnConfigNode *node,
                         const char *name)
{
    const char *at = node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION
                         ? strstr(node->text, name)
                         : NULL;

    if (at > node->text + 1 && at[-1] == '{' && strchr("}.[:", at[strlen(name)]) != NULL)
        kiln_text_printf(text, "%s%s", text->length > 0 ? ", " : "used by ",
                         kiln_node_path(config, node));
    for (size_t i = 0; i < node->count; i++)
        append_users(text, config, node->entries[i].value, name);
}

/* The values at the top level: "  lr=0.05    used by optimizer.lr". */
static void append_variables(const Help *help)
{
    const KilnConfigNode *root = kiln_config_root(help->config);
    const KilnField *fields = kiln_run_sections()[0].fields;

    kiln_page_heading(help->page, "values at the top level");
    for (size_t i = 0; i < root->count; i++) {
        const KilnEntry *entry = &root->entries[i];
        const KilnField *field = kiln_table_find(fields, entry->key);
        KilnText users = { 0 };

        if (entry->value->kind != KILN_NODE_SCALAR || kiln_config_hides(help->config, entry->key))
            continue;
        append_users(&users, help->config, root, entry->key);
        kiln_text_printf(&help->page->text, "  %s=", entry->key);
        kiln_selection_value(&help->page->text, help->config, entry->value);
        kiln_page_beside(help->page, VALUES, "%s%s%s", users.length > 0 ? users.data : "",
                         users.length > 0 && field != NULL ? "; " : "",
                         field != NULL ? field->help : "");
        kiln_text_release(&users);
    }
}

static void append_overview(Help *help)
{
    append_usage(help->page);
    append_groups(help);
    if (help->config != NULL) {
        kiln_selection_visit(help->config, help->registry, append_component, help);
        append_variables(help);
    }
    kiln_flags_write(help->page, help->args->command);
    kiln_page_heading(help->page, "more");
    kiln_page_pair(help->page, 50, "train GROUP=OPTION --help",
                   "options with types, ranges, defaults");
    kiln_page_pair(help->page, 50, "kiln show GROUP/OPTION", "one component, with examples");
}

/* ---- Options ----------------------------------------------------------------------------- */

/* Whether `path` is at, above or below `key`. */
static bool related(const char *path, const char *key, size_t length)
{
    size_t n = strlen(path);
    size_t shorter = n < length ? n : length;

    return strncmp(path, key, shorter) == 0 &&
           (n == length || (n > length ? path[length] : key[n]) == '.');
}

/* Whether an argument is about the part of the tree at `path`. */
static bool is_named(const Help *help, const char *path)
{
    for (size_t i = 0; i < help->args->n_words; i++) {
        const char *word = help->args->words[i] + strspn(help->args->words[i], "+~");

        if (related(path, word, strcspn(word, "=@")))
            return true;
    }
    return false;
}

static void append_component_options(void *ctx, const KilnConfigNode *node, const char *path,
                                     const KilnComponent *component)
{
    const Help *help = ctx;

    (void)node;
    if (is_named(help, path) != help->named)
        return;
    kiln_page_heading(help->page, "%s: %s/%s, %s", path, kiln_kind_name(component->kind),
                      component->name, component->summary);
    kiln_selection_signature(help->page, component);
    kiln_selection_options(help->page, component->fields, path, help->config);
}

static void append_section_options(const Help *help)
{
    for (const KilnSection *section = kiln_run_sections(); section->key != NULL; section++) {
        if (is_named(help, section->key) != help->named)
            continue;
        kiln_page_heading(help->page, "%s: %s",
                          section->key[0] != '\0' ? section->key : "(top level)", section->summary);
        kiln_selection_options(help->page, section->fields, section->key, help->config);
    }
}

/* The options that the arguments name, then the rest. */
static void append_options(Help *help)
{
    kiln_page_words(help->page, 0,
                    "Options of the selected components: KEY=VALUE changes one. Columns: option, "
                    "type, default, help. `train --help` without arguments shows groups and "
                    "flags.");
    for (int first = 1; first >= 0; first--) {
        help->named = first == 1;
        kiln_selection_visit(help->config, help->registry, append_component_options, help);
        append_section_options(help);
    }
}

int kiln_command_train_help(const KilnArgs *args, const KilnRegistry *registry)
{
    KilnComposeRequest request = kiln_command_request(args, registry);
    KilnPage page = kiln_screen_page();
    KilnConfig *config = NULL;
    KilnStatus status = kiln_command_compose(args, registry, false, &config);
    Help help = {
        .page = &page, .args = args, .registry = registry, .config = config, .request = &request
    };

    if (status >= 0 && args->n_words > 0 && kiln_option_defaults_is_about(config))
        append_options(&help);
    else
        append_overview(&help);
    kiln_config_free(config);
    int exit_status = kiln_screen_print(&page);
    return status < 0 ? kiln_screen_exit_status(status) : exit_status;
}
