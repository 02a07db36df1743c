/* Shared by all backends. */
#include "graph/backend.h"

void kiln_backend_free(KilnBackend *backend)
{
    if (backend != NULL)
        backend->ops->free(backend);
}

bool kiln_backend_bf16(const KilnBackend *backend)
{
    return backend->bf16;
}

void kiln_backend_set_convolution(KilnBackend *backend, KilnConvolution convolution)
{
    backend->convolution = convolution;
}
