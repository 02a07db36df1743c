/* What raw fields take, as text for messages. */
#ifndef KILN_DATA_RAW_RAW_TEXT_H
#define KILN_DATA_RAW_RAW_TEXT_H

#include "kiln/raw.h"
#include "kiln/tools/text.h"

/* Append "path or bytes". */
void kiln_raw_types_text(unsigned types, KilnText *text);
/* Append "image (path or bytes: a PNG image), note (text; optional)". */
void kiln_raw_fields_text(const KilnRawField *fields, size_t n, KilnText *text);

/* Element i of a number or array, as a double. */
double kiln_raw_element(const KilnRawValue *value, int64_t i);

#endif
