/* The verbs of `kiln sweep`, a file each in this folder; cli/commands/sweep.c has their table. */
#ifndef KILN_CLI_SWEEP_VERBS_H
#define KILN_CLI_SWEEP_VERBS_H

#include "cli/args.h"
#include "sweep/sweep.h"

/* A verb's words are in args->words, without the verb itself. Returns the exit status of the
 * process. */
int kiln_sweep_verb_report(KilnArgs *args);
int kiln_sweep_verb_add(KilnArgs *args);
int kiln_sweep_verb_stop(KilnArgs *args);
int kiln_sweep_verb_simulate(KilnArgs *args);

/* Print what became of a request to the sweep in `dir`; `taken`: what its launcher does. */
void kiln_sweep_print_answer(const char *dir, const KilnSweepAnswer *answer, const char *taken);

#endif
