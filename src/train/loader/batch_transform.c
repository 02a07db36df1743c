/* Batch transforms: the features of transformed batches, and applying the transforms. */
#include "train/loader/batch_transform.h"

#include "base/call.h"

#include <string.h>

static const KilnBatchTransformOps *ops_of(const KilnInstance *transform)
{
    return kiln_instance_component(transform)->ops.batch_transform;
}

static KilnStatus soften_label(const KilnInstance *transform, KilnFeature *features,
                               const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *found = kiln_spec_label(spec);

    if (found == NULL || spec->n_classes < 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "batch_transform %s blends labels: it needs a feature \"label\" with "
                              "one i32 class per sample and at least 2 classes",
                              kiln_instance_name(transform));
    KilnFeature *label = &features[found - spec->features];
    label->dtype = KILN_F32;
    label->shape = KILN_SHAPE(spec->n_classes);
    return KILN_OK;
}

KilnStatus kiln_loader_spec_features(const KilnLoaderSpec *spec, KilnFeature *features,
                                     KilnDataSpec *ret, KilnError *err)
{
    KilnDataSpec changed = *spec->data;
    bool soft = false;

    for (size_t f = 0; f < changed.n_features; f++)
        features[f] = spec->data->features[f];
    changed.features = features;
    for (size_t i = 0; i < spec->n_batch_transforms; i++) {
        KilnInstance *transform = spec->batch_transforms[i];
        KilnStatus status = KILN_OK;

        if (ops_of(transform)->soft_labels && !soft)
            status = soften_label(transform, features, &changed, err);
        soft |= ops_of(transform)->soft_labels;
        if (status >= 0 && ops_of(transform)->setup != NULL)
            status = KILN_CALLED(transform, "setup",
                                 ops_of(transform)->setup(transform, &changed, err), err);
        if (status < 0)
            return status;
    }
    *ret = changed;
    return KILN_OK;
}

/* Write the labels as one-hot rows, which transforms then blend. */
static KilnStatus write_one_hot(const KilnBatchSlot *slot, const KilnBatchSource *source,
                                KilnError *err)
{
    const int64_t n = source->spec.n_classes;
    float *rows = slot->features[source->soft].data;

    memset(rows, 0, (size_t)(slot->size * n) * sizeof(*rows));
    for (int64_t i = 0; i < slot->size; i++) {
        char sample[256];

        if (slot->labels[i] >= 0 && slot->labels[i] < n) {
            rows[i * n + slot->labels[i]] = 1.0f;
            continue;
        }
        kiln_sample_text(&source->dataset, slot->samples[i], sample, sizeof(sample));
        return kiln_error_set(err, KILN_E_RANGE,
                              "the label of %s is %d; batch_transforms that blend labels need one "
                              "of the %lld classes, from 0",
                              sample, (int)slot->labels[i], (long long)n);
    }
    return KILN_OK;
}

/* A view of the batch; `spec` is filled and borrowed by it. */
static KilnBatchView view_of(KilnBatchSlot *slot, const KilnBatchSource *source, KilnDataSpec *spec)
{
    KilnBatchView view = { .spec = spec, .size = slot->size, .data = slot->data };
    const KilnFeature *label = kiln_spec_feature(&source->spec, "label");

    view.label = label != NULL && kiln_dataset_has(&source->dataset, "label")
                     ? (size_t)(label - source->spec.features)
                     : source->spec.n_features;
    *spec = source->spec;
    spec->features = slot->shapes;
    for (size_t f = 0; f < spec->n_features; f++) {
        slot->shapes[f] = source->spec.features[f];
        slot->data[f] = slot->shapes[f].content != KILN_TEXT ? slot->features[f].data : NULL;
        if (slot->shapes[f].varies)
            slot->shapes[f].shape.dim[0] = slot->features[f].padded;
    }
    return view;
}

KilnStatus kiln_batch_slot_transform(KilnBatchSlot *slot, const KilnBatchSource *source,
                                     int64_t epoch, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnDataSpec spec;

    if (source->n_transforms == 0 || slot->size == 0)
        return KILN_OK;
    if (source->soft < source->spec.n_features)
        status = write_one_hot(slot, source, err);
    KilnBatchView view = view_of(slot, source, &spec);
    for (size_t i = 0; i < source->n_transforms && status >= 0; i++) {
        KilnInstance *transform = source->transforms[i];
        KilnRng rng;

        kiln_rng_init(&rng, source->seed, KILN_RNG_BATCH, (uint32_t)epoch,
                      (uint64_t)slot->batch | (uint64_t)i << 56);
        status = KILN_CALLED(transform, "apply",
                             ops_of(transform)->apply(transform, &view, &rng, err), err);
    }
    return status;
}
