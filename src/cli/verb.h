/* Commands that have verbs, a function each: `kiln sweep report`, `kiln plugin new`. */
#ifndef KILN_CLI_VERB_H
#define KILN_CLI_VERB_H

#include "cli/args.h"

/* `run` gets the words after the verb in args->words. Returns the exit status of the process. */
typedef struct KilnVerb {
    const char *name;
    int (*run)(KilnArgs *args);
} KilnVerb;

/* Run the verb that the first word names; another word is an error that lists the verbs. Returns
 * the exit status of the process. */
int kiln_verb_run(KilnArgs *args, const KilnVerb *verbs, size_t n);

#endif
