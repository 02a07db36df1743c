/* What samplers and batch transforms share. */
#include "kiln/loading.h"

/* Asked so often: after some milliseconds of shuffling, or of labels that are drawn. */
enum { POLL_EVERY = 1 << 16, LABELS_EVERY = 1 << 10 };

static void shuffle(const KilnPoll *poll, KilnRng *rng, uint32_t *numbers, int64_t n)
{
    for (int64_t i = n; i > 1; i--) {
        if (i % POLL_EVERY == 0 && kiln_poll(poll, "shuffling samples", n - i, n))
            return;
        uint32_t j = kiln_rng_below(rng, (uint32_t)i), held = numbers[i - 1];

        numbers[i - 1] = numbers[j];
        numbers[j] = held;
    }
}

void kiln_rng_shuffle(KilnRng *rng, uint32_t *numbers, int64_t n)
{
    shuffle(NULL, rng, numbers, n);
}

void kiln_sampling_shuffle(const KilnSampling *sampling, KilnRng *rng, uint32_t *numbers, int64_t n)
{
    shuffle(sampling->poll, rng, numbers, n);
}

KilnStatus kiln_sampling_labels(const KilnSampling *sampling, const char *who, int32_t *ret,
                                KilnError *err)
{
    const KilnDataset *dataset = sampling->dataset;

    if (dataset->label == NULL || sampling->n_classes < 1)
        return kiln_error_set(err, KILN_E_MISSING,
                              "%s needs the class of each sample, and the datamodule does not tell "
                              "them; use sampler shuffle",
                              who);
    for (int64_t i = 0; i < dataset->count; i++) {
        if (i % LABELS_EVERY == 0 &&
            kiln_poll_check(sampling->poll, "reading labels", i, dataset->count, err) < 0)
            return KILN_E_INTERRUPTED;
        int64_t label = dataset->label(dataset->ctx, i);

        if (label < 0 || label >= sampling->n_classes)
            return kiln_error_set(err, KILN_E_MISSING,
                                  "%s needs the class of each sample, and sample %lld has none of "
                                  "the %lld classes",
                                  who, (long long)i, (long long)sampling->n_classes);
        ret[i] = (int32_t)label;
    }
    return KILN_OK;
}

void kiln_blend(float *a, float *b, int64_t n, float share)
{
    for (int64_t i = 0; i < n; i++) {
        float x = a[i], y = b[i];

        a[i] = share * x + (1.0f - share) * y;
        b[i] = share * y + (1.0f - share) * x;
    }
}
