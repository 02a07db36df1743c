/* Characters of UTF-8 text and their classes. `utf8proc` has the Unicode tables. */
#ifndef KILN_TEXT_UNICODE_CHARACTERS_H
#define KILN_TEXT_UNICODE_CHARACTERS_H

#include "kiln/base.h"

/* Offset of the first byte that is not part of valid UTF-8; `n` when all is. */
size_t kiln_utf8_invalid(const char *text, size_t n);
/* The character at `text`, which is valid UTF-8, and its length in bytes. */
size_t kiln_utf8_read(const char *text, uint32_t *ret);
/* The character that ends before text + n, n > 0, and its length in bytes. */
size_t kiln_utf8_read_last(const char *text, size_t n, uint32_t *ret);
/* Write a character; returns its length, at most 4. */
size_t kiln_utf8_write(uint32_t character, char *ret);
size_t kiln_utf8_count(const char *text, size_t n);

/* White_Space of Unicode. */
bool kiln_char_is_space(uint32_t c);
bool kiln_char_is_letter(uint32_t c);      /* L */
bool kiln_char_is_number(uint32_t c);      /* N */
bool kiln_char_is_word(uint32_t c);        /* \w of regular expressions */
bool kiln_char_is_punctuation(uint32_t c); /* P, and all punctuation and symbols of ASCII */
bool kiln_char_is_other(uint32_t c);       /* C but Cn: controls, formats, private use */
bool kiln_char_is_mark(uint32_t c);        /* M */
bool kiln_char_is_nonspacing(uint32_t c);  /* Mn */
/* The lower case of `c`: one or two characters; returns their number. */
int kiln_char_lower(uint32_t c, uint32_t ret[2]);
/* Length in bytes of the extended grapheme cluster that begins at `text`. */
size_t kiln_grapheme_length(const char *text, size_t n);

#endif
