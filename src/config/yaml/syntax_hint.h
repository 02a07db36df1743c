/* Explains why a text is not YAML, in the terms of the person who wrote it. */
#ifndef KILN_CONFIG_YAML_SYNTAX_HINT_H
#define KILN_CONFIG_YAML_SYNTAX_HINT_H

#include <yaml.h>

#include "kiln/base.h"

/* Describe the parser's syntax error in `text`; *ret_mark is where to fix it. Common mistakes
 * (tabs, indentation, a missing blank or quote) have messages of their own; else libyaml's is used.
 */
void kiln_syntax_hint_describe(const yaml_parser_t *parser, const char *text, size_t size,
                               KilnError *ret, yaml_mark_t *ret_mark);

#endif
