#include "tests/support/data/numbers_data.h"

KilnStatus numbers_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Numbers *numbers = ctx;
    float *x = sample->data[0];
    int32_t *label = sample->data[1];

    if (index == numbers->fails)
        return kiln_error_set(err, KILN_E_FORMAT, "sample %d is broken", (int)index);
    if (numbers->skip > 0 && index % numbers->skip == 0)
        return kiln_error_set(err, KILN_E_SKIP, "is no number");
    x[0] = (float)index;
    x[1] = kiln_rng_uniform(rng);
    x[2] = kiln_rng_uniform(rng);
    *label = (int32_t)(index % 5);
    return KILN_OK;
}

static int64_t numbers_class(void *ctx, int64_t index)
{
    (void)ctx;
    return index % 5;
}

static const char *numbers_name(void *ctx, int64_t index)
{
    static const char *const names[] = { "zero", "one", "two", "three" };

    (void)ctx;
    return names[index % 4];
}

static const KilnDataSpec numbers_spec = {
    .n_features = 2,
    .features =
        (const KilnFeature[]) {
            { .name = "x",
              .content = KILN_VECTOR,
              .dtype = KILN_F32,
              .shape = { .rank = 1, .dim = { 3 } } },
            { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        },
    .n_classes = 5,
};

KilnLoaderSpec spec_of(Numbers *numbers, int workers, KilnInstance *sampler)
{
    return (KilnLoaderSpec) {
        .data = &numbers_spec,
        .dataset = { .count = COUNT,
                     .ctx = numbers,
                     .get = numbers_get,
                     .name = numbers_name,
                     .label = numbers_class },
        .batch_size = BATCH,
        .limit = -1,
        .seed = 11,
        .sampler = sampler,
        .workers = workers,
    };
}

KilnLoader *loader_of(const KilnLoaderSpec *spec)
{
    KilnLoader *loader = NULL;
    KilnError err = { 0 };

    if (kiln_loader_new(spec, &loader, &err) < 0)
        fail_msg("%s", err.text);
    return loader;
}

Built build_sampler(const char *name, const char *options)
{
    KilnError err = { 0 };
    Built built;

    if (build_yaml(&built, KILN_KIND_SAMPLER, name, options, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    return built;
}
