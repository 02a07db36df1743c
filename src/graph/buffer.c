/* Buffers: handles of a backend's memory, and locations in them. */
#include "graph/buffer.h"

#include <stdlib.h>

#include "graph/backend.h"

struct KilnBuffer {
    KilnBackend *backend;
    size_t bytes;
    uint64_t version;
    char *address; /* of the backend; not to be dereferenced */
};

static const KilnMemoryOps *memory_of(const KilnBuffer *buffer)
{
    return buffer->backend->ops->memory;
}

KilnStatus kiln_buffer_new(KilnBackend *backend, size_t bytes, KilnBuffer **ret, KilnError *err)
{
    KilnBuffer *buffer = malloc(sizeof(*buffer));

    if (buffer == NULL)
        return kiln_error_nomem(err, sizeof(*buffer));
    *buffer = (KilnBuffer) {
        .backend = backend,
        .bytes = bytes,
        .address = backend->ops->memory->allocate(backend, bytes),
    };
    if (buffer->address == NULL) {
        free(buffer);
        return kiln_error_nomem(err, bytes);
    }
    kiln_buffer_written(buffer);
    *ret = buffer;
    return KILN_OK;
}

void kiln_buffer_free(KilnBuffer *buffer)
{
    if (buffer == NULL)
        return;
    memory_of(buffer)->free(buffer->backend, buffer->address);
    free(buffer);
}

size_t kiln_buffer_bytes(const KilnBuffer *buffer)
{
    return buffer->bytes;
}

uint64_t kiln_buffer_version(const KilnBuffer *buffer)
{
    return buffer->version;
}

void kiln_buffer_written(KilnBuffer *buffer)
{
    buffer->version = ++buffer->backend->writes;
}

void kiln_buffer_upload(KilnBuffer *buffer, size_t offset, const void *host, size_t bytes)
{
    kiln_buffer_written(buffer);
    memory_of(buffer)->upload(buffer->backend, buffer->address + offset, host, bytes);
}

void kiln_buffer_download(const KilnBuffer *buffer, size_t offset, void *host, size_t bytes)
{
    memory_of(buffer)->download(buffer->backend, host, buffer->address + offset, bytes);
}

void kiln_buffer_copy(KilnBuffer *to, size_t to_offset, const KilnBuffer *from, size_t from_offset,
                      size_t bytes)
{
    kiln_buffer_written(to);
    memory_of(to)->copy(to->backend, to->address + to_offset, from->address + from_offset, bytes);
}

void kiln_buffer_clear(KilnBuffer *buffer, size_t offset, size_t bytes)
{
    kiln_buffer_written(buffer);
    memory_of(buffer)->clear(buffer->backend, buffer->address + offset, bytes);
}

void *kiln_buffer_address(const KilnBuffer *buffer, size_t offset)
{
    return buffer->address + offset;
}

void *kiln_buffer_host_view(KilnBuffer *buffer, size_t offset)
{
    kiln_buffer_written(buffer);
    return kiln_backend_on_host(buffer->backend) ? kiln_buffer_address(buffer, offset) : NULL;
}

const void *kiln_buffer_host_data(const KilnBuffer *buffer, size_t offset)
{
    return kiln_backend_on_host(buffer->backend) ? kiln_buffer_address(buffer, offset) : NULL;
}

bool kiln_backend_on_host(const KilnBackend *backend)
{
    return backend->ops->memory->on_host;
}

KilnStatus kiln_backend_synchronize(KilnBackend *backend, KilnError *err)
{
    return backend->ops->memory->synchronize(backend, err);
}

uintptr_t kiln_location_address(const KilnLocation *location)
{
    return location->buffer != NULL ? (uintptr_t)(location->buffer->address + location->offset)
                                    : (uintptr_t)location->host;
}

bool kiln_location_equal(const KilnLocation *a, const KilnLocation *b)
{
    return a->buffer == b->buffer && a->offset == b->offset && a->host == b->host;
}
