/* The memory of backends that compute on the processor: the host's own. */
#ifndef KILN_BACKEND_HOST_MEMORY_H
#define KILN_BACKEND_HOST_MEMORY_H

#include "graph/backend.h"

extern const KilnMemoryOps kiln_host_memory;

#endif
