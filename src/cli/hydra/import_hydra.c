/* kiln import-hydra: a config tree of Hydra and Lightning in kiln's terms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/hydra/report.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "kiln/embed/run.h"

/* kiln's own in place of what only the user has, by task; NULL: kiln has none that need no files.
 */
static const struct {
    const char *task;
    const char *options[3]; /* of `groups` */
} stand_ins[] = {
    { "vision", { "digits", "mlp", "sgd" } },
    { "detection", { "shapes", "fcos", "sgd" } },
    { "regression", { NULL, "mlp", "adam" } },
    { "segmentation", { NULL, "unet", "adam" } },
    { "multilabel_classification", { NULL, "mlp", "adam" } },
};

typedef struct Import {
    const KilnArgs *args;
    const char *output;
    KilnImportSource source;
    KilnImportPlaces places;
    KilnImportOutputs outputs;
    KilnText words; /* the stand-ins: " model=mlp" */
    KilnErrors *errors;
} Import;

/* The groups that may have only code of the user's. */
enum { DATAMODULE, MODEL, OPTIMIZER, GROUPS };
static const char *const groups[GROUPS] = { "datamodule", "model", "optimizer" };
static const char *const any[GROUPS] = { "datamodule=digits", "model=mlp", "optimizer=sgd" };

static KilnStatus compose(const Import *import, const KilnRegistry *registry,
                          const char *const *overrides, KilnErrors *errors, KilnConfig **ret)
{
    const KilnComposeRequest request = { .config_path = import->output,
                                         .config_name = import->outputs.primary,
                                         .overrides = overrides,
                                         .registry = registry,
                                         .sections = kiln_run_sections() };

    return kiln_compose(&request, ret, errors);
}

/* Whether the user has to name the component of a group: the config has ??? for it, or has it when
 * all others are given. */
static bool is_open(const Import *import, const KilnRegistry *registry, int group)
{
    const char *others[GROUPS] = { NULL };
    KilnConfig *config = NULL;
    size_t n = 0;

    for (int i = 0; i < GROUPS; i++)
        if (i != group)
            others[n++] = any[i];
    if (compose(import, registry, others, NULL, &config) < 0)
        return true;
    const KilnConfigNode *node = kiln_node_get(kiln_config_root(config), groups[group]);
    const char *target = node != NULL ? kiln_node_text(node, "_target_") : NULL;
    const bool open = node == NULL || (target != NULL && strcmp(target, "???") == 0);
    kiln_config_free(config);
    return open;
}

/* Compose the new config with stand-ins for the user's own code, and check it; what is wrong stays
 * in import->errors. Without data of the task's kind there is nothing to check. */
static KilnStatus try_config(Import *import, const KilnRegistry *registry, KilnError *err)
{
    const char *const *options = stand_ins[0].options, *overrides[GROUPS + 1] = { NULL };
    KilnConfig *config = NULL;
    bool whole = true;
    size_t n = 0;

    if (kiln_errors_new(&import->errors) < 0)
        return kiln_error_nomem(err, 0);
    for (size_t i = 0; i < KILN_COUNT(stand_ins); i++)
        if (strcmp(stand_ins[i].task, import->outputs.task) == 0)
            options = stand_ins[i].options;
    for (int group = 0; group < GROUPS; group++) {
        if (!is_open(import, registry, group))
            continue;
        const char *option = options[group] != NULL ? options[group] : "...";

        overrides[n++] = kiln_arena_printf(&import->outputs.arena, "%s=%s", groups[group], option);
        kiln_text_printf(&import->words, " %s=%s", groups[group], option);
        whole = whole && options[group] != NULL;
    }
    KilnStatus tried = whole ? compose(import, registry, overrides, import->errors, &config)
                             : KILN_E_MISSING;
    if (tried >= 0)
        tried = kiln_config_check(config, registry, import->errors);
    (void)tried; /* what is wrong is in the errors */
    kiln_config_free(config);
    return import->words.failed || import->outputs.arena.failed ? kiln_error_nomem(err, 0)
                                                                : KILN_OK;
}

static KilnStatus print_report(const Import *import, KilnError *err)
{
    const KilnImportTrial trial = { import->output,
                                    import->words.data != NULL ? import->words.data : "",
                                    import->errors };
    KilnPage page = kiln_screen_page();

    kiln_import_report(&page, &import->outputs, &trial);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

/* Asked once the source is known to be one: a user who mistyped it need not choose an output. */
static KilnStatus check_output(const KilnArgs *args, const char *output, KilnError *err)
{
    if (access(output, F_OK) == 0 && !args->force)
        return kiln_error_set(
            err, KILN_E_USAGE,
            "%s exists; --output DIR writes elsewhere, --force replaces its files", output);
    if (access(output, F_OK) == 0 && !kiln_is_dir(output))
        return kiln_error_set(err, KILN_E_IO, "%s: is a file; give a folder", output);
    return KILN_OK;
}

static KilnStatus convert(Import *import, const KilnRegistry *registry, KilnError *err)
{
    KilnStatus status = kiln_import_read(&import->source, import->args->words[0], err);

    if (status >= 0)
        status = check_output(import->args, import->output, err);
    if (status >= 0)
        status = kiln_import_places_find(&import->places, &import->source, err);
    if (status >= 0)
        status = kiln_import_outputs_make(&import->outputs, &import->places, err);
    if (status >= 0)
        status = kiln_import_publish(&import->outputs, import->output, import->args->force, err);
    if (status >= 0 && import->outputs.primary != NULL)
        status = try_config(import, registry, err);
    return status >= 0 ? print_report(import, err) : status;
}

static KilnStatus print_classes(KilnError *err)
{
    KilnPage page = kiln_screen_page();

    kiln_import_report_classes(&page);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

static KilnStatus import_hydra(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                               void *ctx, KilnError *err)
{
    Import import = { .args = args, .output = args->output != NULL ? args->output : "conf" };
    KilnStatus status;

    (void)config;
    (void)ctx;
    if (args->classes)
        return print_classes(err);
    status = args->n_words == 1
                 ? convert(&import, registry, err)
                 : kiln_error_set(err, KILN_E_USAGE,
                                  "import-hydra takes one folder, the one with the configs, not "
                                  "%zu words",
                                  args->n_words);
    if (status < 0) { /* the origin is the source's */
        kiln_screen_error(args->command, err);
        *err = (KilnError) { 0 };
    }
    kiln_errors_free(import.errors);
    kiln_text_release(&import.words);
    kiln_import_outputs_release(&import.outputs);
    kiln_import_places_release(&import.places);
    kiln_import_source_release(&import.source);
    return status;
}

int kiln_command_import_hydra(KilnArgs *args)
{
    return kiln_command_run(args, false, import_hydra, NULL);
}
