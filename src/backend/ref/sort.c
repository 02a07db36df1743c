/* Reference of sorting. */
#include <math.h>
#include <stdlib.h>

#include "backend/ref/ref.h"
#include "graph/ops/select/lines.h"

typedef struct Item {
    double value;
    int64_t index;
} Item;

/* NaN is above all numbers; equal elements stay in order. */
static int compare_ascending(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    const int nan = isnan(x->value) - isnan(y->value);

    if (nan != 0)
        return nan;
    if (x->value != y->value && !isnan(x->value))
        return x->value < y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int compare_descending(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    const bool same = x->value == y->value || (isnan(x->value) && isnan(y->value));

    return same ? compare_ascending(a, b) : -compare_ascending(a, b);
}

static void sort_run(KilnCall *call)
{
    const KilnSortAttrs *attrs = call->attrs;
    const KilnLines from = kiln_lines_of(&call->inputs[0].shape, attrs->axis);
    const KilnLines to = kiln_lines_of(&call->outputs[0].shape, attrs->axis);
    Item *items = call->workspace;

    for (int64_t line = 0; line < from.count; line++) {
        const int64_t start = kiln_line_start(&from, line), first = kiln_line_start(&to, line);

        for (int64_t i = 0; i < from.n; i++)
            items[i] = (Item) { kiln_ref_get(&call->inputs[0], start + i * from.inner), i };
        qsort(items, (size_t)from.n, sizeof(*items),
              attrs->descending != 0 ? compare_descending : compare_ascending);
        for (int64_t i = 0; i < to.n; i++) {
            kiln_ref_set(&call->outputs[0], first + i * to.inner, items[i].value);
            kiln_ref_set(&call->outputs[1], first + i * to.inner, (double)items[i].index);
        }
    }
}

static KilnStatus sort_prepare(KilnCall *call, KilnError *err)
{
    const KilnSortAttrs *attrs = call->attrs;

    (void)err;
    call->workspace_size = (size_t)call->inputs[0].shape.dim[attrs->axis] * sizeof(Item);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sort, .prepare = sort_prepare, .run = sort_run },
};

const KilnRefTable kiln_ref_sort = { kernels, KILN_COUNT(kernels) };
