/* kiln sweep: what is done with the sweeps of `train -m`, a verb each. */
#include "cli/commands/commands.h"
#include "cli/sweep/verbs.h"
#include "cli/verb.h"

int kiln_command_sweep(KilnArgs *args)
{
    /* main.c's usage of the command lists them, too: completion reads it. */
    static const KilnVerb verbs[] = {
        { "report", kiln_sweep_verb_report },
        { "add", kiln_sweep_verb_add },
        { "stop", kiln_sweep_verb_stop },
        { "simulate", kiln_sweep_verb_simulate },
    };

    return kiln_verb_run(args, verbs, KILN_COUNT(verbs));
}
