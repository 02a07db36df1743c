/* Characters of UTF-8 text, and the columns that they take on a screen. */
#ifndef KILN_BASE_UTF8_H
#define KILN_BASE_UTF8_H

#include "kiln/base.h"

/* The character at `text` (`n` bytes, at least one) and its length in bytes. A byte
 * that begins no character counts as one: U+FFFD. */
size_t kiln_utf8_next(const char *text, size_t n, uint32_t *ret);
/* The number of bytes before the first one that is not part of valid UTF-8; `n`: all are valid. */
size_t kiln_utf8_check(const char *text, size_t n);
/* Columns on a screen: 2 for East Asian wide characters and emoji, 0 for those that
 * join the one before, else 1. */
int kiln_utf8_width(uint32_t character);
/* Columns of `n` bytes of text. */
int kiln_utf8_columns(const char *text, size_t n);

#endif
