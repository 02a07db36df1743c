#include "tests/support/components/built_model.h"

#include "registry/instance.h"

static const KilnTensorSpec logits[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
    { .name = "logits", .content = KILN_MAP, .dtype = KILN_F32, .axes = "height width classes" },
};

static const KilnModelUse uses[] = {
    { .option = "model", .needs = &logits[0], .n_needs = 1 },
    { .option = "model", .needs = &logits[1], .n_needs = 1 },
};

KilnStatus setup_model(KilnInstance *model, const KilnScope *scope, unsigned content, KilnShape in,
                       int64_t classes, KilnError *err)
{
    const KilnSignature *signature = kiln_instance_component(model)->ops.model->signature;
    const bool map = signature->outputs[0].content == KILN_MAP;
    const KilnFeature x = { .name = "x",
                            .content = content,
                            .dtype = content == KILN_TOKENS ? KILN_I32 : KILN_F32,
                            .shape = in };

    return kiln_model_setup(model, scope, &uses[map], &x, 1, &classes, err);
}

KilnTensor *run_model(KilnInstance *model, KilnStep *step, KilnTensor *x)
{
    KilnModelValue scores;

    kiln_model_forward(model, step, &(KilnModelValue) { .tensor = x }, &scores);
    const int64_t classes = kiln_tensor_dim(scores.tensor, -1);
    const bool map = kiln_tensor_shape(scores.tensor)->rank > 2;
    return map ? kiln_reshape(scores.tensor, KILN_SHAPE(-1, classes)) : scores.tensor;
}
