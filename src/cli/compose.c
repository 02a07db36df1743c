/* What every command that needs a config does: plugins, composing, checking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/screen.h"
#include "kiln/run.h"

KilnStatus kiln_command_registry(const KilnArgs *args, KilnRegistry **ret)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_registry_new(&registry, &err);

    for (size_t i = 0; status >= 0 && args->plugins[i] != NULL; i++)
        status = kiln_registry_load(registry, args->plugins[i], &err);
    if (status < 0) {
        kiln_screen_error(args->command, &err);
        kiln_registry_free(registry);
        return status;
    }
    *ret = registry;
    return KILN_OK;
}

KilnComposeRequest kiln_command_request(const KilnArgs *args, const KilnRegistry *registry)
{
    return (KilnComposeRequest) {
        .config_path = args->config_path,
        .config_name = args->config_name,
        .config_dirs = args->config_dirs,
        .overrides = args->words,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
}

KilnStatus kiln_command_compose_request(const KilnArgs *args, const KilnComposeRequest *request,
                                        bool check, KilnConfig **ret)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = kiln_compose(request, &config, errors);
    if (status >= 0 && check)
        status = kiln_config_check(config, request->registry, errors);
    if (errors != NULL)
        kiln_screen_errors(args->command, errors);
    kiln_errors_free(errors);
    if (status < 0) {
        kiln_config_free(config);
        return status;
    }
    *ret = config;
    return KILN_OK;
}

KilnStatus kiln_command_compose(const KilnArgs *args, const KilnRegistry *registry, bool check,
                                KilnConfig **ret)
{
    KilnComposeRequest request = kiln_command_request(args, registry);

    return kiln_command_compose_request(args, &request, check, ret);
}

/* Where runs are, as far as the arguments say. */
static const char *runs_folder(const KilnArgs *args)
{
    static const char key[] = "trainer.default_root_dir=";
    const char *folder = "outputs";

    for (size_t i = 0; i < args->n_words; i++)
        if (strncmp(args->words[i], key, sizeof(key) - 1) == 0)
            folder = args->words[i] + sizeof(key) - 1;
    return folder;
}

/* The checkpoint that `ckpt_path` means, sought where train makes its runs. */
static KilnStatus find_checkpoint(KilnArgs *args, char **ret, KilnError *err)
{
    const char *ckpt_path = kiln_args_take(args, "ckpt_path");

    if (ckpt_path == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "ckpt_path=... is missing: a checkpoint folder, a run folder, last "
                              "or best");
    return kiln_checkpoint_resolve(ckpt_path, runs_folder(args), ret, err);
}

KilnStatus kiln_command_remembered(KilnArgs *args, const KilnRegistry *registry, KilnConfig **ret)
{
    char *checkpoint = NULL, *override = NULL;
    KilnError err = { 0 };
    KilnStatus status = find_checkpoint(args, &checkpoint, &err);

    if (status < 0) {
        kiln_screen_error(args->command, &err);
        return status;
    }
    size_t size = strlen(checkpoint) + sizeof("ckpt_path=''");
    const char **overrides = calloc(args->n_words + 2, sizeof(*overrides));
    override = malloc(size);
    if (overrides == NULL || override == NULL) {
        status = kiln_error_nomem(&err, size);
        kiln_screen_error(args->command, &err);
    } else {
        snprintf(override, size, "ckpt_path='%s'", checkpoint);
        for (size_t i = 0; i < args->n_words; i++)
            overrides[i] = args->words[i];
        overrides[args->n_words] = override;
        KilnComposeRequest request = {
            .config_path = checkpoint,
            .config_dirs = args->config_dirs,
            .overrides = overrides,
            .registry = registry,
            .sections = kiln_run_sections(),
        };
        status = kiln_command_compose_request(args, &request, true, ret);
    }
    free(overrides);
    free(override);
    free(checkpoint);
    return status;
}
