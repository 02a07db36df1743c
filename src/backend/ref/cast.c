/* Reference of conversion between types. */
#include "backend/ref/ref.h"

static void cast_run(KilnCall *call)
{
    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, kiln_ref_get(&call->inputs[0], i));
}

static void store_run(KilnCall *call)
{
    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[0]); i++)
        kiln_ref_set(&call->inputs[0], i, kiln_ref_get(&call->inputs[1], i));
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_cast, .run = cast_run },
    { .op = &kiln_op_store, .run = store_run },
};

const KilnRefTable kiln_ref_cast = { kernels, KILN_COUNT(kernels) };
