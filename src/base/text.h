/* More for growable text, and comparisons of text. */
#ifndef KILN_BASE_TEXT_H
#define KILN_BASE_TEXT_H

#include "base/arena.h"
#include "kiln/tools/text.h"

/* Append a word quoted for the shell, if it needs quotes. */
void kiln_text_shell_word(KilnText *text, const char *word);
/* The end of a function that returns text: *ret is the text, owned by the caller, unless `status`
 * is an error or memory ran out. Releases `text`; returns the status. */
KILN_NODISCARD KilnStatus kiln_text_finish(KilnText *text, KilnStatus status, char **ret,
                                           KilnError *err);
/* A copy of the text in the arena; the text is released. */
char *kiln_text_to_arena(KilnText *text, KilnArena *arena);
/* Set `err` to the text and release it. Returns `status`. */
KilnStatus kiln_text_to_error(KilnText *text, KilnStatus status, KilnError *err);
/* Append a step to the key of a value: ".KEY" ("KEY" at the start), or "[I]" where `key` is NULL.
 * Returns the length before, for kiln_key_pop. */
size_t kiln_key_push(KilnText *text, const char *key, size_t i);
void kiln_key_pop(KilnText *text, size_t length);

/* ASCII: 0-9; a-z, A-Z and _; all of them and -. */
bool kiln_is_digit(char c);
bool kiln_is_letter(char c);
bool kiln_is_word(char c);
bool kiln_starts_with(const char *text, const char *prefix);
bool kiln_ends_with(const char *text, const char *suffix);
/* A heap copy, owned by the caller; NULL when memory is out. */
char *kiln_strdup(const char *text);
/* kiln's name for what other training programs call `name`: "lr" for "learning_rate"; NULL:
 * unknown. */
const char *kiln_usual_name(const char *name);
/* The name in `names` closest to `text` by edit distance, if it is a likely typo, else
 * kiln_usual_name(text); NULL: none. */
const char *kiln_nearest(const char *text, const char *const *names, size_t n);

#endif
