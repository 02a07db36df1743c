/* Shared by all backends: the list of them, and their common settings. */
#include "graph/backend.h"

KilnChoice kiln_accelerators[KILN_MAX_ACCELERATORS + 1] = { { "auto", 0 }, { "cpu", 1 } };

/* In the same order. */
static struct {
    KilnBackendNew *make, *make_f64; /* make_f64 may be NULL */
} backends[KILN_MAX_ACCELERATORS] = {
    { kiln_backend_cpu_new, kiln_backend_cpu_f64_new },
    { kiln_backend_cpu_new, kiln_backend_cpu_f64_new },
};

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

KilnStatus kiln_backend_open(int64_t accelerator, KilnDType float_type, int threads,
                             KilnBackend **ret, KilnError *err)
{
    if (float_type != KILN_F64)
        return backends[accelerator].make(threads, ret, err);
    if (backends[accelerator].make_f64 == NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "trainer.precision=64-true: accelerator %s computes in f32 only; use "
                              "trainer.accelerator=cpu",
                              kiln_accelerators[accelerator].name);
    return backends[accelerator].make_f64(threads, ret, err);
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
