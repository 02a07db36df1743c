/* Arrow's columns as CSV: a header, and rows that read back as the same values. */
#ifndef KILN_DATA_RECORDS_ARROW_CSV_H
#define KILN_DATA_RECORDS_ARROW_CSV_H

#include "data/records/arrow.h"
#include "kiln/base.h"
#include "kiln/tools/text.h"

/* Append the names. KILN_E_FORMAT for columns that a row of CSV can't have: lists, structs, maps,
 * bytes, durations. The message begins with the column. */
KILN_NODISCARD KilnStatus kiln_arrow_csv_header(const struct ArrowSchema *schema, KilnText *text,
                                                KilnError *err);
/* Append row `row` of a batch of that schema. Missing values are empty fields, booleans true and
 * false, dates and times as ISO 8601 has them, in UTC and without a time at midnight; a number is
 * the shortest text that reads back as the same. */
void kiln_arrow_csv_row(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                        int64_t row, KilnText *text);

#endif
