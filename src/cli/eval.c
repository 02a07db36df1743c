/* eval and predict: what a checkpoint can do, with the config that made it. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/screen.h"
#include "kiln/run.h"

typedef KilnStatus Action(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env,
                          KilnError *err);

/* Everything around an action: registry, remembered config, signals, errors. */
static int with_checkpoint(KilnArgs *args, Action *action)
{
    KilnConsole console;
    KilnRegistry *registry = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status >= 0)
        status = kiln_command_remembered(args, registry, &config);
    if (status >= 0) {
        KilnRunEnv env = {
            .registry = registry,
            .console = kiln_screen_run_console(stderr, args->quiet, args->verbose, &console),
            .overrides = args->words,
            .stop = kiln_screen_catch_signals().stop,
        };

        status = action(args, config, &env, &err);
        if (status < 0)
            kiln_screen_error(args->command, &err);
    }
    kiln_config_free(config);
    kiln_registry_free(registry);
    return kiln_screen_signal_status() != 0 ? kiln_screen_signal_status()
                                            : kiln_screen_exit_status(status);
}

static KilnStatus test(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env, KilnError *err)
{
    char *json = NULL;
    KilnStatus status = kiln_run_test(config, env, &json, err);

    (void)args;
    if (status >= 0)
        printf("%s\n", json);
    free(json);
    return status;
}

int kiln_command_eval(KilnArgs *args)
{
    return with_checkpoint(args, test);
}

static void print_line(void *ctx, const char *line)
{
    fprintf(ctx, "%s\n", line);
}

static KilnStatus predict(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env, KilnError *err)
{
    return kiln_run_predict(config, env, args->input, print_line, stdout, err);
}

int kiln_command_predict(KilnArgs *args)
{
    args->input = kiln_args_take(args, "input");
    if (args->input == NULL) {
        fprintf(stderr, "%s: input=FILE|FOLDER is missing: a PNG image or a folder of them\n",
                args->command);
        return 2;
    }
    return with_checkpoint(args, predict);
}
