/* The reference backend: plain C, one thread, plain order, computed in double over f32 or f64
 * storage. Tests compare with it; it is written to be read. */
#include "backend/ref/ref.h"

#include <stdlib.h>
#include <string.h>

#include "backend/host_memory.h"

const KilnKernel *kiln_ref_kernel(const KilnBackend *backend, const KilnOp *op)
{
    const KilnRefTable *const tables[] = {
        &kiln_ref_cast,     &kiln_ref_map,         &kiln_ref_elementwise, &kiln_ref_reductions,
        &kiln_ref_products, &kiln_ref_convolution, &kiln_ref_pooling,     &kiln_ref_normalization,
        &kiln_ref_losses,   &kiln_ref_updates,     &kiln_ref_optimizers,  &kiln_ref_attention,
        &kiln_ref_rotary,   &kiln_ref_recurrent,   &kiln_ref_movement,    &kiln_ref_embedding,
        &kiln_ref_resample, &kiln_ref_padding,     &kiln_ref_ctc,         &kiln_ref_set_norm,
        &kiln_ref_sort,     &kiln_ref_segment,     &kiln_ref_random,      &kiln_ref_kv_cache,
        &kiln_ref_resize,   &kiln_ref_patches,     &kiln_ref_sample,      &kiln_ref_boxes,
        &kiln_ref_compact,  &kiln_ref_crf,
    };

    if (op->custom != NULL)
        return kiln_ref_custom(backend, op->custom);
    for (size_t t = 0; t < KILN_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            if (tables[t]->kernels[i].op == op)
                return &tables[t]->kernels[i];
    return NULL;
}

static size_t ref_layout_bytes(const KilnBackend *backend, KilnLayout layout, KilnDType dtype,
                               const KilnShape *shape)
{
    (void)backend;
    (void)layout; /* only plain order exists */
    return (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
}

static void reorder_run(KilnCall *call)
{
    memcpy(call->outputs[0].data, call->inputs[0].data, call->outputs[0].bytes);
}

static void ref_free(KilnBackend *backend)
{
    free(backend);
}

static KilnStatus ref_new(KilnDType float_type, KilnBackend **ret, KilnError *err)
{
    static const KilnKernel reorder = { .run = reorder_run };
    static const KilnBackendOps ops = {
        .name = "reference",
        .memory = &kiln_host_memory,
        .kernel = kiln_ref_kernel,
        .layout_bytes = ref_layout_bytes,
        .reorder = &reorder,
        .free = ref_free,
    };
    KilnBackend *backend = malloc(sizeof(*backend));

    if (backend == NULL)
        return kiln_error_nomem(err, sizeof(*backend));
    *backend = (KilnBackend) { .ops = &ops, .float_type = float_type, .threads = 1 };
    *ret = backend;
    return KILN_OK;
}

KilnStatus kiln_backend_ref_new(KilnBackend **ret, KilnError *err)
{
    return ref_new(KILN_F32, ret, err);
}

KilnStatus kiln_backend_ref_f64_new(KilnBackend **ret, KilnError *err)
{
    return ref_new(KILN_F64, ret, err);
}
