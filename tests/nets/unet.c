#include "tests/nets/unet.h"

static KilnStatus unet_stage_init(UNetStage *stage, const KilnScope *scope, int64_t in, int64_t out,
                                  KilnError *err)
{
    static const char *const convs[] = { "0", "3" }, *const norms[] = { "1", "4" };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 2 && status == KILN_OK; i++) {
        const KilnConv2dSpec spec = {
            .in = i == 0 ? in : out, .out = out, .kernel = 3, .conv = { .stride = 1, .padding = 1 }
        };

        status = kiln_nn_conv2d_init(&stage->conv[i], scope, convs[i], spec, err);
        if (status == KILN_OK)
            status = kiln_nn_batch_norm2d_init(&stage->bn[i], scope, norms[i], out, err);
    }
    return status;
}

KilnStatus unet_net_init(UNet *net, const KilnScope *scope, int64_t width, int64_t classes,
                         KilnError *err)
{
    const KilnConv2dSpec head = {
        .in = width, .out = classes, .kernel = 1, .conv = { .stride = 1 }, .bias = true
    };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < UNET_LEVELS && status == KILN_OK; i++) {
        const KilnScope own = kiln_scope(scope, "down.%d", i);

        status = unet_stage_init(&net->down[i], &own, i == 0 ? 3 : width << (i - 1), width << i,
                                 err);
    }
    for (int i = 0; i < UNET_LEVELS - 1 && status == KILN_OK; i++) {
        const KilnScope own = kiln_scope(scope, "up.%d", i);

        status = unet_stage_init(&net->up[i], &own, (width << i) + (width << (i + 1)), width << i,
                                 err);
    }
    return status == KILN_OK ? kiln_nn_conv2d_init(&net->head, scope, "head", head, err) : status;
}

static KilnTensor *unet_stage(const UNetStage *stage, KilnTensor *x, bool training)
{
    for (int i = 0; i < 2; i++)
        x = kiln_relu(
            kiln_nn_batch_norm2d(&stage->bn[i], kiln_nn_conv2d(&stage->conv[i], x), training));
    return x;
}

KilnTensor *unet_net_scores(const UNet *net, KilnTensor *x, bool training,
                            KilnDropoutState *dropout)
{
    KilnTensor *skips[UNET_LEVELS];

    for (int i = 0; i < UNET_LEVELS; i++) {
        if (i > 0)
            x = kiln_max_pool2d(x, (KilnPool) { .kernel = 2, .stride = 2 });
        skips[i] = x = unet_stage(&net->down[i], x, training);
    }
    x = kiln_nn_dropout(x, 0.2, dropout);
    for (int i = UNET_LEVELS - 1; i-- > 0;) {
        const KilnSize size = { kiln_tensor_dim(skips[i], 1), kiln_tensor_dim(skips[i], 2) };

        x = kiln_upsample_bilinear(x, size, false);
        x = kiln_concat((KilnTensor *[]) { skips[i], x }, 2, -1);
        x = unet_stage(&net->up[i], x, training);
    }
    return kiln_nn_conv2d(&net->head, x);
}
