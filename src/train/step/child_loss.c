/* Calls on a module's child loss. Errors of the loss get its config path as a prefix. */
#include <stdlib.h>

#include "base/call.h"
#include "graph/graph.h"
#include "kiln/loss.h"
#include "registry/instance.h"

KilnStatus kiln_loss_setup(KilnInstance *loss, const KilnDataSpec *data, KilnError *err)
{
    const KilnLossOps *ops = kiln_instance_component(loss)->ops.loss;
    KilnStatus status = ops->setup != NULL
                            ? KILN_CALLED(loss, "setup", ops->setup(loss, data, err), err)
                            : KILN_OK;

    if (status < 0)
        (void)kiln_error_prefix(err, "%s (loss/%s): ", kiln_instance_path(loss),
                                kiln_instance_name(loss));
    return status;
}

KilnTensor *kiln_loss(KilnInstance *loss, KilnStep *step, KilnTensor *output, KilnTensor *target)
{
    const KilnLossOps *ops = kiln_instance_component(loss)->ops.loss;
    char text[KILN_SHAPE_TEXT];

    kiln_call_enter(loss, "loss");
    KilnTensor *value = ops->loss(loss, step, output, target);
    kiln_call_leave();
    if (value == NULL)
        return kiln_graph_poison(output->graph, "%s (loss/%s) returns NULL; expected an f32 scalar",
                                 kiln_instance_path(loss), kiln_instance_name(loss));
    if (value->poisoned || (value->shape.rank == 0 && value->dtype == value->graph->float_type))
        return value;
    return kiln_graph_poison(value->graph, "%s (loss/%s) returns %s %s; expected an f32 scalar",
                             kiln_instance_path(loss), kiln_instance_name(loss),
                             kiln_dtype_name(value->dtype),
                             kiln_shape_text(&value->shape, text, sizeof(text)));
}

float *kiln_balanced_weights(KilnStep *step, int64_t n_classes)
{
    int64_t samples = 0;
    const int64_t *counts = kiln_step_class_counts(step, &samples);
    float *weights = counts != NULL ? calloc((size_t)n_classes, sizeof(*weights)) : NULL;

    for (int64_t c = 0; c < n_classes && weights != NULL; c++)
        if (counts[c] > 0)
            weights[c] = (float)((double)samples / ((double)n_classes * (double)counts[c]));
    return weights;
}

bool kiln_target_is_soft(const KilnTensor *target)
{
    return target->dtype != KILN_I32;
}

KilnStatus kiln_class_weights(const double *class_weights, size_t count, const KilnDataSpec *data,
                              float **ret, KilnError *err)
{
    *ret = NULL;
    if (count == 0)
        return KILN_OK;
    if ((int64_t)count != data->n_classes)
        return kiln_error_set(err, KILN_E_RANGE,
                              "class_weights has %zu numbers, but the data has %lld classes; give "
                              "one for each",
                              count, (long long)data->n_classes);
    float *weights = malloc(count * sizeof(*weights));
    if (weights == NULL)
        return kiln_error_nomem(err, count * sizeof(*weights));
    for (size_t i = 0; i < count; i++)
        weights[i] = (float)class_weights[i];
    *ret = weights;
    return KILN_OK;
}
