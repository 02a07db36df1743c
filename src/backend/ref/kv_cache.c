/* Reference of caches for decoding. */
#include <math.h>

#include "backend/ref/ref.h"
#include "graph/ops/select/lines.h"

static void cache_write_run(KilnCall *call)
{
    const KilnCacheAttrs *attrs = call->attrs;
    const KilnArg *position = &call->inputs[2];
    const KilnLines to = kiln_lines_of(&call->inputs[0].shape, attrs->axis);
    const KilnLines from = kiln_lines_of(&call->inputs[1].shape, attrs->axis);
    const int64_t lines = to.count / call->inputs[0].shape.dim[0];

    for (int64_t line = 0; line < to.count; line++) {
        const int64_t batch = kiln_ref_count(position) > 1 ? line / lines : 0;
        const int64_t first = ((const int32_t *)position->data)[batch];

        for (int64_t i = 0; i < from.n; i++) {
            const bool fits = first + i >= 0 && first + i < to.n;
            const int64_t row = fits ? first + i : to.n - 1;
            const double x = kiln_ref_get(&call->inputs[1],
                                          kiln_line_start(&from, line) + i * from.inner);

            kiln_ref_set(&call->inputs[0], kiln_line_start(&to, line) + row * to.inner,
                         fits ? x : NAN);
        }
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_cache_write, .run = cache_write_run },
};

const KilnRefTable kiln_ref_kv_cache = { kernels, KILN_COUNT(kernels) };
