/* Random numbers: a function of key, stream and element, the same for any number of threads. */
#include "backend/cpu/cpu.h"

static void random_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnRandomAttrs *attrs = call->attrs;
    const KilnLoops *loops = kiln_cpu(call)->loops;
    const int32_t *key = call->inputs[0].data;
    const KilnDropoutLoop words = {
        .key = { (uint32_t)key[0], (uint32_t)key[1] },
        .stream = (uint64_t)attrs->stream ^ UINT64_C(1) << 63,
    };

    (attrs->normal != 0 ? loops->normal : loops->uniform)(call->outputs[0].data, &words, begin,
                                                          end);
}

static void random_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->outputs[0]), random_part);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_random, .run = random_run },
};

const KilnCpuTable kiln_cpu_random = { kernels, KILN_COUNT(kernels) };
