/* Memory that this process and another one map, which grows. */
#ifndef KILN_PYTHON_SHARED_MEMORY_H
#define KILN_PYTHON_SHARED_MEMORY_H

#include "kiln/base.h"

typedef struct KilnSharedMemory {
    int fd;
    void *data; /* NULL: not mapped yet */
    size_t mapped, used;
} KilnSharedMemory;

KILN_NODISCARD KilnStatus kiln_shared_memory_open(KilnSharedMemory *memory, KilnError *err);
void kiln_shared_memory_close(KilnSharedMemory *memory);
/* Copy bytes after those put before; false: memory is out. */
bool kiln_shared_memory_put(KilnSharedMemory *memory, const void *data, size_t size,
                            size_t *ret_at);
/* The next bytes are put at the beginning again. */
void kiln_shared_memory_clear(KilnSharedMemory *memory);
/* Bytes that are there; NULL: there are fewer. Borrowed until the next call. */
const void *kiln_shared_memory_at(KilnSharedMemory *memory, size_t at, size_t size);

#endif
