/* Regular expressions of tokenizer files: those of Oniguruma (Ruby's syntax), run by PCRE2. */
#ifndef KILN_TEXT_UNICODE_REGEX_H
#define KILN_TEXT_UNICODE_REGEX_H

#include "kiln/base.h"

/* Immutable; any number of threads may search with one. */
typedef struct KilnRegex KilnRegex;

/* KILN_E_SYNTAX with the offset in the pattern. `literal`: the pattern is plain text. Owned by the
 * caller. */
KILN_NODISCARD KilnStatus kiln_regex_new(const char *pattern, bool literal, KilnRegex **ret,
                                         KilnError *err);
/* Accepts NULL. */
void kiln_regex_free(KilnRegex *regex);
/* The first match in the valid UTF-8 text from `from` on. *ret_found false: there is none.
 * KILN_E_RANGE: the search took too many steps. */
KILN_NODISCARD KilnStatus kiln_regex_find(const KilnRegex *regex, const char *text, size_t n,
                                          size_t from, bool *ret_found, size_t *ret_begin,
                                          size_t *ret_end, KilnError *err);

#endif
