/* Where in a file text is bad. */
#ifndef KILN_TEXT_STREAM_TEXT_PLACE_H
#define KILN_TEXT_STREAM_TEXT_PLACE_H

#include "data/records/mapped_file.h"

/* After a failure to tokenize bytes [at, end) of a file: if they are not UTF-8, replace the message
 * by one with file, line and byte, else prefix it with file and line. Returns err->status. */
KilnStatus kiln_text_place_error(const KilnMappedFile *map, uint64_t at, uint64_t end,
                                 KilnError *err);

#endif
