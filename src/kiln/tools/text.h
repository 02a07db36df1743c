/* Growable text: a buffer for lines, messages and files, and JSON for it.
 *
 * A zeroed KilnText is ready. Appending never fails visibly: when memory runs out, `failed` is set,
 * later appends do nothing, and kiln_text_take returns NULL. Check once, at the end. */
#ifndef KILN_TEXT_H
#define KILN_TEXT_H

#include "kiln/base.h"

typedef struct KilnText {
    char *data; /* NUL-terminated when not NULL; NULL: nothing was appended */
    size_t length, capacity;
    bool failed; /* memory ran out */
} KilnText;

/* Append a NUL-terminated text. */
KILN_API void kiln_text_append(KilnText *text, const char *more);
/* Append `n` bytes. */
KILN_API void kiln_text_append_n(KilnText *text, const char *more, size_t n);
/* Append one byte. */
KILN_API void kiln_text_char(KilnText *text, char c);
/* Append as printf does. */
KILN_API void kiln_text_printf(KilnText *text, const char *format, ...) KILN_PRINTF(2, 3);
KILN_API void kiln_text_vprintf(KilnText *text, const char *format, va_list args) KILN_PRINTF(2, 0);
/* Append a JSON string: quoted, with ", \ and control characters escaped. A byte that is not part
 * of valid UTF-8 becomes U+FFFD, so that the result is always valid JSON. */
KILN_API void kiln_text_json_string(KilnText *text, const char *value);
/* Append a JSON number: the shortest text that reads back as the same double, always with a point
 * or an exponent (1.0, 1e-05); null for NaN and infinity, which JSON lacks. */
KILN_API void kiln_text_json_number(KilnText *text, double value);
/* Empty the text and reset `failed`; the memory is kept for later appends. */
KILN_API void kiln_text_clear(KilnText *text);
/* The text, owned by the caller and freed with free() ("" if nothing was appended); NULL when
 * memory ran out. `text` is empty and released afterwards. */
KILN_API char *kiln_text_take(KilnText *text);
/* Free the memory; `text` is then zeroed. */
KILN_API void kiln_text_release(KilnText *text);

/* Bytes of the white space at `s`, of which n bytes are there; 0: there is none. White space is
 * Unicode's, as Python's str.split has it. */
KILN_API size_t kiln_space_at(const char *s, size_t n);
/* The general category, by its first letter, of the character at `s`, of which n > 0 bytes are
 * there: L, M, N, P, S, Z, or C. *ret_length: its bytes. A byte that is not part of valid UTF-8 is
 * a character of category C. */
KILN_API char kiln_category_at(const char *s, size_t n, size_t *ret_length);

#endif
