/* Reference of non-maximum suppression. */
#include <math.h>

#include "backend/ref/ref.h"

static double side(const KilnArg *boxes, int64_t box, int i)
{
    return kiln_ref_get(boxes, 4 * box + i);
}

static double area(const KilnArg *boxes, int64_t box)
{
    return (side(boxes, box, 2) - side(boxes, box, 0)) *
           (side(boxes, box, 3) - side(boxes, box, 1));
}

static double iou(const KilnArg *boxes, int64_t a, int64_t b)
{
    double both = 1.0;

    for (int axis = 0; axis < 2; axis++)
        both *= fmax(fmin(side(boxes, a, axis + 2), side(boxes, b, axis + 2)) -
                         fmax(side(boxes, a, axis), side(boxes, b, axis)),
                     0.0);
    return both / (area(boxes, a) + area(boxes, b) - both);
}

static bool same_group(const KilnArg *groups, int64_t a, int64_t b)
{
    return groups->absent ||
           ((const int32_t *)groups->data)[a] == ((const int32_t *)groups->data)[b];
}

/* Every box in the order of scores, unless it overlaps a better one that is kept. */
static void nms_run(KilnCall *call)
{
    const KilnNmsAttrs *attrs = call->attrs;
    const int32_t *order = call->inputs[1].data;
    int32_t *kept = call->workspace;
    int64_t count = 0;

    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[1]); i++) {
        bool best = true;

        for (int64_t k = 0; k < count && best; k++)
            best = !(same_group(&call->inputs[2], kept[k], order[i]) &&
                     iou(&call->inputs[0], kept[k], order[i]) > attrs->threshold);
        if (best)
            kept[count++] = order[i];
    }
    for (int64_t i = 0; i < attrs->limit; i++)
        kiln_ref_set(&call->outputs[0], i, i < count ? kept[i] : -1.0);
    kiln_ref_set(&call->outputs[1], 0, (double)count);
}

static KilnStatus nms_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->workspace_size = (size_t)kiln_ref_count(&call->inputs[1]) * sizeof(int32_t);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_nms, .prepare = nms_prepare, .run = nms_run },
};

const KilnRefTable kiln_ref_boxes = { kernels, KILN_COUNT(kernels) };
