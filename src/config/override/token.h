/* The ends of tokens, which messages underline. */
#ifndef KILN_CONFIG_OVERRIDE_TOKEN_H
#define KILN_CONFIG_OVERRIDE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* The end (offset in bytes) of the key, scalar or bracketed text at `at` in a line of YAML, or in
 * an argument (key=value); at least at + 1, and at most `size` unless `at` is `size`. */
size_t kiln_token_end(const char *text, size_t size, size_t at, bool argument);

#endif
