/* Shared by all backends: the list of them, and their common settings. */
#include "graph/backend.h"

KilnChoice kiln_accelerators[KILN_MAX_ACCELERATORS + 1] = { { "auto", 0 }, { "cpu", 1 } };

/* In the same order. */
static struct {
    KilnBackendNew *make;
} backends[KILN_MAX_ACCELERATORS] = { { kiln_backend_cpu_new }, { kiln_backend_cpu_new } };

bool kiln_backend_register(const char *name, KilnBackendNew *make)
{
    size_t n = 0;

    while (kiln_accelerators[n].name != NULL)
        n++;
    if (n == KILN_MAX_ACCELERATORS)
        return false;
    kiln_accelerators[n] = (KilnChoice) { name, (int64_t)n };
    backends[n].make = make;
    return true;
}

KilnStatus kiln_backend_open(int64_t accelerator, int threads, KilnBackend **ret, KilnError *err)
{
    return backends[accelerator].make(threads, ret, err);
}

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
