/* The processor's backend in double precision: kernels of this folder, which OpenBLAS makes fast,
 * and the reference's for other operations. */
#include "backend/cpu/f64/f64.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/parallel.h"
#include "backend/host_memory.h"
#include "backend/ref/ref.h"

static const KilnKernel *f64_kernel(const KilnBackend *backend, const KilnOp *op)
{
    const KilnCpuTable *const tables[] = { &kiln_f64_products, &kiln_f64_convolution,
                                           &kiln_f64_recurrent_forward,
                                           &kiln_f64_recurrent_backward };

    for (size_t t = 0; t < KILN_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            if (tables[t]->kernels[i].op == op)
                return &tables[t]->kernels[i];
    return kiln_ref_kernel(backend, op);
}

static size_t plain_bytes(const KilnBackend *backend, KilnLayout layout, KilnDType dtype,
                          const KilnShape *shape)
{
    (void)backend;
    (void)layout; /* only plain order exists */
    return (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
}

static void copy_run(KilnCall *call)
{
    memcpy(call->outputs[0].data, call->inputs[0].data, call->outputs[0].bytes);
}

static void f64_free(KilnBackend *backend)
{
    free(backend);
}

KilnStatus kiln_backend_cpu_f64_new(int threads, KilnBackend **ret, KilnError *err)
{
    static const KilnKernel reorder = { .run = copy_run };
    static const KilnBackendOps ops = {
        .name = "cpu",
        .memory = &kiln_host_memory,
        .kernel = f64_kernel,
        .layout_bytes = plain_bytes,
        .reorder = &reorder,
        .free = f64_free,
    };
    KilnCpuLevel level = KILN_CPU_BASE;
    bool capped = false;

    if (threads < 1)
        return kiln_error_set(err, KILN_E_RANGE, "threads: expected at least 1, got %d", threads);
    KilnStatus status = kiln_cpu_level_choose(&level, &capped, err);
    if (status == KILN_OK)
        kiln_blas_choose(level, capped);
    if (status == KILN_OK)
        status = kiln_blas_require("trainer.precision=64-true", err);
    if (status == KILN_OK)
        status = kiln_blas_reserve(threads, err);
    if (status != KILN_OK)
        return status;
    kiln_parallel_allow_forks();
    KilnBackend *backend = malloc(sizeof(*backend));
    if (backend == NULL)
        return kiln_error_nomem(err, sizeof(*backend));
    *backend = (KilnBackend) { .ops = &ops, .float_type = KILN_F64, .threads = threads };
    snprintf(backend->machine, sizeof(backend->machine), "f64, %s", kiln_blas_version());
    *ret = backend;
    return KILN_OK;
}
