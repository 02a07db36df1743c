/* Base64, as tokenizer files use it for binary data. */
#ifndef KILN_TEXT_JSON_BASE64_H
#define KILN_TEXT_JSON_BASE64_H

#include "kiln/base.h"

/* *ret is owned by the caller. False: it is none, or memory ran out. */
KILN_NODISCARD bool kiln_base64_decode(const char *text, unsigned char **ret, size_t *ret_n);

#endif
