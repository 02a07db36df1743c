/* Overrides for the configs in which a component is checked. */
#ifndef KILN_CLI_CONTRACT_CASE_WORDS_H
#define KILN_CLI_CONTRACT_CASE_WORDS_H

#include "cli/contract/case.h"

/* All lists are NULL-terminated and live in the case's arena; NULL: memory is out. */

/* That put the component, with the user's options, at `checked`. */
const char *const *kiln_case_instance_words(KilnCase *self);
/* That put it where a run uses it, make the run tiny, and the user's, then `more`. An empty list:
 * no run uses the component directly, as it is the part of another one. */
const char *const *kiln_case_run_words(KilnCase *self, const char *const *more);
/* Whether these words give that option of the component. */
bool kiln_case_gives(KilnCase *self, const char *option);

#endif
