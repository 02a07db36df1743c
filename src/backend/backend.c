/* What all backends share. */
#include "graph/backend.h"

void kiln_backend_free(KilnBackend *backend)
{
    if (backend != NULL)
        backend->ops->free(backend);
}

void kiln_backend_set_convolution(KilnBackend *backend, KilnConvolution convolution)
{
    backend->convolution = convolution;
}
