/* The words of GPT-2's regular expression, without a regular expression. */
#ifndef KILN_TEXT_PIPELINE_BYTE_LEVEL_H
#define KILN_TEXT_PIPELINE_BYTE_LEVEL_H

#include "kiln/base.h"

/* The end of the word that begins at byte `at` < n of the valid UTF-8 text, by
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * which covers any text without gaps. */
size_t kiln_gpt2_word(const char *text, size_t n, size_t at);

#endif
