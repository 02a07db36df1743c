/* The ends of tokens, which messages underline. */
#ifndef KILN_CONFIG_OVERRIDE_TOKEN_H
#define KILN_CONFIG_OVERRIDE_TOKEN_H

#include <stddef.h>

/* The end (offset in bytes) of the key, scalar or bracketed text at `at` in a line of YAML; at
 * least at + 1, and at most `size` unless `at` is `size`. */
size_t kiln_token_yaml(const char *line, size_t size, size_t at);
/* The same in an argument (key=value). */
size_t kiln_token_argument(const char *text, size_t size, size_t at);

#endif
