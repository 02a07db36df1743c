/* Small images of two classes, one training sample of which is bad: for the tests of what finds
 * bad batches. */
#include "kiln.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

enum { NONE, NAN_VALUE, INFINITE, LARGE, CRASH };

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    int64_t count, bad, what, torn;
} Opts;

static const KilnChoice whats[] = { { "none", NONE },         { "not_a_number", NAN_VALUE },
                                    { "infinite", INFINITE }, { "large", LARGE },
                                    { "crash", CRASH },       { NULL, 0 } };

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "32"),
    KILN_FIELD_I64(Opts, count, "256", 1, 1e9, "training images"),
    KILN_FIELD_I64(Opts, bad, "-1", -1, 1e9, "which one is bad; -1: none"),
    KILN_FIELD_ENUM(Opts, what, "none", whats, "what is wrong with it"),
    KILN_FIELD_I64(Opts, torn, "0", 0, 1e9, "images that are left out"),
    KILN_FIELD_END,
};

enum { PIXELS = 16 };

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "image",
          .content = KILN_IMAGE,
          .dtype = KILN_F32,
          .shape = { .rank = 3, .dim = { 4, 4, 1 } } },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 }
    };
    static const char *const names[] = { "dark", "bright" };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = 2,
        .class_names = names,
    };
    return KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *unused, KilnSample *sample, KilnError *err)
{
    const Opts *opts = ctx;
    const bool bad = index == opts->bad;
    const int32_t label = (int32_t)(index % 2);
    float *image = sample->data[0];
    KilnRng rng;

    (void)unused;
    (void)err;
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, (uint64_t)index);
    for (int i = 0; i < PIXELS; i++)
        image[i] = kiln_rng_normal(&rng) + (label == 1 ? 1.0f : -1.0f);
    if (bad && opts->what == NAN_VALUE)
        image[5] = NAN;
    if (bad && opts->what == INFINITE)
        image[5] = INFINITY;
    for (int i = 0; bad && opts->what == LARGE && i < PIXELS; i++)
        image[i] *= -1e4f;
    if (bad && opts->what == CRASH)
        raise(SIGSEGV);
    *(int32_t *)sample->data[1] = label;
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = split == KILN_TRAIN ? opts->count : 0,
        .ctx = (void *)opts,
        .get = get,
    };
    return KILN_OK;
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    const Opts *opts = kiln_opts(self);
    const KilnOmission torn = { opts->torn, "torn images", "image 7", "they have no edge" };

    if (opts->torn > 0)
        add(ctx, &torn);
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnDataModuleOps ops = {
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .loading = loading,
    .left_out = left_out,
};

static const KilnComponent poison = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "poison",
    .summary = "Images of two classes, one of them bad",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.datamodule = &ops,
};

static const KilnComponent *const list[] = { &poison, NULL };
KILN_PLUGIN_DEFINE(list)
