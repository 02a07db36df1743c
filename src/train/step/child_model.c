/* Calls on a module's child model. Errors of the model get its config path as a prefix, and the
 * shape of its output is checked. */
#include <inttypes.h>

#include "base/call.h"
#include "graph/graph.h"
#include "kiln/module.h"
#include "registry/instance.h"

KilnStatus kiln_model_setup(KilnInstance *model, const KilnScope *scope, const KilnShape *in,
                            int64_t out, KilnError *err)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;
    KilnStatus status = KILN_CALLED(model, "setup", ops->setup(model, scope, in, out, err), err);

    model->outputs = out;
    if (status < 0)
        (void)kiln_error_prefix(err, "%s (model/%s): ", kiln_instance_path(model),
                                kiln_instance_name(model));
    return status;
}

/* The layer that a tensor comes from; "" outside of layers. */
static const char *layer_of(const KilnTensor *tensor)
{
    return tensor->node != NULL && tensor->node->layer != NULL ? tensor->node->layer : "";
}

static KilnTensor *refuse(const KilnInstance *model, const KilnTensor *x, const KilnTensor *y)
{
    const KilnShape wanted = KILN_SHAPE(x->shape.dim[0], model->outputs);
    const char *layer = layer_of(y);
    char got[KILN_SHAPE_TEXT], want[KILN_SHAPE_TEXT];

    return kiln_graph_poison(
        x->graph,
        "%s (model/%s) returns %s %s%s%s%s, but f32 %s is needed: for each "
        "sample the %" PRId64 " outputs (classes) that its setup was given",
        kiln_instance_path(model), kiln_instance_name(model), kiln_dtype_name(y->dtype),
        kiln_shape_text(&y->shape, got, sizeof(got)), layer[0] != '\0' ? " (layer \"" : "", layer,
        layer[0] != '\0' ? "\")" : "", kiln_shape_text(&wanted, want, sizeof(want)),
        model->outputs);
}

/* There may be more axes between samples and outputs, such as a sequence's. */
KilnTensor *kiln_model_forward(KilnInstance *model, KilnStep *step, KilnTensor *x)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;

    kiln_call_enter(model, "forward");
    KilnTensor *y = ops->forward(model, step, x);
    kiln_call_leave();
    if (x->poisoned || y->poisoned ||
        (y->shape.rank >= 2 && y->shape.dim[0] == x->shape.dim[0] &&
         y->shape.dim[y->shape.rank - 1] == model->outputs && y->dtype == x->graph->float_type))
        return y;
    return refuse(model, x, y);
}
