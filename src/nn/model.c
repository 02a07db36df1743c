/* Calls on a child model, for modules: the model's own operations, with its
 * place in the config in front of what it refuses. */
#include "base/call.h"
#include "kiln/module.h"

KilnStatus kiln_model_setup(KilnInstance *model, const KilnScope *scope, const KilnShape *in,
                            int64_t out, KilnError *err)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;
    KilnStatus status = KILN_CALLED(model, "setup", ops->setup(model, scope, in, out, err), err);

    if (status < 0)
        (void)kiln_error_prefix(err, "%s (model/%s): ", kiln_instance_path(model),
                                kiln_instance_name(model));
    return status;
}

KilnTensor *kiln_model_forward(KilnInstance *model, KilnStep *step, KilnTensor *x)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;

    kiln_call_enter(model, "forward");
    KilnTensor *y = ops->forward(model, step, x);
    kiln_call_leave();
    return y;
}
