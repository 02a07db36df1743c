/* Operations that cut and join tensors: slice, pad, concat, split, triangle, and those
 * composed of them. */
#include <inttypes.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* The axis counted from the front; -1, with the graph poisoned, if there is none. */
static int axis_of(const KilnTensor *x, const char *name, int axis, int rank)
{
    int from_front = axis < 0 ? axis + rank : axis;

    if (from_front >= 0 && from_front < rank)
        return from_front;
    kiln_graph_poison(x->graph, "%s: there is no axis %d; axes from %d to %d are possible", name,
                      axis, -rank, rank - 1);
    return -1;
}

static KilnWindowAttrs whole_window(const KilnShape *shape)
{
    KilnWindowAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, shape);
    for (int axis = 0; axis < shape->rank; axis++)
        attrs.step[axis] = 1;
    return attrs;
}

/* ---- slice, pad -------------------------------------------------------------- */

/* Checks that the window, `count` elements from start by step, lies within the axis. */
static KilnStatus check_window(const KilnWindowAttrs *attrs, int axis, int64_t count, int64_t size,
                               KilnError *err)
{
    int64_t first = attrs->start[axis], last = first + (count - 1) * attrs->step[axis];

    if (first >= 0 && first < size && last >= 0 && last < size)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "elements %" PRId64 " to %" PRId64
                          " are outside axis %d of size %" PRId64,
                          first, last, axis, size);
}

static KilnStatus infer_slice(KilnNode *node, KilnError *err)
{
    const KilnWindowAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];

    for (int axis = 0; axis < x->shape.rank; axis++) {
        if (check_window(attrs, axis, attrs->shape.dim[axis], x->shape.dim[axis], err) < 0)
            return err->status;
    }
    kiln_infer_output(node, 0, x->dtype, &attrs->shape);
    return KILN_OK;
}

static void gradient_slice(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnWindowAttrs attrs = *(const KilnWindowAttrs *)node->attrs;

    kiln_shape_store(&attrs.shape, &node->inputs[0]->shape);
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_pad, dy, 1, &attrs);
}

static KilnStatus infer_pad(KilnNode *node, KilnError *err)
{
    const KilnWindowAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];

    for (int axis = 0; axis < x->shape.rank; axis++) {
        if (check_window(attrs, axis, x->shape.dim[axis], attrs->shape.dim[axis], err) < 0)
            return err->status;
    }
    kiln_infer_output(node, 0, x->dtype, &attrs->shape);
    return KILN_OK;
}

static void gradient_pad(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnWindowAttrs attrs = *(const KilnWindowAttrs *)node->attrs;

    attrs.value = 0.0;
    kiln_shape_store(&attrs.shape, &node->inputs[0]->shape);
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_slice, dy, 1, &attrs);
}

const KilnOp kiln_op_slice = {
    .name = "slice",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnWindowAttrs),
    .infer = infer_slice,
    .gradient = gradient_slice,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

const KilnOp kiln_op_pad = {
    .name = "pad",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnWindowAttrs),
    .infer = infer_pad,
    .gradient = gradient_pad,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

/* Converts a position in Python's slices: negative counts from the end; clipped to the axis. */
static int64_t clip_position(int64_t position, int64_t size)
{
    if (position < 0)
        position = position < -size ? 0 : position + size;
    return position > size ? size : position;
}

KilnTensor *kiln_slice(KilnTensor *x, int axis, int64_t start, int64_t stop, int64_t step)
{
    if (x->poisoned || (axis = axis_of(x, "slice", axis, x->shape.rank)) < 0)
        return x->graph->poison;
    KilnWindowAttrs attrs = whole_window(&x->shape);
    int64_t from = clip_position(start, x->shape.dim[axis]);
    int64_t to = clip_position(stop, x->shape.dim[axis]);
    if (step < 1)
        return kiln_graph_poison(x->graph, "slice: the step must be at least 1, got %" PRId64,
                                 step);
    if (from >= to)
        return kiln_graph_poison(x->graph,
                                 "slice: from %" PRId64 " to %" PRId64 " of axis %d, which has "
                                 "%" PRId64 ", nothing is left",
                                 start, stop, axis, x->shape.dim[axis]);
    if (from == 0 && to == x->shape.dim[axis] && step == 1)
        return x;
    attrs.start[axis] = from;
    attrs.step[axis] = step;
    attrs.shape.dim[axis] = (to - from - 1) / step + 1;
    return kiln_graph_record(x->graph, &kiln_op_slice, &x, 1, &attrs);
}

KilnTensor *kiln_narrow(KilnTensor *x, int axis, int64_t start, int64_t length)
{
    if (x->poisoned || (axis = axis_of(x, "narrow", axis, x->shape.rank)) < 0)
        return x->graph->poison;
    int64_t size = x->shape.dim[axis];
    int64_t from = start < 0 ? start + size : start;
    if (from < 0 || length < 1 || length > size - from)
        return kiln_graph_poison(x->graph,
                                 "narrow: %" PRId64 " elements from %" PRId64
                                 " on do not fit axis %d of size %" PRId64,
                                 length, start, axis, size);
    return kiln_slice(x, axis, from, from + length, 1);
}

KilnTensor *kiln_select(KilnTensor *x, int axis, int64_t index)
{
    KilnTensor *slice = kiln_narrow(x, axis, index, 1);

    return kiln_squeeze(slice, axis);
}

KilnTensor *kiln_flip(KilnTensor *x, int axis)
{
    if (x->poisoned || (axis = axis_of(x, "flip", axis, x->shape.rank)) < 0)
        return x->graph->poison;
    KilnWindowAttrs attrs = whole_window(&x->shape);
    attrs.start[axis] = x->shape.dim[axis] - 1;
    attrs.step[axis] = -1;
    return kiln_graph_record(x->graph, &kiln_op_slice, &x, 1, &attrs);
}

KilnTensor *kiln_roll(KilnTensor *x, int axis, int64_t shift)
{
    if (x->poisoned || (axis = axis_of(x, "roll", axis, x->shape.rank)) < 0)
        return x->graph->poison;
    int64_t size = x->shape.dim[axis], cut = (size - shift % size) % size;
    if (cut == 0)
        return x;
    KilnTensor *parts[] = { kiln_slice(x, axis, cut, size, 1), kiln_slice(x, axis, 0, cut, 1) };
    return kiln_concat(parts, 2, axis);
}

KilnTensor *kiln_pad(KilnTensor *x, const int64_t *before, const int64_t *after, double value)
{
    if (x->poisoned)
        return x->graph->poison;
    KilnWindowAttrs attrs = whole_window(&x->shape);
    attrs.value = value;
    for (int axis = 0; axis < x->shape.rank; axis++) {
        int64_t *size = &attrs.shape.dim[axis];

        if (before[axis] < 0 || after[axis] < 0 ||
            __builtin_add_overflow(*size, before[axis], size) ||
            __builtin_add_overflow(*size, after[axis], size))
            return kiln_graph_poison(x->graph,
                                     "pad: %" PRId64 " before and %" PRId64 " after axis %d; both "
                                     "must be at least 0 (kiln_slice cuts)",
                                     before[axis], after[axis], axis);
        attrs.start[axis] = before[axis];
    }
    return kiln_graph_record(x->graph, &kiln_op_pad, &x, 1, &attrs);
}

/* ---- concat -------------------------------------------------------------------- */

static KilnStatus infer_concat(KilnNode *node, KilnError *err)
{
    const int axis = (int)((const KilnConcatAttrs *)node->attrs)->axis;
    const KilnTensor *first = node->inputs[0];
    KilnShape shape = first->shape;
    char one[KILN_SHAPE_TEXT], other[KILN_SHAPE_TEXT];

    for (int i = 1; i < node->n_inputs; i++) {
        const KilnTensor *x = node->inputs[i];
        KilnShape same = x->shape;

        if (x->shape.rank == shape.rank)
            same.dim[axis] = first->shape.dim[axis];
        if (!kiln_shape_equal(&same, &first->shape))
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "all must have the same sizes except on axis %d, got %s and %s",
                                  axis, kiln_shape_text(&first->shape, one, sizeof(one)),
                                  kiln_shape_text(&x->shape, other, sizeof(other)));
        if (x->dtype != first->dtype)
            return kiln_error_set(err, KILN_E_SHAPE, "all must have the same type, got %s and %s",
                                  kiln_dtype_name(first->dtype), kiln_dtype_name(x->dtype));
        if (__builtin_add_overflow(shape.dim[axis], x->shape.dim[axis], &shape.dim[axis]))
            return kiln_error_set(err, KILN_E_SHAPE, "the result is too large");
    }
    kiln_infer_output(node, 0, first->dtype, &shape);
    return KILN_OK;
}

static void gradient_concat(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const int axis = (int)((const KilnConcatAttrs *)node->attrs)->axis;
    int64_t sizes[KILN_MAX_PIECES] = { 0 };

    for (int i = 0; i < node->n_inputs; i++)
        sizes[i] = node->inputs[i]->shape.dim[axis];
    kiln_split(dy[0], axis, sizes, node->n_inputs, dx);
}

const KilnOp kiln_op_concat = {
    .name = "concat",
    .n_inputs = KILN_MAX_PIECES,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnConcatAttrs),
    .infer = infer_concat,
    .gradient = gradient_concat,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = (1u << KILN_MAX_PIECES) - 1,
    .bf16_outputs = 1,
};

/* Joins in groups first if there are more tensors than one node takes. */
KilnTensor *kiln_concat(KilnTensor *const *tensors, int n, int axis)
{
    KilnTensor *group[KILN_MAX_PIECES];
    int n_groups = n < KILN_MAX_PIECES ? n : KILN_MAX_PIECES, done = 0;

    for (int i = 0; i < n; i++)
        if (tensors[i]->poisoned)
            return tensors[i]->graph->poison;
    axis = axis_of(tensors[0], "concat", axis, tensors[0]->shape.rank);
    if (axis < 0)
        return tensors[0]->graph->poison;
    if (n == 1)
        return tensors[0];
    for (int i = 0; i < n_groups; i++) {
        int size = (n - done) / (n_groups - i);

        group[i] = kiln_concat(tensors + done, size, axis);
        done += size;
    }
    KilnConcatAttrs attrs = { .axis = axis };
    return kiln_graph_record(tensors[0]->graph, &kiln_op_concat, group, n_groups, &attrs);
}

KilnTensor *kiln_stack(KilnTensor *const *tensors, int n, int axis)
{
    KilnTensor *unsqueezed[KILN_MAX_PIECES];
    KilnTensor *first = tensors[0];

    if (first->poisoned || (axis = axis_of(first, "stack", axis, first->shape.rank + 1)) < 0)
        return first->graph->poison;
    if (n <= KILN_MAX_PIECES) {
        for (int i = 0; i < n; i++)
            unsqueezed[i] = kiln_unsqueeze(tensors[i], axis);
        return kiln_concat(unsqueezed, n, axis);
    }
    for (int i = 0, done = 0; i < KILN_MAX_PIECES; i++) {
        int size = (n - done) / (KILN_MAX_PIECES - i);

        unsqueezed[i] = kiln_stack(tensors + done, size, axis);
        done += size;
    }
    return kiln_concat(unsqueezed, KILN_MAX_PIECES, axis);
}

/* ---- split --------------------------------------------------------------------- */

static KilnStatus infer_split(KilnNode *node, KilnError *err)
{
    const KilnSplitAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];
    KilnShape shape = x->shape;
    int64_t left = x->shape.dim[attrs->axis];

    for (int64_t i = 0; i < attrs->n; i++) {
        if (attrs->size[i] < 1 || attrs->size[i] > left)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "piece %" PRId64 " of size %" PRId64 " does not fit, %" PRId64
                                  " of axis %" PRId64 "'s %" PRId64 " are left",
                                  i, attrs->size[i], left, attrs->axis, x->shape.dim[attrs->axis]);
        left -= attrs->size[i];
        shape.dim[attrs->axis] = attrs->size[i];
        kiln_infer_output(node, (int)i, x->dtype, &shape);
    }
    if (left > 0)
        return kiln_error_set(err, KILN_E_SHAPE, "the pieces leave %" PRId64 " of axis %" PRId64,
                              left, attrs->axis);
    node->n_outputs = (int)attrs->n;
    return KILN_OK;
}

static void gradient_split(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnSplitAttrs *attrs = node->attrs;
    KilnTensor *pieces[KILN_MAX_PIECES];

    for (int i = 0; i < node->n_outputs; i++)
        pieces[i] = dy[i] != NULL
                        ? dy[i]
                        : kiln_graph_full(node->outputs[i]->graph, node->outputs[i]->shape, 0.0);
    dx[0] = kiln_concat(pieces, node->n_outputs, (int)attrs->axis);
}

const KilnOp kiln_op_split = {
    .name = "split",
    .n_inputs = 1,
    .n_outputs = KILN_MAX_PIECES,
    .attrs_size = sizeof(KilnSplitAttrs),
    .infer = infer_split,
    .gradient = gradient_split,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = (1u << KILN_MAX_PIECES) - 1,
};

/* Into at most as many pieces as one node gives. */
static void split_node(KilnTensor *x, int axis, const int64_t *sizes, int n, KilnTensor **ret)
{
    KilnSplitAttrs attrs = { .n = n, .axis = axis };

    for (int i = 0; i < n; i++)
        attrs.size[i] = sizes[i];
    KilnTensor *first = kiln_graph_record(x->graph, &kiln_op_split, &x, 1, &attrs);
    for (int i = 0; i < n; i++)
        ret[i] = first->poisoned ? first : first->node->outputs[i];
}

/* The sum of sizes; -1 if one of them is not a size. */
static int64_t total_of(const int64_t *sizes, int n)
{
    int64_t total = 0;

    for (int i = 0; i < n; i++)
        if (sizes[i] < 1 || __builtin_add_overflow(total, sizes[i], &total))
            return -1;
    return total;
}

/* More pieces than one node gives are cut from groups of them. */
void kiln_split(KilnTensor *x, int axis, const int64_t *sizes, int n, KilnTensor **ret)
{
    int64_t totals[KILN_MAX_PIECES];
    KilnTensor *groups[KILN_MAX_PIECES];

    if (x->poisoned || (axis = axis_of(x, "split", axis, x->shape.rank)) < 0) {
        for (int i = 0; i < n; i++)
            ret[i] = x->graph->poison;
        return;
    }
    if (n <= KILN_MAX_PIECES) {
        split_node(x, axis, sizes, n, ret);
        return;
    }
    for (int i = 0, done = 0; i < KILN_MAX_PIECES; i++) {
        const int size = (n - done) / (KILN_MAX_PIECES - i);

        totals[i] = total_of(sizes + done, size);
        done += size;
    }
    split_node(x, axis, totals, KILN_MAX_PIECES, groups);
    for (int i = 0, done = 0; i < KILN_MAX_PIECES; i++) {
        const int size = (n - done) / (KILN_MAX_PIECES - i);

        kiln_split(groups[i], axis, sizes + done, size, ret + done);
        done += size;
    }
}

/* ---- triangle ------------------------------------------------------------------ */

static KilnStatus infer_triangle(KilnNode *node, KilnError *err)
{
    const KilnShape *shape = &node->inputs[0]->shape;
    char text[KILN_SHAPE_TEXT];

    if (shape->rank < 2)
        return kiln_error_set(err, KILN_E_SHAPE, "needs [..., rows, columns], got %s",
                              kiln_shape_text(shape, text, sizeof(text)));
    if (kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static KilnTensor *record_triangle(KilnTensor *x, int64_t diagonal, bool upper, double value)
{
    KilnTriangleAttrs attrs = { .diagonal = diagonal, .upper = upper, .value = value };

    return kiln_graph_record(x->graph, &kiln_op_triangle, &x, 1, &attrs);
}

static void gradient_triangle(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnTriangleAttrs *attrs = node->attrs;

    dx[0] = record_triangle(dy[0], attrs->diagonal, attrs->upper != 0, 0.0);
}

const KilnOp kiln_op_triangle = {
    .name = "triangle",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnTriangleAttrs),
    .infer = infer_triangle,
    .gradient = gradient_triangle,
};

KilnTensor *kiln_tril(KilnTensor *x, int64_t diagonal, double value)
{
    return record_triangle(x, diagonal, false, value);
}

KilnTensor *kiln_triu(KilnTensor *x, int64_t diagonal, double value)
{
    return record_triangle(x, diagonal, true, value);
}
