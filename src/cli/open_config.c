/* What every command that needs a config does: plugins, composing, checking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/crash.h"
#include "cli/foreign.h"
#include "cli/find_run.h"
#include "cli/screen/screen.h"
#include "kiln/run.h"
#include "registry/plugin_trust.h"

KilnStatus kiln_command_registry(const KilnArgs *args, KilnRegistry **ret)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_registry_new(&registry, &err);

    kiln_crash_registry(registry);
    for (size_t i = 0; status >= 0 && args->plugins[i] != NULL; i++) {
        status = kiln_registry_load(registry, args->plugins[i], &err);
        if (status >= 0)
            kiln_plugin_allow(args->plugins[i]); /* named by the user, or allowed before */
    }
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
                                        bool check, const char *run, KilnConfig **ret)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = kiln_compose(request, &config, errors);
    if (status >= 0 && check)
        status = kiln_config_check(config, request->registry, errors);
    if (status >= 0 && check && run != NULL)
        status = kiln_foreign_outputs(args, config, request->registry, run, errors);
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

    return kiln_command_compose_request(args, &request, check, NULL, ret);
}

void kiln_command_take_run(KilnArgs *args)
{
    args->run = kiln_args_take(args, "ckpt_path");
    if (args->run == NULL)
        args->run = kiln_args_take_path(args);
}

/* The checkpoint that args->run means, searched where train makes its runs. */
static KilnStatus find_checkpoint(const KilnArgs *args, char **ret, KilnError *err)
{
    if (args->run == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "which run? `kiln %s RUN`, RUN being a run folder, a checkpoint, "
                              "last or best (ckpt_path=RUN is the same)",
                              args->command);
    return kiln_checkpoint_resolve(args->run, kiln_runs_folder(args), ret, err);
}

/* Whether the config `name` in `folder` has the values of the file at `path`. */
static bool says_the_same(const char *folder, const char *name, const char *path,
                          const KilnRegistry *registry)
{
    static const size_t largest = (size_t)1 << 26;
    const KilnComposeRequest request = {
        .config_path = folder,
        .config_name = name,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
    char *ours = NULL, *theirs = NULL;
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    size_t size;
    const bool same = kiln_errors_new(&errors) >= 0 &&
                      kiln_compose(&request, &config, errors) >= 0 &&
                      kiln_config_yaml(config, NULL, true, &ours, NULL) >= 0 &&
                      kiln_file_read(path, largest, &theirs, &size, NULL) >= 0 &&
                      strcmp(ours, theirs) == 0;

    kiln_config_free(config);
    kiln_errors_free(errors);
    free(ours);
    free(theirs);
    return same;
}

/* "RUN" of "RUN/checkpoints/NAME". */
static const char *run_of(const char *checkpoint, char run[4096])
{
    snprintf(run, 4096, "%s", checkpoint);
    for (int i = 0; i < 2 && strrchr(run, '/') != NULL; i++)
        *strrchr(run, '/') = '\0';
    return run;
}

/* The folder of the config that a checkpoint was made by, and its name there. In that of the run
 * values follow each other, so that an override of one reaches all; but the run may have gone on
 * with other values since. */
static char *folder_of_config(const char *checkpoint, const KilnRegistry *registry,
                              const char **ret_name)
{
    char run[4096];
    char *of_run = kiln_path_join(run_of(checkpoint, run), ".kiln");
    char *resolved = kiln_path_join(checkpoint, "config.yaml");
    const bool follows = of_run != NULL && resolved != NULL &&
                         says_the_same(of_run, KILN_JOB_CONFIG, resolved, registry);

    free(resolved);
    *ret_name = follows ? KILN_JOB_CONFIG : NULL;
    if (follows)
        return of_run;
    free(of_run);
    return kiln_strdup(checkpoint);
}

KilnStatus kiln_command_checkpoint(KilnArgs *args, char **ret)
{
    KilnError err = { 0 };
    char run[4096];
    KilnStatus status = find_checkpoint(args, ret, &err);

    if (status >= 0)
        status = kiln_foreign_run_plugins(args, run_of(*ret, run), &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    return status;
}

KilnStatus kiln_command_remembered(const KilnArgs *args, const KilnRegistry *registry,
                                   const char *checkpoint, KilnConfig **ret)
{
    const size_t size = strlen(checkpoint) + sizeof("ckpt_path=''");
    const char **overrides = calloc(args->n_words + 2, sizeof(*overrides)), *name;
    char *override = malloc(size), *folder = folder_of_config(checkpoint, registry, &name);
    KilnError err = { 0 };
    KilnStatus status;
    char run[4096];

    if (overrides == NULL || override == NULL || folder == NULL) {
        status = kiln_error_nomem(&err, size);
        kiln_screen_error(args->command, &err);
    } else {
        snprintf(override, size, "ckpt_path='%s'", checkpoint);
        for (size_t i = 0; i < args->n_words; i++)
            overrides[i] = args->words[i];
        overrides[args->n_words] = override;
        KilnComposeRequest request = {
            .config_path = folder,
            .config_name = name,
            .config_dirs = args->config_dirs,
            .overrides = overrides,
            .registry = registry,
            .sections = kiln_run_sections(),
        };
        status = kiln_command_compose_request(args, &request, true, run_of(checkpoint, run), ret);
    }
    free(overrides);
    free(override);
    free(folder);
    return status;
}
