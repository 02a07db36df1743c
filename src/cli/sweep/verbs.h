/* The verbs of `kiln sweep`, a file each in this folder; cli/commands/sweep.c has their table. */
#ifndef KILN_CLI_SWEEP_VERBS_H
#define KILN_CLI_SWEEP_VERBS_H

#include "cli/args.h"

/* A verb's words are in args->words, without the verb itself. Returns the exit status of the
 * process. */
int kiln_sweep_verb_report(KilnArgs *args);

#endif
