/* Caches for decoding: rows are copied to a position that is data. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "graph/ops/select/lines.h"
#include "tensor/bf16.h"

/* n elements, of f32 or bf16 each. */
static void copy_elements(const KilnCall *call, int64_t to, int64_t from, int64_t n)
{
    const KilnLoops *loops = kiln_cpu(call)->loops;
    const KilnArg *cache = &call->inputs[0], *x = &call->inputs[1];
    const size_t size = kiln_dtype_size(cache->dtype);

    if (cache->dtype == x->dtype)
        memcpy((char *)cache->data + (size_t)to * size, (const char *)x->data + (size_t)from * size,
               (size_t)n * size);
    else if (cache->dtype == KILN_BF16)
        loops->to_bf16((uint16_t *)cache->data + to, (const float *)x->data + from, n);
    else
        loops->from_bf16((float *)cache->data + to, (const uint16_t *)x->data + from, n);
}

static void fill_nan(const KilnArg *cache, int64_t to, int64_t n)
{
    for (int64_t i = to; i < to + n; i++) {
        if (cache->dtype == KILN_BF16)
            ((uint16_t *)cache->data)[i] = kiln_bf16_of(NAN);
        else
            ((float *)cache->data)[i] = NAN;
    }
}

/* Planes [begin, end): the rows at one index of the axes before the axis. */
static void cache_write_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnCacheAttrs *attrs = call->attrs;
    const KilnArg *cache = &call->inputs[0], *position = &call->inputs[2];
    const KilnLines to = kiln_lines_of(&cache->shape, attrs->axis);
    const KilnLines from = kiln_lines_of(&call->inputs[1].shape, attrs->axis);
    const int64_t planes = to.count / to.inner / cache->shape.dim[0];

    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t batch = kiln_cpu_count(position) > 1 ? plane / planes : 0;
        const int64_t first = ((const int32_t *)position->data)[batch];
        const int64_t skip = first < 0 ? -first : 0, room = to.n - first;
        const int64_t last = from.n < room ? from.n : room; /* rows from skip to last fit */
        const int64_t start = plane * to.n;

        if (skip < last)
            copy_elements(call, (start + first + skip) * to.inner,
                          (plane * from.n + skip) * to.inner, (last - skip) * to.inner);
        if (skip > 0 || last < from.n)
            fill_nan(cache, (start + to.n - 1) * to.inner, to.inner);
    }
}

static void cache_write_run(KilnCall *call)
{
    const KilnCacheAttrs *attrs = call->attrs;
    const KilnLines from = kiln_lines_of(&call->inputs[1].shape, attrs->axis);

    kiln_parallel(call->backend->threads, from.count / from.inner,
                  16384 / (from.n * from.inner) + 1, 1, cache_write_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_cache_write,
      .run = cache_write_run,
      .bf16_inputs = 1u << 0 | 1u << 1,
      .mixed_floats = true },
};

const KilnCpuTable kiln_cpu_kv_cache = { kernels, KILN_COUNT(kernels) };
