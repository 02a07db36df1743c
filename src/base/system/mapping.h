/* Files that are mapped to be written, whose writer survives that somebody cuts them short. */
#ifndef KILN_BASE_SYSTEM_MAPPING_H
#define KILN_BASE_SYSTEM_MAPPING_H

#include "kiln/base.h"

/* Map `size` bytes of an open file to be written, shared. Its blocks are allocated first: to write
 * to a hole of a full file system kills. NULL: errno says why. At most 16 at a time are protected
 * as below. */
void *kiln_mapping_open(int fd, size_t size);
/* Accepts NULL. */
void kiln_mapping_close(void *map, size_t size);
/* For the handler of SIGBUS: when `address` lies in such a mapping, put memory of zeros without a
 * file in the mapping's place, so that the access can be repeated. Async-signal-safe. */
bool kiln_mapping_rescue(const void *address);
/* Whether that happened: what is written goes nowhere. */
bool kiln_mapping_lost(const void *map);

#endif
