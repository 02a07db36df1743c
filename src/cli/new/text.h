/* Configs for rows that turn out to be texts. */
#ifndef KILN_CLI_NEW_TEXT_H
#define KILN_CLI_NEW_TEXT_H

#include "cli/new/rows.h"

/* A column of texts and one of labels; `pair`: a second text, n_columns: none. */
KILN_NODISCARD KilnStatus kiln_new_text_rows(KilnNewRows *rows, size_t text, size_t pair,
                                             size_t label, KilnError *err);
/* Lists of words and of their tags. */
void kiln_new_tagged_rows(KilnNewRows *rows, size_t words, size_t tags);
/* Texts and their translations. */
void kiln_new_translation_rows(KilnNewRows *rows, size_t source, size_t target);

#endif
