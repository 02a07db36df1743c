/* kiln list: all components. kiln version: what this program is. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "registry/plugin/plugin_record.h"
#include "train/report/run_messages.h"

/* The plugins, each with its checksum and its components. */
static void put_plugins(const KilnRegistry *registry, KilnPage *page)
{
    if (registry->plugin_count > 0)
        kiln_page_heading(page, "plugins");
    for (size_t i = 0; i < registry->plugin_count; i++) {
        const KilnPlugin *plugin = &registry->plugins[i];
        KilnText components = { 0 };

        kiln_plugin_put_components(plugin, &components);
        kiln_page_line(page, 2, kiln_path_near(plugin->path));
        kiln_page_pair(page, 26, "  components", "%s",
                       components.data != NULL ? components.data : "");
        kiln_page_pair(page, 26, "  from", "%s, %s %s", plugin->from,
                       plugin->python ? "of Python" : "built for kiln", plugin->version);
        kiln_page_pair(page, 26, "  sha256", "%s", plugin->sum);
        kiln_text_release(&components);
    }
}

static KilnStatus list(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config, void *ctx,
                       KilnError *err)
{
    KilnPage page = kiln_screen_page();
    KilnKind kind = KILN_KIND_COUNT;

    (void)config;
    (void)ctx;
    if (args->n_words > 0)
        return kiln_error_set(err, KILN_E_USAGE,
                              "list takes no names; `kiln show %s` shows a component or group",
                              args->words[0]);
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);

        if (i == 0 || component->kind != kind)
            kiln_page_heading(&page, "%s%s", kiln_kind_name(component->kind),
                              component->kind == KILN_KIND_MODULE ? " (group task)" : "");
        kind = component->kind;
        kiln_page_pair(&page, 26, component->name, "%s", component->summary);
    }
    put_plugins(registry, &page);
    kiln_page_heading(&page, "more");
    kiln_page_pair(&page, 26, "kiln show GROUP", "the components of a group, with options");
    kiln_page_pair(&page, 26, "kiln show GROUP/NAME", "one component, with examples");
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

int kiln_command_list(KilnArgs *args)
{
    return kiln_command_run(args, false, list, NULL);
}

int kiln_command_version(KilnArgs *args)
{
    KilnError err = { 0 };

    if (!args->version && args->n_words > 0) {
        kiln_error_set(&err, KILN_E_USAGE, "%s: version takes no words", args->words[0]);
        return kiln_screen_result(args->command, err.status, &err);
    }
#ifdef __clang__
    const char *compiler = "";
#else
    const char *compiler = "gcc ";
#endif
    printf("kiln %s\nplugins: ABI %u\nbuilt by %s%s\n", KILN_VERSION, KILN_ABI, compiler,
           __VERSION__);
    return 0;
}
