/* The verbs of `kiln plugin`, in files of this folder; cli/commands/plugin.c has their table. */
#ifndef KILN_CLI_PLUGIN_PLUGIN_VERBS_H
#define KILN_CLI_PLUGIN_PLUGIN_VERBS_H

#include "cli/args.h"

/* A verb's words are in args->words, without the verb itself. Returns the exit status of the
 * process. */
int kiln_plugin_verb_new(KilnArgs *args);
int kiln_plugin_verb_check(KilnArgs *args);

#endif
