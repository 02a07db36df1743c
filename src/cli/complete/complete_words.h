/* Completion of a command line, word by word: what the place of the word asks for. */
#ifndef KILN_CLI_COMPLETE_COMPLETE_WORDS_H
#define KILN_CLI_COMPLETE_COMPLETE_WORDS_H

#include "cli/complete/candidates.h"

/* Candidates for the last of `words`, which is candidates->typed; words in front of the
 * program's name (VAR=x, sudo) are passed over. */
void kiln_complete_words(char **words, size_t count, KilnCandidates *candidates);

#endif
