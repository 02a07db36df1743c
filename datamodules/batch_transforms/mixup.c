/* Mixup: each sample of a batch is blended with another of it, its label too (Zhang et al.,
 * "mixup: Beyond Empirical Risk Minimization", 2018). Sample i goes with sample n - 1 - i, and
 * one share serves the whole batch, as timm's Mixup has it; batches are in random order. */
#include "kiln.h"

typedef struct Opts {
    double alpha, p;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, alpha, "0.2", 0.001, 1e6,
                   "the share is drawn from Beta(alpha, alpha); small values blend little"),
    KILN_FIELD_F64(Opts, p, "1.0", 0.0, 1.0, "probability of transforming a batch"),
    KILN_FIELD_END,
};

static KilnStatus apply(KilnInstance *self, const KilnBatchView *batch, KilnRng *rng,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const bool chosen = (double)kiln_rng_uniform(rng) < opts->p;
    const float share = (float)kiln_rng_beta(rng, opts->alpha, opts->alpha);

    (void)err;
    for (size_t f = 0; chosen && f < batch->spec->n_features; f++) {
        const int64_t width = kiln_shape_count(&batch->spec->features[f].shape);
        float *rows = batch->data[f];

        if (batch->spec->features[f].dtype != KILN_F32 || rows == NULL)
            continue;
        for (int64_t i = 0; i < batch->size / 2; i++)
            kiln_blend(rows + i * width, rows + (batch->size - 1 - i) * width, width, share);
    }
    return KILN_OK;
}

static const KilnBatchTransformOps ops = { .apply = apply, .soft_labels = true };

const KilnComponent kiln_batch_transform_mixup = {
    .kind = KILN_KIND_BATCH_TRANSFORM,
    .name = "mixup",
    .summary = "Blend each sample and its label with another of the batch",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.batch_transform = &ops,
};
