/* What all backends share: giving one back. */
#include "graph/backend.h"

void kiln_backend_free(KilnBackend *backend)
{
    if (backend != NULL)
        backend->ops->free(backend);
}
