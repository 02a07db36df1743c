/* Records operations that components define. Kernels: backend/cpu/kernels/custom.c and
 * backend/ref/custom.c. */
#include "graph/ops/custom.h"

#include <stdlib.h>

#include "base/array.h"
#include "graph/op_check.h"

_Static_assert((int)KILN_CUSTOM_INPUTS == KILN_MAX_INPUTS, "kiln/custom_op.h has the same limits");
_Static_assert((int)KILN_CUSTOM_OUTPUTS == KILN_MAX_OUTPUTS,
               "kiln/custom_op.h has the same limits");

/* ---- The descriptor ------------------------------------------------------------- */

static KilnStatus infer(KilnNode *node, KilnError *err)
{
    KilnOpArg inputs[KILN_MAX_INPUTS] = { 0 }, outputs[KILN_MAX_OUTPUTS] = { 0 };

    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL)
            inputs[i] = (KilnOpArg) { .dtype = node->inputs[i]->dtype,
                                      .shape = node->inputs[i]->shape };
    if (node->op->custom->infer(node->attrs, inputs, outputs, err) < 0)
        return err->status;
    for (int i = 0; i < node->n_outputs; i++)
        kiln_infer_output(node, i, outputs[i].dtype, &outputs[i].shape);
    return KILN_OK;
}

/* A gradient has its input's shape; what uses it would report another one as an error of its own.
 */
static void check_gradient(const KilnNode *node, int i, KilnTensor **dx)
{
    char got[KILN_SHAPE_TEXT], wanted[KILN_SHAPE_TEXT];

    if (node->inputs[i] == NULL || *dx == NULL || (*dx)->poisoned ||
        kiln_shape_equal(&(*dx)->shape, &node->inputs[i]->shape))
        return;
    *dx = kiln_graph_poison((*dx)->graph, "gradient of %s: dx[%d] is %s, but the input is %s",
                            node->op->name, i, kiln_shape_text(&(*dx)->shape, got, sizeof(got)),
                            kiln_shape_text(&node->inputs[i]->shape, wanted, sizeof(wanted)));
}

static void gradient(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnOpGradient at = {
        .attrs = node->attrs, .inputs = node->inputs, .outputs = node->outputs, .dy = dy, .dx = dx
    };

    node->op->custom->gradient(&at);
    for (int i = 0; i < node->n_inputs; i++)
        check_gradient(node, i, &dx[i]);
}

/* What is wrong with the description; NULL: nothing. */
static const char *fault(const KilnCustomOp *op)
{
    if (op->size < sizeof(KilnCustomOp) || op->name == NULL)
        return "size and name must be set";
    if (op->infer == NULL || op->cpu == NULL)
        return "infer and cpu must be set";
    if (op->n_inputs < 1 || op->n_inputs > KILN_MAX_INPUTS || op->n_outputs < 0 ||
        op->n_outputs > KILN_MAX_OUTPUTS)
        return "it needs 1 to 12 inputs and at most 8 outputs";
    if (op->n_outputs == 0 && op->updates == 0)
        return "it has no outputs and updates nothing";
    if (op->updates != 0 && op->gradient != NULL)
        return "an operation that updates variables has no gradient";
    return NULL;
}

/* The graph's descriptor of the operation; NULL, with err set: none can be made. */
static const KilnOp *find_op(KilnGraph *graph, const KilnCustomOp *custom, KilnError *err)
{
    for (size_t i = 0; i < graph->n_custom_ops; i++)
        if (graph->custom_ops[i]->custom == custom)
            return graph->custom_ops[i];
    const char *why = fault(custom);
    if (why != NULL) {
        kiln_error_set(err, KILN_E_INTERNAL, "custom operation %s: %s",
                       custom->name != NULL ? custom->name : "", why);
        return NULL;
    }
    KilnOp *op = KILN_RESERVE(graph->custom_ops, graph->cap_custom_ops, graph->n_custom_ops + 1)
                     ? malloc(sizeof(*op))
                     : NULL;
    if (op == NULL) {
        kiln_error_nomem(err, sizeof(*op));
        return NULL;
    }
    *op = (KilnOp) {
        .name = custom->name,
        .n_inputs = custom->n_inputs,
        .n_outputs = custom->n_outputs,
        .attrs_size = custom->attrs_size,
        .updates = custom->updates,
        .infer = infer,
        .gradient = custom->gradient != NULL ? gradient : NULL,
        .custom = custom,
    };
    return graph->custom_ops[graph->n_custom_ops++] = op;
}

void kiln_custom_ops_free(KilnGraph *graph)
{
    for (size_t i = 0; i < graph->n_custom_ops; i++)
        free(graph->custom_ops[i]);
    free(graph->custom_ops);
}

/* ---- Recording -------------------------------------------------------------------- */

KilnTensor *kiln_custom_op(KilnGraph *graph, const KilnCustomOp *op, KilnTensor *const *inputs,
                           const void *attrs, KilnTensor **ret)
{
    KilnError err = { 0 };
    const KilnOp *made = find_op(graph, op, &err);
    KilnTensor *first = made != NULL ? kiln_graph_record(graph, made, inputs, op->n_inputs, attrs)
                                     : kiln_graph_poison(graph, "%s", err.text);

    for (int i = 0; ret != NULL && i < op->n_outputs; i++)
        ret[i] = first->poisoned ? first : first->node->outputs[i];
    return first;
}

/* ---- For backends ------------------------------------------------------------------- */

static KilnOpArg arg_of(const KilnArg *arg)
{
    if (arg->absent)
        return (KilnOpArg) { .data = NULL };
    return (KilnOpArg) { .dtype = arg->dtype, .shape = arg->shape, .data = arg->data };
}

KilnOpCall kiln_custom_call(const KilnCall *call)
{
    KilnOpCall ret = { .attrs = call->attrs,
                       .n_inputs = call->n_inputs,
                       .n_outputs = call->n_outputs,
                       .workspace = call->workspace,
                       .threads = call->backend->threads };

    for (int i = 0; i < call->n_inputs; i++)
        ret.inputs[i] = arg_of(&call->inputs[i]);
    for (int i = 0; i < call->n_outputs; i++)
        ret.outputs[i] = arg_of(&call->outputs[i]);
    return ret;
}

KilnStatus kiln_custom_prepare(KilnCall *call, KilnError *err)
{
    const KilnCustomOp *op = call->op->custom;
    const KilnOpCall shapes = kiln_custom_call(call);

    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    if (op->workspace != NULL)
        call->workspace_size = op->workspace(call->attrs, shapes.inputs, shapes.outputs);
    return KILN_OK;
}
