/* eval and predict: what a checkpoint can do, with the config that made it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
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
    char *checkpoint = NULL;
    KilnStatus status = kiln_command_checkpoint(args, &checkpoint);

    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status >= 0)
        status = kiln_command_remembered(args, registry, checkpoint, &config);
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

/* The split of that name; says what there is instead. */
static bool take_split(KilnArgs *args, const char *name)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        args->split = (KilnSplit)split;
        if (strcmp(name, kiln_split_name(args->split)) == 0)
            return true;
    }
    fprintf(stderr, "%s: split=%s: expected train, val or test\n", args->command, name);
    return false;
}

/* Override `option` of the callback `name`, which the run has or gets, by `value` (NULL: leave it).
 */
static int with_callback(KilnArgs *args, const char *name, const char *option, const char *value,
                         Action *action)
{
    KilnText target = { 0 }, set = { 0 };
    KilnError err = { 0 };
    KilnStatus status;

    kiln_text_printf(&target, "++callbacks.%s._target_=callback/%s", name, name);
    kiln_text_printf(&set, "++callbacks.%s.%s='", name, option);
    for (const char *p = value; p != NULL && *p != '\0'; p++)
        kiln_text_printf(&set, *p == '\'' ? "\\%c" : "%c", *p);
    kiln_text_append(&set, "'");
    status = target.failed || set.failed ? kiln_error_nomem(&err, 1) : KILN_OK;
    if (status >= 0 && value != NULL)
        status = kiln_args_add(args, set.data, &err);
    if (status >= 0)
        status = kiln_args_add(args, target.data, &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    const int exit_status = status < 0 ? kiln_screen_exit_status(status)
                                       : with_checkpoint(args, action);
    kiln_text_release(&target);
    kiln_text_release(&set);
    return exit_status;
}

int kiln_command_eval(KilnArgs *args)
{
    const char *split = kiln_args_take(args, "split");

    if (!take_split(args, split != NULL ? split : "test"))
        return 2;
    const char *plots = kiln_args_take(args, "plots");
    return plots != NULL ? with_callback(args, "prediction_plots", "dir", plots, evaluate)
                         : with_checkpoint(args, evaluate);
}

static KilnStatus print_output(void *ctx, const char *text, KilnError *err)
{
    errno = EIO;
    return fputs(text, ctx) != EOF && fflush(ctx) == 0 ? KILN_OK
                                                       : kiln_error_errno(err, "standard output");
}

static KilnStatus predict(KilnArgs *args, KilnConfig *config, const KilnRunEnv *env, KilnError *err)
{
    KilnRunEnv out = *env;

    out.output = print_output;
    out.ctx = stdout;
    return kiln_run_predict(config, &out, args->split, args->input, err);
}

int kiln_command_predict(KilnArgs *args)
{
    const char *split = kiln_args_take(args, "split");

    args->input = kiln_args_take(args, "input");
    if ((args->input == NULL) == (split == NULL)) {
        fprintf(stderr,
                "%s: %s: input=FILE|FOLDER is a PNG image or a folder of them; split=test (or val, "
                "train) takes the samples of the datamodule\n",
                args->command,
                split == NULL ? "input or split is missing" : "input and split are both given");
        return 2;
    }
    if (split != NULL && !take_split(args, split))
        return 2;
    return with_callback(args, "prediction_writer", "path", kiln_args_take(args, "output"),
                         predict);
}
