/* Buffers in the host's memory: copies are memcpy, and nothing ever has to wait. */
#include "backend/host_memory.h"

#include <string.h>

#include "base/system/zeros.h"

static void *allocate(KilnBackend *backend, size_t bytes)
{
    (void)backend;
    return kiln_zeros(bytes);
}

static void release(KilnBackend *backend, void *address)
{
    (void)backend;
    kiln_zeros_free(address);
}

static void copy(KilnBackend *backend, void *to, const void *from, size_t bytes)
{
    (void)backend;
    memcpy(to, from, bytes);
}

static void clear(KilnBackend *backend, void *to, size_t bytes)
{
    (void)backend;
    memset(to, 0, bytes);
}

static KilnStatus synchronize(KilnBackend *backend, KilnError *err)
{
    (void)backend;
    (void)err;
    return KILN_OK;
}

const KilnMemoryOps kiln_host_memory = {
    .allocate = allocate,
    .free = release,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .clear = clear,
    .synchronize = synchronize,
    .on_host = true,
};
