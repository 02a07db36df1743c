/* Datamodules of images with boxes: samples of the sets that they have read, and of a user. */
#include "kiln/images/box_data.h"

#include <stdlib.h>

#include "kiln/metric.h"

enum { IMAGE, BOXES, FRAME };

const KilnTensorSpec kiln_box_specs[KILN_BOX_FEATURES] = {
    [IMAGE] = { .name = "image",
                .content = KILN_IMAGE,
                .dtype = KILN_F32,
                .axes = "height width channels" },
    [BOXES] = { .name = "boxes",
                .content = KILN_LABEL,
                .dtype = KILN_F32,
                .axes = "boxes columns" },
    [FRAME] = { .name = "frame", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
};

KilnStatus kiln_box_init(KilnInstance *self, const KilnBoxForm *form, KilnError *err)
{
    KilnBoxState *state = kiln_state(self);

    state->form = *form;
    return kiln_box_check_transforms(&form->image, err);
}

void kiln_box_release(KilnInstance *self)
{
    KilnBoxState *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_box_set_release(&state->sets[split]);
    free(state->class_names);
}

KilnStatus kiln_box_setup(KilnInstance *self, const KilnDataContext *context, double val_fraction,
                          KilnError *err)
{
    KilnBoxState *state = kiln_state(self);
    KilnBoxSet *train = &state->sets[KILN_TRAIN], *val = &state->sets[KILN_VAL];
    const bool predicts = context->stage == KILN_STAGE_PREDICT;

    if (val->count == 0 && train->count > 0 && val_fraction > 0.0) {
        const KilnStatus status = kiln_box_set_hold_out(train, val_fraction, context->seed, val,
                                                        err);

        if (status < 0)
            return kiln_error_prefix(err,
                                     "datamodule %s: val_fraction: ", kiln_instance_name(self));
    }
    state->seed = context->seed;
    state->augments = context->stage == KILN_STAGE_FIT;
    state->n_classes = predicts ? context->remembered->n_classes : train->n_classes;
    state->most = 1;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        if (state->sets[split].most > state->most)
            state->most = state->sets[split].most;
    state->class_names = kiln_class_names_copy(predicts ? context->remembered->class_names
                                                        : (const char *const *)train->classes,
                                               state->n_classes);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)state->n_classes);
}

KilnStatus kiln_box_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    KilnBoxState *state = kiln_state(self);
    const KilnImageForm *form = &state->form.image;
    const KilnShape shapes[KILN_BOX_FEATURES] = {
        [IMAGE] = KILN_SHAPE(form->height, form->width, form->channels),
        [BOXES] = KILN_SHAPE(state->most, KILN_BOX_COLUMNS),
        [FRAME] = KILN_SHAPE(KILN_FRAME_COLUMNS),
    };

    (void)err;
    for (int i = 0; i < KILN_BOX_FEATURES; i++)
        state->features[i] = (KilnFeature) { .name = kiln_box_specs[i].name,
                                             .content = kiln_box_specs[i].content,
                                             .dtype = kiln_box_specs[i].dtype,
                                             .shape = shapes[i] };
    *ret = (KilnDataSpec) {
        .features = state->features,
        .n_features = KILN_BOX_FEATURES,
        .n_classes = state->n_classes,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const KilnBoxDataset *dataset = ctx;
    const KilnBoxSet *set = dataset->set;
    const int64_t first = set->starts[index];
    const KilnRawValue value = { .name = set->paths[index],
                                 .type = KILN_RAW_PATH,
                                 .text = set->paths[index] };
    const KilnBoxTruth truth = { .rows = set->boxes + first * KILN_TRUTH_COLUMNS,
                                 .n = set->starts[index + 1] - first,
                                 .relative = set->relative };
    const KilnBoxSample to = { .image = sample->data[IMAGE],
                               .boxes = sample->data[BOXES],
                               .frame = sample->data[FRAME],
                               .most = dataset->state->most };

    return kiln_box_image_read(&dataset->state->form, &value, &truth, dataset->training, rng, &to,
                               err);
}

static const char *name(void *ctx, int64_t index)
{
    return ((const KilnBoxDataset *)ctx)->set->paths[index];
}

KilnStatus kiln_box_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                            KilnError *err)
{
    KilnBoxState *state = kiln_state(self);
    KilnBoxDataset *dataset = &state->datasets[split];

    (void)set;
    (void)err;
    *dataset = (KilnBoxDataset) { .state = state,
                                  .set = &state->sets[split],
                                  .training = split == KILN_TRAIN && state->augments };
    *ret = (KilnDataset) { .count = dataset->set->count, .ctx = dataset, .get = get, .name = name };
    return KILN_OK;
}

size_t kiln_box_raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

KilnStatus kiln_box_preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                               KilnError *err)
{
    const KilnBoxState *state = kiln_state(self);
    const KilnBoxTruth none = { 0 };
    const KilnBoxSample to = { .image = sample->data[IMAGE], .frame = sample->data[FRAME] };
    KilnRng unused;

    kiln_rng_init(&unused, state->seed, KILN_RNG_AUGMENT, 0, 0);
    return kiln_box_image_read(&state->form, &values[0], &none, false, &unused, &to, err);
}

void kiln_box_left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                       void *ctx)
{
    KilnBoxState *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const KilnBoxSet *set = &state->sets[split];
        const char *wrong = "something is wrong there";
        const KilnOmission omissions[] = {
            { .what = "images",
              .count = set->skipped_images,
              .example = set->example,
              .reason = wrong },
            { .what = "annotations",
              .count = set->skipped_boxes,
              .example = set->example,
              .reason = wrong },
            { .what = "files",
              .count = set->other_files,
              .example = set->other_example,
              .reason = "images are .png, .jpg, .jpeg and .webp files" },
        };

        for (size_t i = 0; i < KILN_COUNT(omissions); i++)
            if (omissions[i].count > 0)
                add(ctx, &omissions[i]);
    }
}
