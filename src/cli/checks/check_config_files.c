/* Checks the config files that select a component, those in conf/ beside its plugin: each composes,
 * and what it sets fits the options table. */
#include <string.h>

#include "base/text.h"
#include "cli/checks/checks.h"
#include "config/defaults/search_path.h"
#include "registry/config_schema.h"
#include "registry/registry.h"

typedef struct Files {
    KilnCase *self;
    size_t n;
} Files;

static bool is_selected(const Files *files, const KilnConfigNode *node)
{
    const KilnConfigNode *target = kiln_node_get(node, "_target_");
    const KilnComponent *component = NULL;

    return target != NULL && target->kind == KILN_NODE_SCALAR &&
           kiln_registry_target(files->self->registry, target->text, KILN_KIND_ANY, &component,
                                NULL) >= 0 &&
           component == files->self->component;
}

/* Whether the file is the component's, or has it as a member: callbacks={target: {_target_: ...}}.
 */
static bool selects(const Files *files, const KilnConfigNode *content)
{
    bool does = is_selected(files, content);

    for (size_t i = 0; content->kind != KILN_NODE_SCALAR && i < content->count; i++)
        does |= is_selected(files, content->entries[i].value);
    return does;
}

/* Whether the message, "FILE:LINE:COLUMN: KEY: ...", is about an option of the component: others
 * say that it does not fit the rest of this config. */
static bool is_of_option(const KilnCase *self, const char *text, const KilnConfigFile *file)
{
    static const char unknown[] = "unknown option of ";
    const char *key = strstr(text + strlen(file->source), ": "), *of = strstr(text, unknown);
    char name[160];

    snprintf(name, sizeof(name), "%s/%s", kiln_kind_name(self->component->kind),
             self->component->name);
    return key != NULL && memchr(key + 2, '.', strcspn(key + 2, ": ")) != NULL &&
           (of == NULL || kiln_starts_with(of + strlen(unknown), name));
}

/* The first error in the file itself. A required value is the user's to give. */
static const char *error_of(const KilnCase *self, const KilnErrors *errors,
                            const KilnConfigFile *file)
{
    for (size_t i = 0; i < kiln_errors_count(errors); i++) {
        const char *text = kiln_errors_text(errors, i);

        if (kiln_starts_with(text, file->source) && is_of_option(self, text, file) &&
            !kiln_errors_is_warning(errors, i) && strstr(text, ": required value missing") == NULL)
            return text;
    }
    return NULL;
}

/* Whether the argument selects the file in this config. */
static bool selected(const KilnErrors *errors)
{
    bool does = true;

    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        does &= !kiln_starts_with(kiln_errors_text(errors, i), "argument ");
    return does;
}

/* Select the file where the config has its group, and where it has none yet. */
static void check_file(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    static const char *const forms[] = { "%s=%s", "+%s=%s" };
    Files *files = ctx;
    KilnCase *self = files->self;
    bool done = false;

    if (file->content->layer != KILN_LAYER_FILE || group[0] == '\0' || file->package != NULL ||
        kiln_case_failed(self) || !selects(files, file->content))
        return;
    for (size_t i = 0; i < KILN_COUNT(forms) && !done; i++) {
        char word[512];

        snprintf(word, sizeof(word), forms[i], group, option);
        KilnErrors *errors = kiln_case_config_errors(self, (const char *const[]) { word, NULL });
        if (errors == NULL)
            return kiln_case_fail(self, "", "memory is out");
        done = selected(errors);
        if (done && error_of(self, errors, file) != NULL)
            kiln_case_fail(self,
                           "the file and the options table must agree: `kiln show` lists "
                           "the options",
                           "%s", error_of(self, errors, file));
        kiln_errors_free(errors);
    }
    files->n++;
}

void kiln_contract_config_files(KilnCase *self)
{
    const KilnComposeRequest request = { .config_path = self->folder,
                                         .registry = self->registry,
                                         .sections = kiln_run_sections() };
    Files files = { .self = self };
    KilnError err = { 0 };

    if (kiln_compose_files(&request, check_file, &files, &err) < 0)
        kiln_case_fail_with(self, &err);
    else if (files.n == 0)
        kiln_case_pass(self, "none: it is selected by its name, with the table's defaults");
    else
        kiln_case_pass(self, "%zu file%s: its options are those of the table", files.n,
                       files.n == 1 ? "" : "s");
}
