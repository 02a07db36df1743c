/* Memory-mapped files for writing, whose writer survives if another process truncates them. */
#ifndef KILN_BASE_SYSTEM_MAPPING_H
#define KILN_BASE_SYSTEM_MAPPING_H

#include "kiln/base.h"

/* Map `size` bytes of an open file, shared, for writing. Allocates its blocks first, since a write
 * to a hole on a full file system would kill the process. NULL with errno on failure. At most 16
 * mappings are protected at a time. */
void *kiln_mapping_open(int fd, size_t size);
/* Accepts NULL. */
void kiln_mapping_close(void *map, size_t size);
/* For the handler of SIGBUS: if `address` is in such a mapping, replace the mapping by zeroed
 * memory, so the access can be repeated. Async-signal-safe. */
bool kiln_mapping_rescue(const void *address);
/* Whether that happened, so writes are lost. */
bool kiln_mapping_lost(const void *map);

#endif
