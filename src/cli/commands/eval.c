/* kiln eval and kiln predict: run a checkpoint with the config that made it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "config/override/override.h"
#include "kiln/embed/run.h"

typedef KilnStatus Action(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env,
                          KilnError *err);

/* Open the checkpoint that args->run names and its config, and run the action on them. */
static int with_checkpoint(KilnArgs *args, Action *action)
{
    KilnConsole console;
    KilnRegistry *registry = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    char *checkpoint = NULL;
    KilnStatus status = kiln_command_checkpoint(args, &checkpoint);

    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status >= 0)
        status = kiln_command_compose_checkpoint(args, registry, checkpoint, &config);
    if (status >= 0) {
        KilnRunEnv env = {
            .registry = registry,
            .console = kiln_screen_run_console(stderr, args->quiet, args->verbose, &console),
            .overrides = args->words,
            .stop = kiln_screen_catch_signals().stop,
        };

        status = action(args, config, &env, &err);
        if (status < 0 && kiln_screen_signal_status() != 128 + SIGPIPE)
            kiln_screen_error(args->command, &err);
    }
    kiln_config_free(config);
    kiln_registry_free(registry);
    free(checkpoint);
    return kiln_screen_signal_status() != 0 ? kiln_screen_signal_status()
                                            : kiln_screen_exit_status(status);
}

static KilnStatus evaluate(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env,
                           KilnError *err)
{
    char *json = NULL;
    KilnStatus status = kiln_run_eval(config, env, args->split, &json, err);

    if (status >= 0)
        printf("%s\n", json);
    free(json);
    return status;
}

/* Take split=NAME from the words. */
static KilnStatus take_split(KilnArgs *args, bool *ret_given, KilnError *err)
{
    const char *name = kiln_args_take(args, "split");

    *ret_given = name != NULL;
    args->split = KILN_TEST;
    for (int split = 0; name != NULL; split++) {
        if (split == KILN_SPLIT_COUNT)
            return kiln_error_set(err, KILN_E_USAGE, "split=%s: expected train, val or test", name);
        args->split = (KilnSplit)split;
        if (strcmp(name, kiln_split_name(args->split)) == 0)
            break;
    }
    return KILN_OK;
}

/* Run the action with the callback `name` added, its `option` set to `value` (NULL: unset). */
static int with_callback(KilnArgs *args, const char *name, const char *option, const char *value,
                         Action *action)
{
    char target[128], key[128];
    KilnText set = { 0 };
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    snprintf(target, sizeof(target), "++callbacks.%s._target_=callback/%s", name, name);
    snprintf(key, sizeof(key), "++callbacks.%s.%s", name, option);
    if (value != NULL) {
        kiln_override_quote(&set, key, value);
        status = set.failed ? kiln_error_nomem(&err, 1) : kiln_args_add(args, set.data, &err);
    }
    if (status >= 0)
        status = kiln_args_add(args, target, &err);
    const int exit_status = status < 0 ? kiln_screen_result(args->command, status, &err)
                                       : with_checkpoint(args, action);
    kiln_text_release(&set);
    return exit_status;
}

int kiln_command_eval(KilnArgs *args)
{
    KilnError err = { 0 };
    bool given;
    KilnStatus status = take_split(args, &given, &err);

    kiln_command_take_run(args);
    if (status >= 0)
        status = kiln_command_check_words(args, NULL, &err);
    if (status < 0)
        return kiln_screen_result(args->command, status, &err);
    const char *plots = kiln_args_take(args, "plots");
    return plots != NULL ? with_callback(args, "prediction_plots", "dir", plots, evaluate)
                         : with_checkpoint(args, evaluate);
}

static KilnStatus print_output(void *ctx, const char *text, KilnError *err)
{
    return fputs(text, ctx) != EOF && fflush(ctx) == 0 ? KILN_OK : kiln_screen_write_error(err);
}

static KilnStatus predict(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env, KilnError *err)
{
    KilnRunEnv out = *env;

    out.output = print_output;
    out.ctx = stdout;
    return kiln_run_predict(config, &out, args->split, args->input, err);
}

/* Take INPUT, input=INPUT or split=NAME from the words. */
static KilnStatus take_input(KilnArgs *args, KilnError *err)
{
    bool split;
    KilnStatus status = take_split(args, &split, err);

    args->input = kiln_args_take(args, "input");
    if (args->input == NULL)
        args->input = kiln_args_take_path(args);
    if (status < 0 || args->run == NULL || (args->input != NULL) != split)
        return status;
    return kiln_error_set(err, KILN_E_USAGE,
                          "%s: `kiln predict RUN INPUT`, INPUT being a file or folder of samples; "
                          "split=test (or val, train) takes the samples of the datamodule",
                          split ? "both input and split are given" : "input or split is missing");
}

int kiln_command_predict(KilnArgs *args)
{
    KilnError err = { 0 };

    kiln_command_take_run(args);
    KilnStatus status = take_input(args, &err);
    if (status >= 0)
        status = kiln_command_check_words(args, args->input, &err);
    if (status < 0)
        return kiln_command_refuse(args, status, &err);
    const char *output = kiln_args_take(args, "output");
    if (args->input == NULL || strcmp(args->input, "-") != 0)
        return with_callback(args, "prediction_writer", "path", output, predict);
    if (output == NULL)
        return kiln_command_predict_lines(args);
    status = kiln_error_set(&err, KILN_E_USAGE,
                            "output=%s: predictions of standard input go to standard output",
                            output);
    return kiln_screen_result(args->command, status, &err);
}
