/* kiln list: all components. kiln version: what this program is. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "registry/plugin/plugin_record.h"
#include "registry/signature/model_match.h"
#include "schema/options_help.h"
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

static json_t *component_json(const KilnComponent *component)
{
    KilnText signature = { 0 };

    kiln_signature_text(&signature, component);
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:o}", "kind", kiln_kind_name(component->kind),
                             "name", component->name, "summary", component->summary, "signature",
                             signature.data != NULL ? signature.data : "", "options",
                             kiln_help_json(component->fields));
    kiln_text_release(&signature);
    return json;
}

/* Components, and the sections of a config, with their options. */
static KilnStatus print_json(const KilnRegistry *registry, const KilnSection *sections,
                             KilnError *err)
{
    json_t *components = json_array(), *parts = json_array();

    for (size_t i = 0; i < kiln_registry_count(registry); i++)
        kiln_json_add(&components, component_json(kiln_registry_at(registry, i)));
    for (const KilnSection *s = sections; s->key != NULL; s++)
        kiln_json_add(&parts, json_pack("{s:s, s:s?, s:o}", "key", s->key, "summary", s->summary,
                                        "options", kiln_help_json(s->fields)));
    json_t *all = json_pack("{s:o, s:o}", "components", components, "sections", parts);
    char *text = kiln_json_dump(all, JSON_INDENT(2));
    if (text != NULL)
        puts(text);
    json_decref(all);
    free(text);
    return text != NULL ? KILN_OK : kiln_error_nomem(err, 0);
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
    if (args->json)
        return print_json(registry, kiln_command_request(args, registry).sections, err);
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
