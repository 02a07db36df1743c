/* train --help: how to use it, which groups there are, and the options of what
 * the arguments choose. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "kiln/run.h"
#include "registry/registry.h"
#include "schema/help.h"

static const char usage[] =
    "usage: train [FLAG...] [GROUP=OPTION...] [KEY=VALUE...]\n"
    "\n"
    "Composes a config, checks it, trains, and leaves everything in a run folder.\n"
    "\n"
    "  train                                  the default config\n"
    "  train model=resnet lr=0.1              another group option, another value\n"
    "  train model.depth=34 seed=7            any option of what is chosen\n"
    "  train +note=x '~callbacks.progress_bar'  add a key, delete a key\n"
    "  train experiment=mnist/cnn datamodule.root=DIR\n"
    "  train ckpt_path=last                   go on from the newest run's last checkpoint\n"
    "\n";

/* "  model          cnn linear mlp resnet", wrapped. */
static void append_group(KilnText *text, const KilnComposeRequest *request, const char *group)
{
    enum { WIDTH = 96, INDENT = 24 };
    char **names = NULL;
    size_t count = 0, column = INDENT;

    if (kiln_compose_options(request, group, false, &names, &count, NULL) < 0 || count == 0) {
        kiln_names_free(names, count);
        return;
    }
    kiln_text_printf(text, "  %-*s", INDENT - 2, group);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]) + 1;

        if (column + length > WIDTH) {
            kiln_text_printf(text, "\n%*s", INDENT, "");
            column = INDENT;
        }
        kiln_text_printf(text, "%s ", names[i]);
        column += length;
    }
    kiln_text_append(text, "\n");
    kiln_names_free(names, count);
}

/* A group's options, and those of the groups inside it: experiment/mnist. */
static void append_groups(KilnText *text, const KilnComposeRequest *request, const char *parent)
{
    char **groups = NULL;
    size_t count = 0;

    if (kiln_compose_options(request, parent, true, &groups, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        KilnText path = { 0 };

        kiln_text_printf(&path, "%s%s%s", parent, parent[0] != '\0' ? "/" : "", groups[i]);
        if (!path.failed && !kiln_starts_with(path.data, "kiln")) {
            append_group(text, request, path.data);
            append_groups(text, request, path.data);
        }
        kiln_text_release(&path);
    }
    kiln_names_free(groups, count);
}

/* The component that stands at `key`, and its options. */
static void append_chosen(KilnText *text, const KilnConfig *config, const KilnRegistry *registry,
                          const char *key)
{
    const KilnComponent *component = NULL;
    char target_key[128], prefix[128], *target = NULL;

    snprintf(target_key, sizeof(target_key), "%s._target_", key);
    snprintf(prefix, sizeof(prefix), "%s.", key);
    if (kiln_config_text(config, target_key, &target, NULL) >= 0 &&
        kiln_registry_target(registry, target, KILN_KIND_ANY, &component, NULL) >= 0) {
        kiln_text_printf(text, "%s: %s, %s\n", key, component->name, component->summary);
        if (component->fields != NULL)
            kiln_help_table(text, component->fields, prefix, 2);
    }
    free(target);
}

static void append_options(KilnText *text, const KilnConfig *config, const KilnRegistry *registry)
{
    static const char *const keys[] = { "task", "datamodule", "model", "optimizer", "scheduler" };

    for (size_t i = 0; i < KILN_COUNT(keys); i++)
        append_chosen(text, config, registry, keys[i]);
    for (const KilnSection *section = kiln_run_sections(); section->key != NULL; section++) {
        KilnText prefix = { 0 };

        kiln_text_printf(&prefix, "%s%s", section->key, section->key[0] != '\0' ? "." : "");
        kiln_text_printf(text, "%s: %s\n", section->key[0] != '\0' ? section->key : "(top level)",
                         section->summary);
        if (!prefix.failed)
            kiln_help_table(text, section->fields, prefix.data, 2);
        kiln_text_release(&prefix);
    }
}

int kiln_command_train_help(const KilnArgs *args, const KilnRegistry *registry)
{
    KilnComposeRequest request = {
        .config_path = args->config_path,
        .config_name = args->config_name,
        .config_dirs = args->config_dirs,
        .overrides = args->words,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
    KilnConfig *config = NULL;
    KilnText text = { 0 };
    KilnStatus status = kiln_command_compose(args, registry, false, &config);

    kiln_text_append(&text, usage);
    kiln_text_printf(&text, "flags:\n%s\ngroups and their options:\n", kiln_args_help());
    append_groups(&text, &request, "");
    if (status >= 0) {
        kiln_text_append(&text, "\noptions of what is chosen:\n\n");
        append_options(&text, config, registry);
    }
    if (!text.failed)
        fputs(text.data, stdout);
    kiln_text_release(&text);
    kiln_config_free(config);
    return kiln_screen_exit_status(status);
}
