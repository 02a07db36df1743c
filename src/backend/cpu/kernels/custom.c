/* Runs the kernels of operations that components define (kiln/custom_op.h). */
#include "graph/ops/custom.h"

#include "backend/cpu/cpu.h"

static void custom_run(KilnCall *call)
{
    const KilnOpCall args = kiln_custom_call(call);

    call->op->custom->cpu(&args);
}

const KilnKernel kiln_cpu_custom = { .prepare = kiln_custom_prepare, .run = custom_run };

void kiln_op_parallel(const KilnOpCall *call, int64_t n, int64_t grain,
                      void (*part)(void *context, int64_t begin, int64_t end), void *context)
{
    kiln_parallel(call->threads, n, grain, 1, part, context);
}
