#include "tests/support/components/built_model.h"

static const KilnTensorSpec logits = {
    .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes"
};

static const KilnModelUse use = { .option = "model", .needs = &logits, .n_needs = 1 };

KilnStatus setup_model(KilnInstance *model, const KilnScope *scope, unsigned content, KilnShape in,
                       int64_t classes, KilnError *err)
{
    const KilnFeature x = { .name = "x",
                            .content = content,
                            .dtype = content == KILN_TOKENS ? KILN_I32 : KILN_F32,
                            .shape = in };

    return kiln_model_setup(model, scope, &use, &x, 1, &classes, err);
}

KilnTensor *run_model(KilnInstance *model, KilnStep *step, KilnTensor *x)
{
    KilnModelValue scores;

    kiln_model_forward(model, step, &(KilnModelValue) { .tensor = x }, &scores);
    return scores.tensor;
}
