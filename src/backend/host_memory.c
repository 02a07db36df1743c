/* Buffers in the host's memory: copies are memcpy, and nothing ever has to wait. On machines with
 * several memory nodes, a page belongs to the thread that first writes it, so clearing is split as
 * loops over floats are. */
#include "backend/host_memory.h"

#include <string.h>

#include "backend/cpu/parallel.h"
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

static void clear_part(void *to, int64_t begin, int64_t end)
{
    memset((char *)to + begin, 0, (size_t)(end - begin));
}

static void clear(KilnBackend *backend, void *to, size_t bytes)
{
    enum { GRAIN = 16384, ALIGN = 64 }; /* of kiln_cpu_each and the optimizers, in floats */
    const int64_t size = sizeof(float);

    kiln_parallel(backend->threads, (int64_t)bytes, GRAIN * size, ALIGN * size, clear_part, to);
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
