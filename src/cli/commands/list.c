/* list: components and their options. version: what this program is. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "schema/options_help.h"

static const char *heading(KilnKind kind)
{
    return kind == KILN_KIND_MODULE ? "module (group task)" : kiln_kind_name(kind);
}

/* The kind that a word names; "task" is the group of modules. False: none. */
static bool kind_named(const char *word, KilnKind *ret)
{
    if (strcmp(word, "task") == 0)
        word = "module";
    if (strcmp(word, "callbacks") == 0)
        word = "callback";
    for (int k = 0; k < KILN_KIND_COUNT; k++)
        if (strcmp(kiln_kind_name((KilnKind)k), word) == 0) {
            *ret = (KilnKind)k;
            return true;
        }
    return false;
}

static KilnStatus unknown_group(const char *word, KilnError *err)
{
    const char *names[KILN_KIND_COUNT];
    KilnText list = { 0 };

    for (int k = 0; k < KILN_KIND_COUNT; k++) {
        names[k] = kiln_kind_name((KilnKind)k);
        kiln_text_printf(&list, " %s", names[k]);
    }
    const char *nearest = kiln_nearest(word, names, KILN_KIND_COUNT);
    kiln_error_set(err, KILN_E_USAGE, "there is no group %s%s%s%s; there are:%s", word,
                   nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "?)" : "", list.failed ? " (out of memory)" : list.data);
    kiln_text_release(&list);
    return KILN_E_USAGE;
}

/* All components, one line each; with `kind`, that kind's with their options. */
static void append_list(KilnPage *page, const KilnRegistry *registry, const KilnKind *kind)
{
    const char *last = NULL;

    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);

        if (kind != NULL && component->kind != *kind)
            continue;
        if (last != heading(component->kind))
            kiln_page_heading(page, "%s", heading(component->kind));
        last = heading(component->kind);
        kiln_page_pair(page, 26, component->name, component->summary);
        if (kind != NULL) {
            KilnHelpTable table = { .fields = component->fields, .prefix = "", .indent = 6 };

            kiln_help_table(page, &table);
        }
    }
    kiln_page_heading(page, "more");
    if (kind == NULL)
        kiln_page_pair(page, 26, "kiln list GROUP", "the options of a group's components");
    kiln_page_pair(page, 26, "kiln show GROUP/NAME", "one component, with examples");
}

int kiln_command_list(KilnArgs *args)
{
    KilnRegistry *registry = NULL;
    KilnPage page = kiln_screen_page();
    KilnError err = { 0 };
    KilnKind kind = KILN_KIND_MODEL;

    if (args->n_words > 1)
        kiln_error_set(&err, KILN_E_USAGE, "list takes one group, not %zu words", args->n_words);
    else if (args->n_words == 1 && !kind_named(args->words[0], &kind))
        unknown_group(args->words[0], &err);
    if (err.status < 0) {
        kiln_screen_error(args->command, &err);
        return kiln_screen_exit_status(err.status);
    }
    KilnStatus status = kiln_command_registry(args, &registry);
    if (status < 0)
        return kiln_screen_exit_status(status);
    append_list(&page, registry, args->n_words == 1 ? &kind : NULL);
    kiln_registry_free(registry);
    return kiln_screen_print(&page);
}

int kiln_command_version(KilnArgs *args)
{
    if (!args->version && args->n_words > 0) {
        fprintf(stderr, "%s: error: %s: version takes no words\n", args->command, args->words[0]);
        return 2;
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
