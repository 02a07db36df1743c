/* Runs the kernels of operations that components define: in the type that the backend computes in.
 */
#include "graph/ops/custom.h"

#include "backend/ref/ref.h"
#include "base/call.h"

static void run_f32(KilnCall *call)
{
    const KilnOpCall args = kiln_custom_call(call);

    kiln_call_enter_kernel(call->op->name, &args);
    call->op->custom->cpu(&args);
    kiln_call_leave();
}

static void run_f64(KilnCall *call)
{
    const KilnOpCall args = kiln_custom_call(call);

    kiln_call_enter_kernel(call->op->name, &args);
    call->op->custom->cpu_f64(&args);
    kiln_call_leave();
}

const KilnKernel *kiln_ref_custom(const KilnBackend *backend, const KilnCustomOp *op)
{
    static const KilnKernel f32 = { .prepare = kiln_custom_prepare, .run = run_f32 };
    static const KilnKernel f64 = { .prepare = kiln_custom_prepare, .run = run_f64 };

    if (backend->float_type == KILN_F32)
        return &f32;
    return op->cpu_f64 != NULL ? &f64 : NULL;
}
