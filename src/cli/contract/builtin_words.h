/* What built-in components need to be checked, beyond their defaults. */
#ifndef KILN_CLI_CONTRACT_BUILTIN_WORDS_H
#define KILN_CLI_CONTRACT_BUILTIN_WORDS_H

#include "kiln/component.h"

/* The words of a component, separated by blanks: overrides as a user would write them, in which
 * @ stands for the folder of sample data. NULL: none. */
const char *kiln_builtin_words(const KilnComponent *component);
/* Whether the component's state depends on the clock, so that no two runs have the same bytes. */
bool kiln_builtin_reads_clock(const KilnComponent *component);

#endif
