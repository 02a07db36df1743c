/* kiln explain: where the values of a past run came from. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands/commands.h"
#include "cli/find_run.h"
#include "cli/screen/screen.h"
#include "config/provenance/origins_file.h"

static KilnStatus explain(const char *run, const char *const *keys, KilnError *err)
{
    static const char *const all[] = { "", NULL };
    KilnStatus status = KILN_OK;

    for (keys = *keys != NULL ? keys : all; *keys != NULL && status >= 0; keys++) {
        char *text = NULL;

        status = kiln_run_explain(run, *keys, &text, err);
        if (status >= 0)
            fputs(text, stdout);
        free(text);
    }
    return status;
}

int kiln_command_explain(KilnArgs *args)
{
    char *run = NULL;
    KilnError err = { 0 };
    KilnStatus status;

    if (args->n_words == 0)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "which run? `kiln explain RUN [KEY...]`, RUN being a run folder, a "
                                "checkpoint, last or best: kiln explain last optimizer.lr");
    else
        status = kiln_run_find(args->words[0], kiln_runs_folder(args), &run, &err);
    if (status >= 0)
        status = explain(run, args->words + 1, &err);
    free(run);
    return kiln_screen_result(args->command, status, &err);
}
