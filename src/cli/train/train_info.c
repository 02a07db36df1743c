/* train --info: the search path, the defaults list and the plugins of a config. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "config/provenance/info.h"
#include "kiln/embed/run.h"
#include "registry/plugin/plugin_record.h"

static void heading(KilnText *text, const char *title)
{
    kiln_text_printf(text, "%s%s\n\n", text->length > 0 ? "\n" : "", title);
}

static void append_plugins(const KilnRegistry *registry, KilnText *text)
{
    heading(text, "Plugins");
    for (size_t i = 0; i < registry->plugin_count; i++) {
        const KilnPlugin *plugin = &registry->plugins[i];

        kiln_text_printf(text, "%s\n  of %s, %s %s, sha256 %s\n  ", plugin->path, plugin->from,
                         plugin->python ? "of Python" : "built for kiln", plugin->version,
                         plugin->sum);
        kiln_plugin_put_components(plugin, text);
        kiln_text_char(text, '\n');
    }
    if (registry->plugin_count == 0)
        kiln_text_append(text, "none (--plugin FILE.so loads one)\n");
    kiln_text_append(text, "\nComponents by kind, with those of plugins:\n\n");
    for (int kind = 0; kind < KILN_KIND_COUNT; kind++) {
        size_t n = 0;

        for (size_t i = 0; i < kiln_registry_count(registry); i++)
            n += kiln_registry_at(registry, i)->kind == (KilnKind)kind;
        if (n > 0)
            kiln_text_printf(text, "%-12s %zu\n", kiln_kind_name((KilnKind)kind), n);
    }
}

static void append_config(const KilnConfig *config, KilnText *text)
{
    char *yaml = NULL;

    if (kiln_config_yaml(config, NULL, false, &yaml, NULL) >= 0)
        kiln_text_append(text, yaml);
    else
        text->failed = true;
    free(yaml);
}

/* What --info prints of a config; `of_config`: --info config prints it, too. */
static const struct {
    const char *name, *title;
    void (*append)(const KilnConfig *config, KilnText *text);
    bool of_config;
} parts[] = {
    { "searchpath", "Search path, first hit wins", kiln_info_searchpath, true },
    { "defaults-tree", "Defaults tree", kiln_info_tree, false },
    { "defaults", "Defaults list, in the order of merging: later ones win", kiln_info_defaults,
      true },
    { "config", "Config", append_config, true },
};

int kiln_command_info(const KilnArgs *args, const KilnRegistry *registry)
{
    KilnConfig *config = NULL;
    KilnText text = { 0 };
    KilnError err = { 0 };
    const bool all = strcmp(args->info, "all") == 0, whole = strcmp(args->info, "config") == 0;
    KilnStatus status = KILN_OK;

    if (all || strcmp(args->info, "plugins") == 0)
        append_plugins(registry, &text);
    if (strcmp(args->info, "plugins") != 0)
        status = kiln_command_compose(args, registry, false, &config);
    for (size_t i = 0; config != NULL && i < KILN_COUNT(parts); i++) {
        if (!all && !(whole && parts[i].of_config) && strcmp(args->info, parts[i].name) != 0)
            continue;
        heading(&text, parts[i].title);
        parts[i].append(config, &text);
    }
    if (text.failed)
        status = kiln_error_nomem(&err, text.length);
    if (!text.failed && text.length > 0)
        fputs(text.data, stdout);
    kiln_text_release(&text);
    const int exit_status = kiln_screen_result(args->command, status, &err);
    kiln_config_free(config);
    return exit_status;
}
