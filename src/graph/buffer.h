/* Memory of a backend, as handles. Parameters, gradients, running statistics, optimizer state,
 * averages and the block of a plan are in buffers; only the backend's kernels and copies touch
 * their bytes. Copies run in the order of the calls, after the kernels that were started before;
 * what fails on the device is reported by kiln_backend_synchronize. */
#ifndef KILN_GRAPH_BUFFER_H
#define KILN_GRAPH_BUFFER_H

#include <stdint.h>

#include "kiln/tensor.h"

typedef struct KilnBuffer KilnBuffer;

/* A buffer of zeros, aligned to 64 bytes; `bytes` may be 0. Pages that are never written may take
 * no memory. Owned by the caller; the backend must outlive it. */
KILN_NODISCARD KilnStatus kiln_buffer_new(KilnBackend *backend, size_t bytes, KilnBuffer **ret,
                                          KilnError *err);
/* Accepts NULL. */
void kiln_buffer_free(KilnBuffer *buffer);
size_t kiln_buffer_bytes(const KilnBuffer *buffer);

/* Copy host bytes to the buffer; they may be reused at once. */
void kiln_buffer_upload(KilnBuffer *buffer, size_t offset, const void *host, size_t bytes);
/* Copy to host bytes, which are complete at the return. */
void kiln_buffer_download(const KilnBuffer *buffer, size_t offset, void *host, size_t bytes);
/* Copy between two buffers of one backend; the ranges must not overlap. */
void kiln_buffer_copy(KilnBuffer *to, size_t to_offset, const KilnBuffer *from, size_t from_offset,
                      size_t bytes);
/* Fill with zeros. */
void kiln_buffer_clear(KilnBuffer *buffer, size_t offset, size_t bytes);

/* The bytes at an offset for the host to read or write, instead of a copy; NULL: the host cannot
 * see the backend's memory. Valid until the next kernel or copy. Counts as a write. */
void *kiln_buffer_host_view(KilnBuffer *buffer, size_t offset);

/* The same only to read: counts as no write. */
const void *kiln_buffer_host_data(const KilnBuffer *buffer, size_t offset);

/* The version of the bytes: every write gives the buffer a number that no buffer of the backend had
 * before, so what was computed from them is still right while the version stays. */
uint64_t kiln_buffer_version(const KilnBuffer *buffer);
/* To be called before kernels write to the buffer: copies, uploads and so on count by themselves.
 */
void kiln_buffer_written(KilnBuffer *buffer);

/* The address for a kernel's argument. Nothing but the backend may read or write there. */
void *kiln_buffer_address(const KilnBuffer *buffer, size_t offset);
/* Whether the backend's memory is the host's: addresses are pointers, and need no copies. */
bool kiln_backend_on_host(const KilnBackend *backend);
/* Wait for all kernels and copies; the first failure since the last call. */
KILN_NODISCARD KilnStatus kiln_backend_synchronize(KilnBackend *backend, KilnError *err);

/* Where the bytes of a leaf or of a gradient are. All zero: nowhere. */
typedef struct KilnLocation {
    KilnBuffer *buffer; /* borrowed; NULL: they are in the host's memory */
    size_t offset;      /* in the buffer */
    void *host;         /* borrowed; NULL if there is a buffer */
} KilnLocation;

/* A number that orders locations: ranges of bytes overlap where their numbers do. 0: nowhere. */
uintptr_t kiln_location_address(const KilnLocation *location);
bool kiln_location_equal(const KilnLocation *a, const KilnLocation *b);

#endif
