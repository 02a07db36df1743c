/* kiln train: composes a config, checks it, and trains, or prints the config as --cfg, --explain,
 * --info and --help ask. The training run itself: train/run/run.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/find_run.h"
#include "cli/untrusted.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "config/compose.h"
#include "config/provenance/error_list.h"
#include "config/yaml/output.h"
#include "kiln/embed/run.h"
#include "registry/option_defaults.h"
#include "registry/registry.h"

/* Print what a run would refuse in a config, or, with `registry` NULL, the warnings of resolving.
 */
static KilnStatus report(const KilnArgs *args, KilnConfig *config, const KilnRegistry *registry)
{
    KilnErrors *errors = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0 && registry != NULL)
        status = kiln_config_check(config, registry, errors);
    else if (status >= 0)
        kiln_config_warnings(config, errors);
    if (errors != NULL)
        kiln_screen_errors(args->command, errors);
    kiln_errors_free(errors);
    return status;
}

static KilnConfigPart part_of(const char *cfg)
{
    return strcmp(cfg, "all") == 0    ? KILN_CONFIG_ALL
           : strcmp(cfg, "kiln") == 0 ? KILN_CONFIG_OWN
                                      : KILN_CONFIG_JOB;
}

/* Print the composed config, or the part that --package names, and then what a run would refuse in
 * it. A tree that is not about training is not checked. */
static KilnStatus print_config(const KilnArgs *args, KilnConfig *config,
                               const KilnRegistry *registry, KilnError *err)
{
    bool all = args->package != NULL && strcmp(args->package, "_global_") == 0;
    const char *package = all ? NULL : args->package;
    char *yaml = NULL;
    KilnConfigPart part = part_of(args->cfg);
    KilnStatus status = kiln_config_part_yaml(config, part, package, args->resolve, args->origins,
                                              &yaml, err);

    (void)!report(args, config, NULL);
    if (status >= 0)
        fputs(yaml, stdout);
    free(yaml);
    if (status < 0 || !kiln_option_defaults_is_about(config))
        return status;
    fflush(stdout); /* messages come after the config that they are about */
    return report(args, config, registry);
}

static KilnStatus print_explanations(const KilnArgs *args, const KilnConfig *config, KilnError *err)
{
    for (size_t i = 0; args->explain[i] != NULL; i++) {
        char *text = NULL;
        KilnStatus status = kiln_config_explain(config, args->explain[i], &text, err);

        if (status < 0)
            return status;
        fputs(text, stdout);
        free(text);
    }
    return KILN_OK;
}

static int run(const KilnArgs *args, KilnConfig *config, const KilnRegistry *registry,
               const char *resume)
{
    KilnConsole console;
    KilnRunResult result = { 0 };
    KilnError err = { 0 };
    KilnSignals signals = kiln_screen_catch_signals();
    KilnRunEnv env = {
        .registry = registry,
        .console = kiln_screen_run_console(stdout, args->quiet, args->verbose, &console),
        .overrides = args->words,
        .stop = signals.stop,
        .save = signals.save,
        .resume = resume,
    };
    KilnStatus status = kiln_run_fit(config, &env, &result, &err);

    if (status < 0) {
        kiln_screen_error(args->command, &err);
        if (status == KILN_E_INTERRUPTED)
            return kiln_screen_signal_status();
        return result.run_dir[0] != '\0' ? kiln_screen_run_status(status)
                                         : kiln_screen_exit_status(status);
    }
    return strcmp(result.status, "interrupted") == 0 ? kiln_screen_signal_status() : 0;
}

/* *ret_multirun: the config asks for a sweep instead. */
static int train(const KilnArgs *args, const KilnRegistry *registry, bool *ret_multirun)
{
    bool show = args->cfg != NULL || args->explain[0] != NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    char *resume = NULL;
    int exit_status;

    KilnStatus status = args->run != NULL
                            ? kiln_command_compose_resumed(args, registry, !show, &config, &resume)
                        : show ? kiln_command_compose(args, registry, false, &config)
                               : kiln_command_compose_single(args, registry, &config);
    *ret_multirun = status >= 0 && config == NULL;
    if (*ret_multirun)
        return 0;
    if (status >= 0 && show)
        status = args->cfg != NULL ? print_config(args, config, registry, &err)
                                   : print_explanations(args, config, &err);
    if (status < 0 || show) {
        exit_status = kiln_screen_result(args->command, status, &err);
    } else {
        exit_status = args->plan ? kiln_command_plan(args, config, registry)
                                 : run(args, config, registry, resume);
    }
    free(resume);
    kiln_config_free(config);
    return exit_status;
}

int kiln_command_train(KilnArgs *args)
{
    bool runs = !args->help && args->cfg == NULL && args->info == NULL && args->explain[0] == NULL;
    KilnRegistry *registry = NULL;
    KilnStatus status = KILN_OK;
    KilnError err = { 0 };
    char *run = NULL;

    args->run = kiln_args_take(args, "resume");
    if (args->run != NULL && args->multirun) {
        fprintf(stderr, "%s: error: resume=%s resumes one run; -m --resume DIR resumes a sweep\n",
                args->command, args->run);
        return 2;
    }
    if (args->multirun && runs)
        return kiln_command_train_sweep(args);
    if (args->run != NULL && kiln_run_find(args->run, kiln_runs_folder(args), &run, NULL) >= 0)
        status = kiln_untrusted_run_plugins(args, run, &err);
    free(run);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    else
        status = kiln_command_registry(args, &registry);
    if (status < 0)
        return kiln_screen_exit_status(status);
    bool multirun = false;
    int exit_status = args->help           ? kiln_command_train_help(args, registry)
                      : args->info != NULL ? kiln_command_info(args, registry)
                                           : train(args, registry, &multirun);
    kiln_registry_free(registry);
    return multirun ? kiln_command_train_sweep(args) : exit_status;
}
