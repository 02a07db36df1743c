/* Runs the kernels of operations that components define (kiln/custom_op.h). */
#include "graph/ops/custom.h"

#include "backend/cpu/cpu.h"
#include "base/call.h"

static void custom_run(KilnCall *call)
{
    const KilnOpCall args = kiln_custom_call(call);

    kiln_call_enter_kernel(call->op->name, &args);
    call->op->custom->cpu(&args);
    kiln_call_leave();
}

const KilnKernel kiln_cpu_custom = { .prepare = kiln_custom_prepare, .run = custom_run };

typedef struct Work {
    void (*part)(void *context, int64_t begin, int64_t end);
    void *context;
    const KilnCallee *call; /* of the thread that began it */
} Work;

static void run_part(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;

    if (work->call != NULL)
        kiln_call_enter_again(work->call);
    work->part(work->context, begin, end);
    if (work->call != NULL)
        kiln_call_leave();
}

void kiln_op_parallel(const KilnOpCall *call, int64_t n, int64_t grain,
                      void (*part)(void *context, int64_t begin, int64_t end), void *context)
{
    Work work = { part, context, kiln_call_current() };

    kiln_parallel(call->threads, n, grain, 1, run_part, &work);
}
