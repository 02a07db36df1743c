/* The images of a datamodule's splits: sizes, a part held out, datasets, images of a user. */
#include "kiln/images/image_data.h"

#include <stdlib.h>
#include <string.h>

enum { SETS = KILN_SPLIT_COUNT * KILN_MAX_SETS };

/* What a dataset points to. */
typedef struct View {
    KilnImageData *data;
    KilnSplit from; /* the split whose images they are */
    size_t set;
    const int32_t *order; /* NULL: as put */
    bool training;
} View;

struct KilnImageData {
    const KilnInstance *datamodule;
    KilnImageReader *reader;
    int64_t channels;
    KilnImageSamples sets[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    KilnCache *caches[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    View views[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    int32_t *order; /* of the first training set: for training first, then for validation */
    int64_t n_train, n_val;
    int64_t decoded[3], shape[3];
    uint64_t seed;
    const KilnPoll *poll;
    bool augments; /* training samples */
};

KilnStatus kiln_image_check_channels(int64_t channels, const char **ret_option, KilnError *err)
{
    *ret_option = "channels";
    return channels == 1 || channels == 3
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected 1 (grey) or 3 (colour), got %lld",
                                (long long)channels);
}

KilnStatus kiln_image_data_new(const KilnInstance *self, const KilnImageForm *form,
                               KilnImageData **ret, KilnError *err)
{
    KilnImageData *data = calloc(1, sizeof(*data));

    if (data == NULL)
        return kiln_error_nomem(err, sizeof(*data));
    data->datamodule = self;
    data->channels = form->channels;
    KilnStatus status = kiln_image_reader_new(form, &data->reader, err);
    if (status < 0)
        free(data);
    else
        *ret = data;
    return status;
}

void kiln_image_data_free(KilnImageData *data)
{
    if (data == NULL)
        return;
    kiln_image_reader_free(data->reader);
    free(data->order);
    free(data);
}

void kiln_image_data_put(KilnImageData *data, KilnSplit split, size_t set,
                         const KilnImageSamples *samples)
{
    data->sets[split][set] = *samples;
}

void kiln_image_data_clear(KilnImageData *data)
{
    memset(data->sets, 0, sizeof(data->sets));
    memset(data->caches, 0, sizeof(data->caches));
}

/* ---- Setup ----------------------------------------------------------------------------------- */

static size_t list_sources(const KilnImageData *data, KilnImageSource ret[SETS])
{
    size_t n = 0;

    for (int i = 0; i < SETS; i++) {
        const KilnImageSource *images = &data->sets[i / KILN_MAX_SETS][i % KILN_MAX_SETS].images;

        if (images->count > 0)
            ret[n++] = *images;
    }
    return n;
}

/* The size of samples in the checkpoint. */
static KilnStatus remember_shape(KilnImageData *data, const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *image = kiln_spec_feature(spec, "image");

    if (image == NULL || image->shape.rank != 3 || image->shape.dim[2] != data->channels)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "datamodule %s: the checkpoint was not trained on images of %lld "
                              "channels",
                              kiln_instance_name(data->datamodule), (long long)data->channels);
    memcpy(data->shape, image->shape.dim, sizeof(data->shape));
    return KILN_OK;
}

/* Without a validation set, hold out a part of the training set. */
static KilnStatus hold_out(KilnImageData *data, double val_fraction, KilnError *err)
{
    const int64_t n = data->sets[KILN_TRAIN][0].images.count;
    const bool holds = n > 0 && data->sets[KILN_VAL][0].images.count == 0 && val_fraction > 0.0;
    const int64_t part = (int64_t)((double)n * val_fraction + 0.5);
    const int64_t n_val = holds ? (part > 1 ? part : 1) : 0;

    if (n > INT32_MAX || (n > 0 && n_val >= n))
        return kiln_error_set(
            err, KILN_E_RANGE,
            "datamodule %s: %lld training images; too %s to split with val_fraction=%g",
            kiln_instance_name(data->datamodule), (long long)n, n_val >= n ? "few" : "many",
            val_fraction);
    int32_t *order = realloc(data->order, (size_t)(n + 1) * sizeof(*order));
    if (order == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*order));
    data->order = order;
    data->n_train = n - n_val;
    data->n_val = n_val;
    return kiln_hold_out(n, n_val, data->seed, order, err);
}

/* The sizes of all images as far as the form leaves them open, and what is held out. */
static KilnStatus look(KilnImageData *data, double val_fraction, KilnError *err)
{
    KilnImageSource sources[SETS];
    const size_t n = list_sources(data, sources);

    if (n == 0)
        return kiln_error_set(err, KILN_E_MISSING, "datamodule %s: there are no images",
                              kiln_instance_name(data->datamodule));
    KilnStatus status = kiln_image_reader_shape_of(data->reader, sources, n, data->poll,
                                                   data->decoded, data->shape, err);
    return status >= 0 ? hold_out(data, val_fraction, err) : status;
}

KilnStatus kiln_image_data_setup(KilnImageData *data, const KilnDataContext *context,
                                 double val_fraction, KilnError *err)
{
    data->seed = context->seed;
    data->poll = context->poll;
    data->augments = context->stage == KILN_STAGE_FIT;
    KilnStatus status = context->stage == KILN_STAGE_PREDICT
                            ? remember_shape(data, context->remembered, err)
                            : look(data, val_fraction, err);
    if (status < 0)
        return status;
    return context->fitted != NULL
               ? kiln_image_reader_open(data->reader, context->fitted, err)
               : kiln_image_reader_fit(data->reader, &data->sets[KILN_TRAIN][0].images, data->order,
                                       data->n_train, context->poll, err);
}

KilnStatus kiln_image_data_reload(KilnImageData *data, double val_fraction, KilnError *err)
{
    const int64_t before = data->n_train + data->n_val;
    int64_t shape[3];

    memcpy(shape, data->shape, sizeof(shape));
    KilnStatus status = look(data, val_fraction, err);
    if (status < 0)
        return status;
    const int64_t now = data->n_train + data->n_val;
    if (memcmp(shape, data->shape, sizeof(shape)) != 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "datamodule %s: the images have a different size than when the run "
                              "began; datamodule.size scales all to one size",
                              kiln_instance_name(data->datamodule));
    if (data->n_val > 0 && now != before)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "datamodule %s: there are %lld training images and there were %lld, "
                              "so a different part would be held out for validation; give "
                              "validation images of their own",
                              kiln_instance_name(data->datamodule), (long long)now,
                              (long long)before);
    return KILN_OK;
}

const int64_t *kiln_image_data_shape(const KilnImageData *data)
{
    return data->shape;
}

const int64_t *kiln_image_data_decoded(const KilnImageData *data)
{
    return data->decoded;
}

bool kiln_image_data_holds_out(const KilnImageData *data)
{
    return data->n_val > 0;
}

void kiln_image_data_set_cache(KilnImageData *data, KilnSplit split, size_t set, KilnCache *cache)
{
    data->caches[split][set] = cache;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static const KilnImageSamples *samples_of(const View *view)
{
    return &view->data->sets[view->from][view->set];
}

static int64_t number_of(const View *view, int64_t index)
{
    return view->order != NULL ? view->order[index] : index;
}

static const char *name_of(const KilnRawValue *image)
{
    return image->type == KILN_RAW_PATH ? image->text : image->name;
}

static KilnStatus read_image(const View *view, int64_t number, KilnRng *rng, float *to,
                             KilnError *err)
{
    const KilnImageSource *images = &samples_of(view)->images;
    const KilnImageData *data = view->data;
    KilnRawValue raw = { 0 };

    images->get(images->ctx, number, &raw);
    const KilnImageFile file = {
        .path = name_of(&raw),
        .raw = raw.type == KILN_RAW_PATH ? NULL : &raw,
        .shape = data->shape,
        .cache = data->caches[view->from][view->set],
        .decoded = data->decoded,
        .entry = number,
        .training = view->training,
    };
    return kiln_image_reader_read(data->reader, &file, rng, to, err);
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    enum { IMAGE, LABEL };
    const View *view = ctx;
    const KilnImageSamples *samples = samples_of(view);
    const int64_t number = number_of(view, index);
    KilnStatus status = KILN_OK;

    if (samples->read != NULL)
        return samples->read(samples->images.ctx,
                             &(KilnImageSample) { .number = number,
                                                  .shape = view->data->shape,
                                                  .training = view->training },
                             rng, sample, err);
    if (sample->data[IMAGE] != NULL)
        status = read_image(view, number, rng, sample->data[IMAGE], err);
    if (status >= 0 && samples->classes != NULL && sample->data[LABEL] != NULL)
        *(int32_t *)sample->data[LABEL] = samples->classes[number];
    else if (status >= 0 && samples->labels != NULL && sample->data[LABEL] != NULL)
        kiln_data_labels_write(samples->labels, view->from, number, sample->data[LABEL]);
    return status;
}

static const char *name(void *ctx, int64_t index)
{
    const View *view = ctx;
    const KilnImageSource *images = &samples_of(view)->images;
    KilnRawValue raw = { 0 };

    images->get(images->ctx, number_of(view, index), &raw);
    return name_of(&raw);
}

static int64_t label(void *ctx, int64_t index)
{
    const View *view = ctx;
    const KilnImageSamples *samples = samples_of(view);
    const int64_t number = number_of(view, index);

    return samples->classes != NULL ? samples->classes[number]
                                    : kiln_data_labels_class(samples->labels, view->from, number);
}

/* ---- For KilnDataModuleOps ------------------------------------------------------------------- */

KilnFeature kiln_image_data_feature(const KilnImageData *data)
{
    const int64_t *shape = data->shape;

    return (KilnFeature) { .name = "image",
                           .content = KILN_IMAGE,
                           .dtype = KILN_F32,
                           .shape = KILN_SHAPE(shape[0], shape[1], shape[2]) };
}

void kiln_image_data_dataset(KilnImageData *data, KilnSplit split, size_t set, KilnDataset *ret)
{
    const bool held_out = split == KILN_VAL && set == 0 && data->n_val > 0;
    View *view = &data->views[split][set];

    *view = (View) { .data = data,
                     .from = held_out ? KILN_TRAIN : split,
                     .set = set,
                     .training = split == KILN_TRAIN && data->augments };
    const KilnImageSamples *samples = samples_of(view);
    const bool has_class = samples->classes != NULL ||
                           (samples->labels != NULL && !samples->labels->source.several);
    *ret = (KilnDataset) { .count = samples->images.count,
                           .ctx = view,
                           .get = get,
                           .name = name,
                           .label = has_class ? label : NULL };
    if (view->from == KILN_TRAIN && set == 0) {
        view->order = held_out ? data->order + data->n_train : data->order;
        ret->count = held_out ? data->n_val : data->n_train;
    }
}

size_t kiln_image_raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

KilnStatus kiln_image_data_preprocess(KilnImageData *data, const KilnRawValue *values,
                                      KilnSample *sample, KilnError *err)
{
    const KilnImageFile file = {
        .path = name_of(&values[0]),
        .raw = &values[0],
        .shape = data->shape,
    };
    KilnRng unused;

    kiln_rng_init(&unused, data->seed, KILN_RNG_AUGMENT, 0, 0);
    return kiln_image_reader_read(data->reader, &file, &unused, sample->data[0], err);
}

KilnStatus kiln_image_data_save(const KilnImageData *data, const char *dir, KilnError *err)
{
    return kiln_image_reader_save(data->reader, dir, err);
}

int64_t kiln_image_data_memory(const KilnImageData *data)
{
    KilnImageSource sources[SETS];

    return kiln_image_reader_memory_of(data->reader, sources, list_sources(data, sources));
}

KilnStatus kiln_image_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    KilnImageState *state = kiln_state(self);

    (void)err;
    state->features[0] = kiln_image_data_feature(state->data);
    state->features[1] = kiln_data_labels_feature(&state->labels);
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = KILN_COUNT(state->features),
                            .n_classes = (int64_t)state->labels.classes.n,
                            .class_names = (const char *const *)state->labels.classes.names };
    return KILN_OK;
}

KilnStatus kiln_image_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                              KilnError *err)
{
    (void)err;
    kiln_image_data_dataset(((KilnImageState *)kiln_state(self))->data, split, set, ret);
    return KILN_OK;
}

KilnStatus kiln_image_preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                                 KilnError *err)
{
    return kiln_image_data_preprocess(((KilnImageState *)kiln_state(self))->data, values, sample,
                                      err);
}

int64_t kiln_image_memory(KilnInstance *self)
{
    return kiln_image_data_memory(((const KilnImageState *)kiln_state(self))->data);
}

KilnStatus kiln_image_save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const KilnImageState *state = kiln_state(self);
    KilnStatus status = kiln_image_data_save(state->data, dir, err);

    return status >= 0 && state->labels.classes.n > 0
               ? kiln_data_labels_save(&state->labels, dir, err)
               : status;
}

KilnStatus kiln_image_check(KilnInstance *self, const KilnPoll *poll,
                            void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                            KilnError *err)
{
    const KilnImageData *data = ((const KilnImageState *)kiln_state(self))->data;
    KilnStatus status = KILN_OK;

    for (int i = 0; i < KILN_SPLIT_COUNT * KILN_MAX_SETS && status >= 0; i++) {
        const KilnImageSource *images = &data->sets[i / KILN_MAX_SETS][i % KILN_MAX_SETS].images;
        const char *split = kiln_split_name((KilnSplit)(i / KILN_MAX_SETS));
        char what[32];

        if (i % KILN_MAX_SETS == 0)
            snprintf(what, sizeof(what), "%s", split);
        else
            snprintf(what, sizeof(what), "%s, set %d", split, i % KILN_MAX_SETS + 1);
        if (images->count > 0)
            status = kiln_image_source_check(images, what, poll, add, ctx, err);
    }
    return status;
}
