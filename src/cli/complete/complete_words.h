/* Completes a command line: finds out what the word at the cursor can be. */
#ifndef KILN_CLI_COMPLETE_COMPLETE_WORDS_H
#define KILN_CLI_COMPLETE_COMPLETE_WORDS_H

#include "cli/complete/candidates.h"

/* Add the candidates for the last of `words`, which is candidates->typed. Words before the
 * program's name (VAR=x, sudo) are skipped. */
void kiln_complete_words(char **words, size_t count, KilnCandidates *candidates);

#endif
