/* Types of plain text: those of YAML 1.1 as OmegaConf reads them, and the fewer ones of the
 * override grammar. */
#ifndef KILN_CONFIG_YAML_SCALAR_H
#define KILN_CONFIG_YAML_SCALAR_H

#include "config/tree/node.h"

/* Type of a plain YAML scalar. `ret_text` is its canonical spelling, in the
 * arena or `text` itself: decimal integers (31 for 0x1F), true and false, null,
 * floats without underscores; NULL when memory is out. Text that holds ${ is an
 * interpolation, ??? a missing value. */
KilnScalar kiln_scalar_yaml(KilnArena *arena, const char *text, const char **ret_text);
/* The same for an unquoted value of an override or of a resolver's argument:
 * 0x1F, 017 and yes are text there, nan and inf are numbers. */
KilnScalar kiln_scalar_value(KilnArena *arena, const char *text, const char **ret_text);
/* Type of quoted text: STR, INTERPOLATION or MISSING. */
KilnScalar kiln_scalar_text(const char *text);
/* Is it UTF-8 without NUL and surrogates? */
bool kiln_text_is_utf8(const char *text, size_t size);

#endif
