/* What is wrong with a text that is not YAML, in the words of the person who wrote it. */
#ifndef KILN_CONFIG_YAML_SYNTAX_HINT_H
#define KILN_CONFIG_YAML_SYNTAX_HINT_H

#include <yaml.h>

#include "kiln/base.h"

/* Say what a parser's syntax error in `text` comes from; *ret_mark is the place to mend. The usual
 * slips (tabs, indentation, a missing blank or quote) have messages of their own; of anything else
 * libyaml's is repeated. */
void kiln_syntax_hint_describe(const yaml_parser_t *parser, const char *text, size_t size,
                               KilnError *ret, yaml_mark_t *ret_mark);

#endif
