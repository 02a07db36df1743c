/* Parquet files, unpacked as CSV. */
#ifndef KILN_DATA_RECORDS_PARQUET_H
#define KILN_DATA_RECORDS_PARQUET_H

#include "kiln/base.h"

/* Whether the name ends in .parquet. */
bool kiln_is_parquet(const char *path);
/* Write the rows of the file `from` as CSV, with a header, to the open file `to`. KILN_E_MISSING:
 * built without Arrow, or its library can't be loaded. KILN_E_FORMAT: a damaged file, or one with
 * columns that CSV can't have. */
KILN_NODISCARD KilnStatus kiln_parquet_unpack(const char *from, int to, const KilnPoll *poll,
                                              KilnError *err);
/* The version of Arrow, which is loaded for that; NULL with `err` set: there is none. */
const char *kiln_parquet_version(KilnError *err);

#endif
