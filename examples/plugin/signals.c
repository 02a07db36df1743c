/* A datamodule in a plugin that reads files of a format of its own: signals of one length with a
 * class each. ROOT/train.sig, val.sig and test.sig begin with "SIG1" and three numbers, u32 in
 * little-endian order: samples, values of a sample, classes. A class (u8) and the values (i16) of
 * each sample follow. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 16 };

typedef struct Opts {
    KILN_LOADING_OPTIONS; /* batch_size, sampler, ... */
    char *root;
    double scale;
    int64_t shift;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "32"),
    KILN_FIELD_PATH(Opts, root, NULL, "folder with train.sig, val.sig and test.sig"),
    KILN_FIELD_F64(Opts, scale, "1e-4", 1e-9, 1e9, "factor on the values"),
    KILN_FIELD_I64(Opts, shift, "0", 0, 65535, "training signals are rotated by up to this much"),
    KILN_FIELD_END,
};

/* One file. */
typedef struct Split {
    const Opts *opts;
    unsigned char *bytes; /* the whole file; NULL: it was not read */
    int64_t count, length, classes;
} Split;

typedef struct State {
    Split splits[KILN_SPLIT_COUNT];
    KilnFeature features[2];
    int64_t classes;
    const char **class_names;
} State;

/* ---- Files ------------------------------------------------------------------------------ */

static int64_t number_at(const unsigned char *p)
{
    return (int64_t)p[0] | (int64_t)p[1] << 8 | (int64_t)p[2] << 16 | (int64_t)p[3] << 24;
}

static KilnStatus read_bytes(FILE *file, const char *path, unsigned char **ret, int64_t *ret_size,
                             KilnError *err)
{
    if (fseek(file, 0, SEEK_END) != 0 || (*ret_size = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) != 0)
        return kiln_error_errno(err, path);
    *ret = malloc((size_t)*ret_size + 1);
    if (*ret == NULL)
        return kiln_error_nomem(err, (size_t)*ret_size);
    if (fread(*ret, 1, (size_t)*ret_size, file) != (size_t)*ret_size)
        return kiln_error_set(err, KILN_E_IO, "%s: could not be read to its end", path);
    return KILN_OK;
}

static KilnStatus read_split(Split *split, const char *path, KilnError *err)
{
    FILE *file = fopen(path, "rb");
    int64_t size = 0;

    if (file == NULL)
        return kiln_error_errno(err, path);
    const KilnStatus status = read_bytes(file, path, &split->bytes, &size, err);
    fclose(file);
    if (status < 0)
        return status;
    if (size < HEADER || memcmp(split->bytes, "SIG1", 4) != 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: does not begin with SIG1", path);
    split->count = number_at(split->bytes + 4);
    split->length = number_at(split->bytes + 8);
    split->classes = number_at(split->bytes + 12);
    const int64_t record = 1 + 2 * split->length, rest = size - HEADER;
    if (split->length < 1 || split->classes < 1 || rest % record != 0 ||
        rest / record != split->count)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: its %lld bytes are not the %lld samples of %lld values that its "
                              "header says",
                              path, (long long)size, (long long)split->count,
                              (long long)split->length);
    return KILN_OK;
}

/* ---- The datamodule ---------------------------------------------------------------------- */

static KilnStatus read_splits(State *state, const Opts *opts, KilnError *err)
{
    const Split *first = &state->splits[KILN_TRAIN];
    char path[4096];

    for (int i = 0; i < KILN_SPLIT_COUNT; i++) {
        Split *split = &state->splits[i];

        split->opts = opts;
        snprintf(path, sizeof(path), "%s/%s.sig", opts->root, kiln_split_name((KilnSplit)i));
        /* A message that begins with an option is shown with the place that set it. */
        if (read_split(split, path, err) < 0)
            return kiln_error_prefix(err, "root: ");
        if (split->length != first->length || split->classes != first->classes)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "root: %s: signals of %lld values in %lld classes, but train.sig "
                                  "has %lld in %lld",
                                  path, (long long)split->length, (long long)split->classes,
                                  (long long)first->length, (long long)first->classes);
    }
    return KILN_OK;
}

/* A checkpoint that predicts a user's signals has no files: what they said comes from it. */
static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnDataSpec *known = context->remembered;
    const char *const *names = known != NULL ? known->class_names : NULL;
    int64_t length;

    if (known == NULL && read_splits(state, kiln_opts(self), err) < 0)
        return err->status;
    length = known != NULL ? known->features[0].shape.dim[0] : state->splits[KILN_TRAIN].length;
    state->classes = known != NULL ? known->n_classes : state->splits[KILN_TRAIN].classes;
    state->features[0] = (KilnFeature) {
        .name = "signal", .content = KILN_VECTOR, .dtype = KILN_F32, .shape = KILN_SHAPE(length)
    };
    state->features[1] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    state->class_names = kiln_class_names_copy(names, state->classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->classes);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)err;
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = 2,
                            .n_classes = state->classes,
                            .class_names = state->class_names };
    return KILN_OK;
}

/* Called in several threads at once, which only read. */
static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Split *split = ctx;
    const unsigned char *record = split->bytes + HEADER + index * (1 + 2 * split->length);
    float *x = sample->data[0];

    (void)rng;
    (void)err;
    for (int64_t i = 0; i < split->length; i++) {
        const int value = record[1 + 2 * i] | record[2 + 2 * i] << 8;

        x[i] = (float)(split->opts->scale * (value < 32768 ? value : value - 65536));
    }
    *(int32_t *)sample->data[1] = record[0];
    return KILN_OK;
}

/* Training signals are augmented; the numbers of `rng` are the sample's own, in each epoch others.
 */
static KilnStatus get_rotated(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                              KilnError *err)
{
    const Split *split = ctx;
    const int64_t n = split->length, by = kiln_rng_below(rng, (uint32_t)split->opts->shift + 1) % n;
    float *x = sample->data[0], *copy = malloc((size_t)n * sizeof(*copy));

    if (copy == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*copy));
    const KilnStatus status = get(ctx, index, rng, sample, err);
    memcpy(copy, x, (size_t)n * sizeof(*copy));
    for (int64_t i = 0; i < n; i++)
        x[i] = copy[(i + by) % n];
    free(copy);
    return status;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = state->splits[split].count,
                           .ctx = &state->splits[split],
                           .get = split == KILN_TRAIN ? get_rotated : get };
    return KILN_OK;
}

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    static const KilnRawField signal = { .name = "signal",
                                         .types = KILN_RAW_ARRAY,
                                         .help = "the values, as in the files" };

    (void)self;
    *ret = &signal;
    return 1;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnShape *shape = &state->features[0].shape;
    const Opts *opts = kiln_opts(self);
    float *x = sample->data[0];

    if (!kiln_shape_equal(&values[0].shape, shape))
        return kiln_error_set(err, KILN_E_SHAPE, "signal: expected %lld numbers",
                              (long long)shape->dim[0]);
    const KilnStatus status = kiln_raw_convert(&values[0], KILN_F32, x, err);
    for (int64_t i = 0; i < shape->dim[0] && status >= 0; i++)
        x[i] = (float)(opts->scale * (double)x[i]);
    return status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int i = 0; i < KILN_SPLIT_COUNT; i++)
        free(state->splits[i].bytes);
    free(state->class_names);
}

static const KilnTensorSpec features[] = {
    { .name = "signal", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "time" },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static const KilnDataModuleOps ops = {
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .loading = loading,
};

const KilnComponent kiln_datamodule_signals = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "signals",
    .summary = "Signals with a class each, from .sig files",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_signals, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
