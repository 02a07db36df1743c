/* Checks a batch transform on a made-up batch: finite values within their room, and the same random
 * numbers giving the same batch. */
#include <math.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "kiln/loading.h"

enum { SAMPLES = 6, HEIGHT = 8, WIDTH = 10, CLASSES = 3, FENCE = 16 };
enum { PIXELS = SAMPLES * HEIGHT * WIDTH, SHARES = SAMPLES * CLASSES };
static const float fence = -77.0F;

/* An image and its label in each sample. */
typedef struct Batch {
    float image[PIXELS + FENCE];
    float shares[SHARES + FENCE]; /* where labels are soft */
    int32_t labels[SAMPLES];
} Batch;

static void fill(Batch *batch)
{
    memset(batch, 0, sizeof(*batch));
    for (int i = 0; i < PIXELS; i++)
        batch->image[i] = (float)(i * 11 % 97) / 97.0F;
    for (int i = 0; i < SAMPLES; i++) {
        batch->labels[i] = i % CLASSES;
        batch->shares[i * CLASSES + i % CLASSES] = 1.0F;
    }
    for (int i = 0; i < FENCE; i++)
        batch->image[PIXELS + i] = batch->shares[SHARES + i] = fence;
}

static void check_values(KilnCase *self, const Batch *batch, bool soft)
{
    for (int i = 0; i < FENCE; i++)
        if (batch->image[PIXELS + i] != fence || batch->shares[SHARES + i] != fence)
            return kiln_case_fail(self, "each feature has size * its shape elements",
                                  "it writes beyond the batch");
    for (int i = 0; i < PIXELS; i++)
        if (!isfinite(batch->image[i]))
            return kiln_case_fail(self, "", "element %d of the image is not finite", i);
    for (int i = 0; i < SAMPLES; i++) {
        const float *row = &batch->shares[i * CLASSES];

        if (soft && fabsf(row[0] + row[1] + row[2] - 1.0F) > 1e-4F)
            return kiln_case_fail(self, "shares of classes add up to 1",
                                  "the shares of sample %d add up to %g", i,
                                  (double)(row[0] + row[1] + row[2]));
        if (batch->labels[i] < 0 || batch->labels[i] >= CLASSES)
            return kiln_case_fail(self, "", "label %d of a batch with %d classes", batch->labels[i],
                                  CLASSES);
    }
}

static void check_batch(KilnCase *self, KilnInstance *transform, const KilnDataSpec *spec,
                        uint64_t seed)
{
    static Batch batches[2]; /* in a child process */
    const KilnBatchTransformOps *ops = self->component->ops.batch_transform;
    KilnError err = { 0 };

    for (int i = 0; i < 2; i++) {
        Batch *batch = &batches[i];
        void *data[] = { batch->image, ops->soft_labels ? (void *)batch->shares : batch->labels };
        const KilnBatchView view = { .spec = spec, .label = 1, .size = SAMPLES, .data = data };
        KilnRng rng;

        fill(batch);
        kiln_rng_init(&rng, seed, KILN_RNG_BATCH, 0, 0);
        if (KILN_CALLED(transform, "apply", ops->apply(transform, &view, &rng, &err), &err) < 0)
            return kiln_case_fail_with(self, &err);
        check_values(self, batch, ops->soft_labels);
    }
    if (memcmp(&batches[0], &batches[1], sizeof(batches[0])) != 0)
        kiln_case_fail(self, "draw random numbers from the given stream alone",
                       "the same random numbers give another batch the second time");
}

void kiln_contract_batches(KilnCase *self)
{
    enum { SEEDS = 20 };
    const KilnBatchTransformOps *ops = self->component->ops.batch_transform;
    const KilnFeature features[] = {
        { .name = "image",
          .content = KILN_IMAGE,
          .dtype = KILN_F32,
          .shape = { .rank = 3, .dim = { HEIGHT, WIDTH, 1 } } },
        { .name = "label",
          .content = KILN_LABEL,
          .dtype = ops->soft_labels ? KILN_F32 : KILN_I32,
          .shape = { .rank = ops->soft_labels ? 1 : 0, .dim = { CLASSES } } },
    };
    static const char *const names[CLASSES] = { "a", "b", "c" };
    const KilnDataSpec spec = { .features = features,
                                .n_features = KILN_COUNT(features),
                                .n_classes = CLASSES,
                                .class_names = names };
    KilnCaseInstance built;
    KilnError err = { 0 };

    if (!kiln_case_open(self, &built))
        return;
    if (ops->setup != NULL &&
        KILN_CALLED(built.instance, "setup", ops->setup(built.instance, &spec, &err), &err) < 0)
        kiln_case_skip(self, "", "it refuses images with labels: %s", err.text);
    else
        for (uint64_t seed = 0; seed < SEEDS && !kiln_case_failed(self); seed++)
            check_batch(self, built.instance, &spec, seed);
    if (err.text[0] == '\0')
        kiln_case_pass(self, "%d batches of images with labels, each twice", SEEDS);
    kiln_case_close(&built);
}
