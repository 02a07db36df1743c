/* kiln sweep stop DIR JOB: the end of one job. */
#include <stdio.h>

#include "base/parse.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "cli/sweep/verbs.h"
#include "cli/untrusted.h"

static KilnStatus stop(const KilnArgs *args, const KilnSweepFolder *folder, int64_t job,
                       KilnError *err)
{
    KilnSweepAnswer answer = { .job = 0 };
    char taken[64];
    KilnStatus status = kiln_untrusted_links(args, folder->dir, err);

    if (status >= 0)
        status = kiln_sweep_stop(folder->dir, (size_t)job, &answer, err);
    if (status < 0)
        return status;
    snprintf(taken, sizeof(taken), "job %zu %s", answer.job,
             answer.runs ? "stops with a checkpoint" : "is stopped and will not start");
    kiln_sweep_print_answer(args->words[0], &answer, taken);
    return KILN_OK;
}

int kiln_sweep_verb_stop(KilnArgs *args)
{
    KilnSweepFolder folder = { .dir = NULL };
    KilnError err = { 0 };
    int64_t job = 0;
    KilnStatus status = KILN_OK;

    if (args->n_words != 2 || kiln_parse_i64(args->words[1], &job, NULL) < 0 || job < 0)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "stop: expected the folder of a sweep and the number of a job: "
                                "kiln sweep stop last 7");
    else
        status = kiln_sweep_find(args->words[0], &folder, &err);
    if (status >= 0)
        status = stop(args, &folder, job, &err);
    kiln_arena_release(&folder.arena);
    return kiln_screen_result(args->command, status, &err);
}
