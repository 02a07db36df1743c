/* The batch normalization layers for images, rows and sequences. */
#include "graph/graph.h"
#include "nn/layer.h"
#include "nn/params.h"

enum { STATISTICS = 2 };

KilnStatus kiln_nn_batch_norm2d_init(KilnBatchNorm2d *layer, const KilnScope *scope,
                                     const char *name, int64_t features, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    KilnShape shape = KILN_SHAPE(features);
    KilnInit one = { .kind = KILN_INIT_CONSTANT, .a = 1.0 };
    KilnInit zero = { .kind = KILN_INIT_CONSTANT, .a = 0.0 };
    KilnStatus status;

    *layer = (KilnBatchNorm2d) { 0 };
    kiln_layer_path(layer->path, &own);
    status = kiln_param_new(&own, "weight", shape, one, &layer->weight, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "bias", shape, zero, &layer->bias, err);
    if (status == KILN_OK)
        status = kiln_register_buffer(&own, "running_mean", KILN_F32, shape, 0.0,
                                      &layer->running_mean, err);
    if (status == KILN_OK)
        status = kiln_register_buffer(&own, "running_var", KILN_F32, shape, 1.0,
                                      &layer->running_var, err);
    if (status == KILN_OK)
        status = kiln_register_buffer(&own, "num_batches_tracked", KILN_I64, KILN_SCALAR, 0.0,
                                      &layer->num_batches_tracked, err);
    if (status == KILN_OK)
        kiln_nn_batch_norm2d_set(layer, 1e-5, 0.1);
    return status;
}

void kiln_nn_batch_norm2d_set(KilnBatchNorm2d *layer, double eps, double momentum)
{
    KilnParam *const statistics[STATISTICS] = { layer->running_mean, layer->running_var };

    for (int i = 0; i < STATISTICS; i++) {
        statistics[i]->eps = eps;
        statistics[i]->momentum = momentum;
    }
}

/* With a single value the unbiased variance divides by zero, which would make the running
 * statistics NaN. */
static bool too_few(const KilnTensor *x)
{
    const KilnShape *shape = kiln_tensor_shape(x);
    int64_t features = kiln_tensor_dim(x, -1);

    return !kiln_tensor_poisoned(x) && kiln_shape_count(shape) == features;
}

/* A layer with frozen statistics normalizes with them in training, too. */
static KilnTensor *record(const KilnBatchNorm2d *layer, KilnTensor *x, bool in_training)
{
    const bool training = in_training && !layer->running_mean->frozen;
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnBatchNorm norm = { .eps = layer->running_mean->eps,
                           .momentum = layer->running_mean->momentum,
                           .training = training };
    char text[KILN_SHAPE_TEXT];

    if (training && too_few(x))
        return kiln_graph_poison(graph,
                                 "batch normalization in training needs more than one value per "
                                 "channel, but the input has shape %s; use a larger batch, drop "
                                 "the last incomplete one, or use larger images",
                                 kiln_shape_text(kiln_tensor_shape(x), text, sizeof(text)));
    KilnTensor *y = kiln_batch_norm(x, kiln_param_tensor(layer->weight, graph),
                                    kiln_param_tensor(layer->bias, graph),
                                    kiln_param_tensor(layer->running_mean, graph),
                                    kiln_param_tensor(layer->running_var, graph), norm);
    if (training)
        kiln_increment(kiln_param_tensor(layer->num_batches_tracked, graph));
    return y;
}

KilnTensor *kiln_nn_batch_norm2d(const KilnBatchNorm2d *layer, KilnTensor *x, bool training)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = record(layer, x, training);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}

KilnStatus kiln_nn_batch_norm1d_init(KilnBatchNorm1d *layer, const KilnScope *scope,
                                     const char *name, int64_t features, KilnError *err)
{
    return kiln_nn_batch_norm2d_init(layer, scope, name, features, err);
}

KilnTensor *kiln_nn_batch_norm1d(const KilnBatchNorm1d *layer, KilnTensor *x, bool training)
{
    return kiln_nn_batch_norm2d(layer, x, training);
}
