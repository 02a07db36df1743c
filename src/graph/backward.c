/* Records the gradients: walks the recorded nodes backwards and appends more nodes. */
#include "graph/op_check.h"
#include "graph/graph.h"
#include "graph/recompute.h"

/* Adds one more gradient to that of `tensor`. */
static void accumulate(KilnTensor *tensor, KilnTensor *gradient)
{
    if (tensor->grad == NULL)
        tensor->grad = gradient;
    else
        tensor->grad = kiln_add(tensor->grad, gradient);
}

/* Whether input i of the node needs a gradient. */
static bool needs_gradient(const KilnNode *node, int i)
{
    return node->inputs[i] != NULL && node->inputs[i]->wants_grad &&
           (node->op->constant >> i & 1) == 0;
}

/* A missing gradient is an error, never silently zero. */
static void fail_without_gradient(KilnGraph *graph, const KilnOp *op, int i)
{
    static const char hint[] = "kiln_detach it, if it is to count as a constant";

    if (op->gradient == NULL)
        kiln_graph_poison(graph, "backward: %s has no gradient, which its input %d wants; %s",
                          op->name, i + 1, hint);
    else
        kiln_graph_poison(graph,
                          "backward: %s has no gradient for its input %d, which wants one; "
                          "%s",
                          op->name, i + 1, hint);
}

/* Records the gradients of one node's inputs, if its outputs have any. `again` is the node that
 * they may read: the node itself or its second recording (recompute.h). */
static void node_backward(const KilnNode *node, KilnNode *again)
{
    KilnTensor *dy[KILN_MAX_OUTPUTS] = { NULL }, *dx[KILN_MAX_INPUTS] = { NULL };
    bool any = false;

    for (int i = 0; i < node->n_outputs; i++) {
        dy[i] = node->outputs[i]->wants_grad ? node->outputs[i]->grad : NULL;
        any |= dy[i] != NULL;
    }
    if (!any)
        return;
    if (node->op->gradient != NULL)
        node->op->gradient(again, dy, dx);
    for (int i = 0; i < node->n_inputs; i++) {
        if (needs_gradient(node, i) && dx[i] != NULL)
            accumulate(node->inputs[i], dx[i]);
        else if (needs_gradient(node, i))
            fail_without_gradient(node->inputs[i]->graph, node->op, i);
    }
}

/* Adds the gradient to what its destination holds from earlier steps. */
static void add_to_dest(KilnGraph *graph, KilnTensor *variable)
{
    const KilnDType dtype = variable->stored_bf16 ? KILN_BF16 : variable->dtype;

    /* An embedding's sparse gradient adds to its destination itself. */
    if (variable->grad == NULL || kiln_location_equal(&variable->grad->at, &variable->grad_dest))
        return;
    KilnTensor *held = kiln_graph_variable_at(graph, dtype, variable->shape, variable->grad_dest,
                                              false, (KilnLocation) { 0 });
    kiln_store(held, kiln_add(held, variable->grad));
}

/* Writes the variable's gradient to its destination. A variable that the loss does not depend on
 * gets zeros. */
static void set_gradient_dest(KilnGraph *graph, KilnTensor *variable)
{
    KilnTensor *gradient = variable->grad;

    if (kiln_location_address(&variable->grad_dest) == 0)
        return;
    if (graph->accumulates) {
        add_to_dest(graph, variable);
        return;
    }
    if (gradient == NULL)
        gradient = kiln_graph_full(graph, variable->shape, 0.0);
    else if (kiln_tensor_has_dest(gradient))
        /* Two variables share a gradient (a + b): the second gets a copy. */
        gradient = variable->grad = kiln_scale(gradient, 1.0);
    if (gradient->poisoned)
        return;
    gradient->dest = variable->grad_dest;
    gradient->stored_bf16 = variable->stored_bf16;
}

static bool check_loss(KilnGraph *graph, const KilnTensor *loss)
{
    char text[KILN_SHAPE_TEXT];

    if (loss->poisoned)
        return false;
    if (graph->backward)
        kiln_graph_poison(graph, "backward: was called before in this step; "
                                 "add the losses and call it once");
    else if (loss->shape.rank != 0)
        kiln_graph_poison(graph, "backward: the loss must be a scalar, got %s",
                          kiln_shape_text(&loss->shape, text, sizeof(text)));
    else if (!loss->wants_grad)
        kiln_graph_poison(graph,
                          "backward: the loss does not depend on any variable with a gradient");
    else
        return true;
    return false;
}

void kiln_graph_backward(KilnGraph *graph, KilnTensor *loss)
{
    const char *layer = graph->layer;
    size_t n_tensors = graph->n_tensors;
    KilnRecompute recompute;
    KilnError err;

    if (!check_loss(graph, loss))
        return;
    graph->backward = true;
    graph->n_forward = graph->n_nodes;
    graph->block_now = 0;
    if (kiln_recompute_init(&recompute, graph, &err) < 0) {
        kiln_graph_poison(graph, "backward: %s", err.text);
        return;
    }
    graph->layer = loss->node != NULL ? loss->node->layer : layer;
    loss->grad = kiln_graph_full(graph, loss->shape, 1.0);
    for (int i = loss->node != NULL ? loss->node->index : -1; i >= 0; i--) {
        graph->layer = graph->nodes[i]->layer;
        KilnNode *again = kiln_recompute_node(&recompute, i);
        node_backward(graph->nodes[i], again);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        KilnTensor *tensor = graph->tensors[i];

        graph->layer = layer;
        if (tensor->node == NULL && tensor->wants_grad)
            set_gradient_dest(graph, tensor);
    }
    graph->layer = layer;
}
