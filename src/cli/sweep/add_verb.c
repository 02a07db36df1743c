/* kiln sweep add DIR OVERRIDE...: one more job. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "cli/sweep/verbs.h"
#include "config/provenance/error_list.h"

static KilnStatus add(const KilnArgs *args, const char *dir, const KilnRegistry *registry,
                      KilnSweepAnswer *ret)
{
    static const char *const none[] = { NULL };
    KilnSweepRequest request = { .compose = kiln_command_request(args, registry),
                                 .resume = dir,
                                 .reads = true };
    KilnErrors *errors = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    request.compose.overrides = none;
    if (status >= 0)
        status = kiln_sweep_add(&request, args->words, ret, errors);
    kiln_screen_errors(args->command, errors);
    kiln_errors_free(errors);
    return status;
}

/* In the folder where the sweep was started, with its plugins. */
static KilnStatus add_there(KilnArgs *args, const char *word, const KilnSweepFolder *folder)
{
    KilnSweepAnswer answer = { .job = 0 };
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    char taken[256];
    KilnStatus status = kiln_command_enter_sweep(args, folder, &err);

    if (status < 0)
        kiln_screen_error(args->command, &err);
    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status >= 0)
        status = add(args, folder->dir, registry, &answer);
    if (status >= 0) {
        snprintf(taken, sizeof(taken), "job %zu is added%s", answer.job,
                 answer.is_point ? ""
                                 : "; sweepers and pruners do not learn from it, since it is no "
                                   "point of the sweep's space");
        kiln_sweep_print_answer(word, &answer, taken);
    }
    kiln_registry_free(registry);
    return status;
}

int kiln_sweep_verb_add(KilnArgs *args)
{
    const char *word = kiln_args_take_path(args);
    KilnSweepFolder folder;
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    if (word == NULL || args->n_words == 0)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "add: expected the folder of a sweep and a value of each key that "
                                "it varies: kiln sweep add last lr=0.3");
    else
        status = kiln_sweep_find(word, &folder, &err);
    if (status < 0)
        return kiln_screen_result(args->command, status, &err);
    status = add_there(args, word, &folder);
    kiln_arena_release(&folder.arena);
    return kiln_screen_exit_status(status);
}
