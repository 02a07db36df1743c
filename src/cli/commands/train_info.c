/* train --info: the search path, the defaults list and the plugins of a config. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "config/provenance/info.h"
#include "kiln/run.h"

static bool wants(const KilnArgs *args, const char *what)
{
    return strcmp(args->info, what) == 0 || strcmp(args->info, "all") == 0;
}

static void heading(KilnText *text, const char *title)
{
    kiln_text_printf(text, "%s%s\n\n", text->length > 0 ? "\n" : "", title);
}

static void append_plugins(const KilnArgs *args, const KilnRegistry *registry, KilnText *text)
{
    heading(text, "Plugins");
    for (size_t i = 0; args->plugins[i] != NULL; i++)
        kiln_text_printf(text, "%s\n", args->plugins[i]);
    if (args->plugins[0] == NULL)
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

static KilnStatus append_config(const KilnConfig *config, KilnText *text, KilnError *err)
{
    char *yaml = NULL;
    KilnStatus status = kiln_config_yaml(config, NULL, false, &yaml, err);

    if (status >= 0) {
        heading(text, "Config");
        kiln_text_append(text, yaml);
    }
    free(yaml);
    return status;
}

static KilnStatus append_composed(const KilnArgs *args, const KilnConfig *config, KilnText *text,
                                  KilnError *err)
{
    bool all = wants(args, "config");

    if (all || wants(args, "searchpath")) {
        heading(text, "Search path, first hit wins");
        kiln_info_searchpath(config, text);
    }
    if (wants(args, "defaults-tree")) {
        heading(text, "Defaults tree");
        kiln_info_tree(config, text);
    }
    if (all || wants(args, "defaults")) {
        heading(text, "Defaults list, in the order of merging: later ones win");
        kiln_info_defaults(config, text);
    }
    return all ? append_config(config, text, err) : KILN_OK;
}

int kiln_command_info(const KilnArgs *args, const KilnRegistry *registry)
{
    KilnConfig *config = NULL;
    KilnText text = { 0 };
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    if (wants(args, "plugins"))
        append_plugins(args, registry, &text);
    if (strcmp(args->info, "plugins") != 0) {
        status = kiln_command_compose(args, registry, false, &config);
        if (status >= 0)
            status = append_composed(args, config, &text, &err);
    }
    if (!text.failed && text.length > 0)
        fputs(text.data, stdout);
    kiln_text_release(&text);
    const int exit_status = kiln_screen_result(args->command, status, &err);
    kiln_config_free(config);
    return exit_status;
}
