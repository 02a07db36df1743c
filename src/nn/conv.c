/* The convolution layers. */
#include <math.h>

#include "nn/layer.h"

/* Height and width of a kernel. */
typedef struct Kernel {
    int64_t height, width;
} Kernel;

static Kernel kernel_of(int64_t both, const int64_t apart[2])
{
    if (apart[0] != 0 || apart[1] != 0)
        return (Kernel) { apart[0], apart[1] };
    return (Kernel) { both, both };
}

static int64_t groups_of(const KilnConv *conv)
{
    return conv->groups != 0 ? conv->groups : 1;
}

/* Rejects channels that do not divide into groups. */
static KilnStatus check_groups(const KilnScope *own, int64_t in, int64_t out, int64_t groups,
                               KilnError *err)
{
    if (groups >= 1 && in % groups == 0 && out % groups == 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "%s: %lld channels in and %lld out cannot be split into %lld groups of "
                          "equal size",
                          own->path, (long long)in, (long long)out, (long long)groups);
}

/* PyTorch's default: weight and bias uniform in ±1/sqrt(elements of weight[0]). */
static KilnStatus declare(const KilnScope *own, KilnShape shape, int64_t out, const KilnInit *other,
                          KilnParam **weight, KilnParam **bias, KilnError *err)
{
    const double fan = (double)kiln_shape_count(&shape) / (double)shape.dim[0];
    const KilnInit uniform = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt(fan) };
    KilnStatus status = kiln_param_new(own, "weight", shape, other != NULL ? *other : uniform,
                                       weight, err);

    if (status == KILN_OK && bias != NULL)
        status = kiln_param_new(own, "bias", KILN_SHAPE(out), uniform, bias, err);
    return status;
}

KilnStatus kiln_nn_conv2d_init(KilnConv2d *layer, const KilnScope *scope, const char *name,
                               KilnConv2dSpec spec, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);
    const Kernel kernel = kernel_of(spec.kernel, spec.kernel_hw);
    const int64_t groups = groups_of(&spec.conv);
    const double area = (double)kernel.height * (double)kernel.width;
    const KilnInit kaiming = { .kind = KILN_INIT_NORMAL,
                               .a = sqrt(2.0 / ((double)spec.out * area)) };

    *layer = (KilnConv2d) { .conv = spec.conv };
    kiln_layer_path(layer->path, &own);
    if (check_groups(&own, spec.in, spec.out, groups, err) < 0)
        return err->status;
    return declare(&own, KILN_SHAPE(spec.out, spec.in / groups, kernel.height, kernel.width),
                   spec.out, spec.kaiming_fan_out ? &kaiming : NULL, &layer->weight,
                   spec.bias ? &layer->bias : NULL, err);
}

KilnTensor *kiln_nn_conv2d(const KilnConv2d *layer, KilnTensor *x)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_conv2d(x, kiln_layer_param(layer->weight, x),
                                kiln_layer_param(layer->bias, x), layer->conv);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}

KilnStatus kiln_nn_conv1d_init(KilnConv1d *layer, const KilnScope *scope, const char *name,
                               KilnConv1dSpec spec, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);
    const int64_t groups = groups_of(&spec.conv);

    *layer = (KilnConv1d) { .conv = spec.conv };
    kiln_layer_path(layer->path, &own);
    if (check_groups(&own, spec.in, spec.out, groups, err) < 0)
        return err->status;
    return declare(&own, KILN_SHAPE(spec.out, spec.in / groups, spec.kernel), spec.out, NULL,
                   &layer->weight, spec.bias ? &layer->bias : NULL, err);
}

KilnTensor *kiln_nn_conv1d(const KilnConv1d *layer, KilnTensor *x)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_conv1d(x, kiln_layer_param(layer->weight, x),
                                kiln_layer_param(layer->bias, x), layer->conv);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}

KilnStatus kiln_nn_conv_transpose2d_init(KilnConvTranspose2d *layer, const KilnScope *scope,
                                         const char *name, KilnConvTranspose2dSpec spec,
                                         KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);
    const Kernel kernel = kernel_of(spec.kernel, spec.kernel_hw);
    const int64_t groups = groups_of(&spec.conv.conv);

    *layer = (KilnConvTranspose2d) { .conv = spec.conv };
    kiln_layer_path(layer->path, &own);
    if (check_groups(&own, spec.in, spec.out, groups, err) < 0)
        return err->status;
    return declare(&own, KILN_SHAPE(spec.in, spec.out / groups, kernel.height, kernel.width),
                   spec.out, NULL, &layer->weight, spec.bias ? &layer->bias : NULL, err);
}

KilnTensor *kiln_nn_conv_transpose2d(const KilnConvTranspose2d *layer, KilnTensor *x)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_conv_transpose2d(x, kiln_layer_param(layer->weight, x),
                                          kiln_layer_param(layer->bias, x), layer->conv);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}
