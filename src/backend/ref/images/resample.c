/* Reference of resizing images. */
#include "backend/ref/ref.h"

/* Calls `each` for every pair of an output element and one of its four input elements, with the
 * weight. */
static void each_pair(KilnCall *call, const KilnArg *small, const KilnArg *large,
                      void (*each)(KilnCall *call, int64_t in, int64_t out, double weight))
{
    const KilnUpsampleAttrs *attrs = call->attrs;
    const int64_t channels = small->shape.dim[3];

    for (int64_t i = 0; i < kiln_ref_count(large); i++) {
        const int64_t c = i % channels, ox = i / channels % attrs->out[1];
        const int64_t oy = i / channels / attrs->out[1] % attrs->out[0];
        const int64_t n = i / channels / attrs->out[1] / attrs->out[0];
        const KilnSamplePoint y = kiln_sample_point(attrs->mode, attrs->in[0], attrs->out[0], oy);
        const KilnSamplePoint x = kiln_sample_point(attrs->mode, attrs->in[1], attrs->out[1], ox);

        for (int corner = 0; corner < 4; corner++) {
            const int64_t row = corner / 2 != 0 ? y.high : y.low;
            const int64_t column = corner % 2 != 0 ? x.high : x.low;
            const double wy = corner / 2 != 0 ? y.weight : 1.0 - y.weight;
            const double wx = corner % 2 != 0 ? x.weight : 1.0 - x.weight;

            each(call, ((n * attrs->in[0] + row) * attrs->in[1] + column) * channels + c, i,
                 wy * wx);
        }
    }
}

static void clear(KilnArg *arg)
{
    for (int64_t i = 0; i < kiln_ref_count(arg); i++)
        kiln_ref_set(arg, i, 0.0);
}

static void add_term(KilnArg *y, int64_t to, const KilnArg *x, int64_t from, double weight)
{
    if (weight != 0.0)
        kiln_ref_set(y, to, kiln_ref_get(y, to) + weight * kiln_ref_get(x, from));
}

static void forward(KilnCall *call, int64_t in, int64_t out, double weight)
{
    add_term(&call->outputs[0], out, &call->inputs[0], in, weight);
}

static void backward(KilnCall *call, int64_t in, int64_t out, double weight)
{
    add_term(&call->outputs[0], in, &call->inputs[0], out, weight);
}

static void upsample_run(KilnCall *call)
{
    clear(&call->outputs[0]);
    each_pair(call, &call->inputs[0], &call->outputs[0], forward);
}

static void upsample_grad_run(KilnCall *call)
{
    clear(&call->outputs[0]);
    each_pair(call, &call->outputs[0], &call->inputs[0], backward);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_upsample, .run = upsample_run },
    { .op = &kiln_op_upsample_grad, .run = upsample_grad_run },
};

const KilnRefTable kiln_ref_resample = { kernels, KILN_COUNT(kernels) };
