/* Fills one batch: its memory, its samples, padding, and skipped samples. */
#include "train/loader/batch_fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "train/loader/batch_transform.h"

/* ---- Memory ----------------------------------------------------------------------- */

static KilnStatus check_sizes(const KilnLoaderSpec *spec, KilnError *err)
{
    if (spec->batch_size < 1)
        return kiln_error_set(err, KILN_E_RANGE, "batch_size is %lld; it must be at least 1",
                              (long long)spec->batch_size);
    if (spec->dataset.count < 0 || spec->dataset.count > (int64_t)UINT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "the data set has %lld samples; at most %lld are possible",
                              (long long)spec->dataset.count, (long long)UINT32_MAX);
    if (spec->n_buckets > KILN_MAX_BUCKETS)
        return kiln_error_set(err, KILN_E_RANGE,
                              "datamodule.buckets has %zu lengths; at most %d are possible",
                              spec->n_buckets, (int)KILN_MAX_BUCKETS);
    for (size_t b = 1; b < spec->n_buckets; b++)
        if (spec->buckets[b] <= spec->buckets[b - 1])
            return kiln_error_set(err, KILN_E_RANGE,
                                  "datamodule.buckets must increase, but %lld comes after %lld",
                                  (long long)spec->buckets[b], (long long)spec->buckets[b - 1]);
    return KILN_OK;
}

/* Find the length of the longest sample, the same for all varying features. */
static KilnStatus find_longest(KilnBatchSource *source, KilnError *err)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];

        if (!feature->varies)
            continue;
        if (feature->shape.rank < 1 || feature->shape.dim[0] < 1 ||
            (source->longest > 0 && feature->shape.dim[0] != source->longest))
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "varying features need a first axis of the same maximum length; "
                                  "feature %s differs",
                                  feature->name);
        source->longest = feature->shape.dim[0];
    }
    if (source->longest > 0 && source->dataset.length == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "the datamodule has varying features but reports no lengths "
                              "(KilnDataset.length)");
    return KILN_OK;
}

static KilnStatus find_bytes(KilnBatchSource *source, KilnError *err)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];
        int64_t count = kiln_shape_count(&feature->shape);

        if (count < 0 || count > INT64_MAX / 64 / source->batch_size)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "feature %s is too large for batches of %lld samples",
                                  feature->name, (long long)source->batch_size);
        source->bytes[f] = (size_t)count * kiln_dtype_size(feature->dtype);
    }
    return KILN_OK;
}

KilnStatus kiln_batch_source_init(KilnBatchSource *source, const KilnLoaderSpec *spec,
                                  KilnError *err)
{
    *source = (KilnBatchSource) {
        .dataset = spec->dataset,
        .datamodule = spec->datamodule,
        .buckets = spec->buckets,
        .n_buckets = spec->n_buckets,
        .transforms = spec->batch_transforms,
        .n_transforms = spec->n_batch_transforms,
        .seed = spec->seed,
        .tolerant = spec->tolerant,
    };
    KilnStatus status = check_sizes(spec, err);
    if (status >= 0)
        status = kiln_loader_spec_features(spec, &source->spec, err);
    if (status < 0)
        return status;
    const KilnFeature *label = kiln_spec_label(spec->data);
    source->label = label != NULL ? (size_t)(label - spec->data->features)
                                  : source->spec.n_features;
    source->soft = source->spec.n_features;
    for (size_t f = 0; f < source->spec.n_features; f++)
        if (source->spec.features[f].dtype != spec->data->features[f].dtype)
            source->soft = f;
    source->batch_size = kiln_loader_spec_batch_size(spec);
    status = find_longest(source, err);
    return status >= 0 ? find_bytes(source, err) : status;
}

int64_t kiln_batch_source_sample_bytes(const KilnBatchSource *source)
{
    size_t bytes = sizeof(KilnSkip) + sizeof(int64_t) + 2 * sizeof(int32_t);

    for (size_t f = 0; f < source->spec.n_features; f++)
        bytes += source->bytes[f];
    return (int64_t)bytes;
}

KilnStatus kiln_batch_slot_init(KilnBatchSlot *slot, const KilnBatchSource *source, KilnError *err)
{
    const size_t size = (size_t)source->batch_size;

    slot->reading = -1;
    slot->samples = calloc(size, sizeof(*slot->samples));
    slot->skips = calloc(size, sizeof(*slot->skips));
    slot->labels = calloc(size, sizeof(*slot->labels));
    slot->lengths = source->longest > 0 ? calloc(size, sizeof(*slot->lengths)) : NULL;
    if (slot->samples == NULL || slot->skips == NULL || slot->labels == NULL ||
        (source->longest > 0 && slot->lengths == NULL))
        return kiln_error_nomem(err, size * sizeof(*slot->skips));
    for (size_t f = 0; f < source->spec.n_features; f++) {
        size_t rounded = (source->bytes[f] * size + 64) / 64 * 64;

        slot->data[f] = aligned_alloc(64, rounded);
        if (slot->data[f] == NULL)
            return kiln_error_nomem(err, rounded);
        memset(slot->data[f], 0, rounded);
    }
    return KILN_OK;
}

void kiln_batch_slot_clear_skips(KilnBatchSlot *slot)
{
    for (size_t i = 0; i < slot->n_skips; i++)
        free(slot->skips[i].message);
    slot->n_skips = 0;
}

void kiln_batch_slot_release(KilnBatchSlot *slot)
{
    kiln_batch_slot_clear_skips(slot);
    free(slot->samples);
    free(slot->skips);
    free(slot->labels);
    free(slot->lengths);
    for (size_t f = 0; f < KILN_MAX_FEATURES; f++)
        free(slot->data[f]);
}

/* ---- Filling ------------------------------------------------------------------------ */

void kiln_sample_text(const KilnDataset *dataset, int64_t sample, char *ret, size_t room)
{
    const char *name = dataset->name != NULL ? dataset->name(dataset->ctx, sample) : NULL;

    if (name != NULL)
        snprintf(ret, room, "sample %lld (%s)", (long long)sample, name);
    else
        snprintf(ret, room, "sample %lld", (long long)sample);
}

static void skip_sample(KilnBatchSlot *slot, const KilnDataset *dataset, int64_t sample,
                        KilnStatus status)
{
    const char *name = dataset->name != NULL ? dataset->name(dataset->ctx, sample) : NULL;
    KilnText text = { 0 };

    /* The message usually begins with the file's name already. */
    if (name != NULL && strstr(slot->error.text, name) == NULL)
        kiln_text_printf(&text, "%s: ", name);
    kiln_text_append(&text, slot->error.text);
    slot->skips[slot->n_skips++] =
        (KilnSkip) { .sample = sample, .status = status, .message = kiln_text_take(&text) };
}

/* Bytes of a feature per sample in this batch. */
static size_t row_bytes(const KilnBatchSlot *slot, const KilnBatchSource *source, size_t f)
{
    return source->spec.features[f].varies
               ? source->bytes[f] / (size_t)source->longest * (size_t)slot->length
               : source->bytes[f];
}

/* Fill n elements with a value. */
static void put_value(void *to, KilnDType dtype, double value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == KILN_F32)
            ((float *)to)[i] = (float)value;
        else if (dtype == KILN_I32)
            ((int32_t *)to)[i] = (int32_t)value;
        else if (dtype == KILN_U8)
            ((uint8_t *)to)[i] = (uint8_t)value;
    }
}

/* Pad the varying features of a sample that has `length`. */
static void pad(KilnBatchSlot *slot, const KilnBatchSource *source, int64_t row, int64_t length)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];
        const size_t size = kiln_dtype_size(feature->dtype);

        if (!feature->varies)
            continue;
        size_t whole = row_bytes(slot, source, f);
        size_t used = source->bytes[f] / (size_t)source->longest * (size_t)length;
        put_value((char *)slot->data[f] + (size_t)row * whole + used, feature->dtype, feature->pad,
                  (whole - used) / size);
    }
}

/* Refuse a class that the data don't have: the loss would be NaN or an unused output trained. */
static KilnStatus check_label(const KilnBatchSource *source, int64_t index,
                              const KilnSample *sample, KilnError *err)
{
    char text[256];

    if (source->label == source->spec.n_features)
        return KILN_OK;
    const int32_t label = *(const int32_t *)sample->data[source->label];
    if (label < source->spec.n_classes)
        return KILN_OK;
    kiln_sample_text(&source->dataset, index, text, sizeof(text));
    return kiln_error_set(err, KILN_E_RANGE,
                          "%s has label %d, but the data have %lld classes: 0 to %lld", text, label,
                          (long long)source->spec.n_classes, (long long)source->spec.n_classes - 1);
}

/* Read a sample into the slot's next row. */
static KilnStatus add_sample(KilnBatchSlot *slot, const KilnBatchSource *source, int64_t epoch,
                             int64_t index)
{
    const KilnDataset *dataset = &source->dataset;
    KilnSample sample = { .data = { NULL } };
    KilnRng rng;

    for (size_t f = 0; f < source->spec.n_features; f++)
        sample.data[f] = f == source->soft ? (void *)&slot->labels[slot->size]
                                           : (char *)slot->data[f] +
                                                 (size_t)slot->size * row_bytes(slot, source, f);
    if (source->longest > 0)
        sample.length = dataset->length(dataset->ctx, index);
    kiln_rng_init(&rng, source->seed, KILN_RNG_AUGMENT, (uint32_t)epoch, (uint64_t)index);
    slot->error.text[0] = '\0';
    KilnStatus status = KILN_CALLED(source->datamodule, "dataset.get",
                                    dataset->get(dataset->ctx, index, &rng, &sample, &slot->error),
                                    &slot->error);
    if (status >= 0)
        status = check_label(source, index, &sample, &slot->error);
    if (status < 0)
        return status;
    if (source->longest > 0) {
        pad(slot, source, slot->size, sample.length);
        slot->lengths[slot->size] = (int32_t)sample.length;
    }
    slot->samples[slot->size++] = index;
    return status;
}

/* Set the length that n samples from `first` on are padded to: their bucket's. */
static KilnStatus find_length(KilnBatchSlot *slot, const KilnBatchSource *source,
                              const KilnBatchOrder *order, int64_t first, int64_t n)
{
    const KilnDataset *dataset = &source->dataset;
    int64_t most = 0;

    slot->length = 0;
    for (int64_t i = first; source->longest > 0 && i < first + n; i++) {
        int64_t index = kiln_batch_order_sample(order, i);
        int64_t length = dataset->length(dataset->ctx, index);
        char sample[256];

        most = length > most ? length : most;
        if (length >= 0 && length <= source->longest)
            continue;
        kiln_sample_text(dataset, index, sample, sizeof(sample));
        return kiln_error_set(&slot->error, KILN_E_RANGE,
                              "%s has length %lld; the datamodule declares 0 to %lld", sample,
                              (long long)length, (long long)source->longest);
    }
    size_t bucket = kiln_bucket_of(source->buckets, source->n_buckets, most);
    if (source->longest > 0)
        slot->length = bucket < source->n_buckets && source->buckets[bucket] < source->longest
                           ? source->buckets[bucket]
                           : source->longest;
    return KILN_OK;
}

void kiln_batch_slot_fill(KilnBatchSlot *slot, const KilnBatchSource *source,
                          const KilnBatchOrder *order, int64_t epoch)
{
    int64_t first, size;

    slot->size = 0;
    kiln_batch_order_batch(order, slot->batch, &first, &size);
    slot->status = find_length(slot, source, order, first, size);
    for (int64_t i = first; i < first + size && slot->status >= 0; i++) {
        int64_t index = kiln_batch_order_sample(order, i);

        if (source->cancelled(source->ctx)) {
            slot->status = kiln_error_set(&slot->error, KILN_E_INTERRUPTED,
                                          "interrupted while reading data");
            break;
        }
        __atomic_store_n(&slot->reading, index, __ATOMIC_RELAXED);
        KilnStatus status = add_sample(slot, source, epoch, index);
        if (status == KILN_E_SKIP || (status < 0 && source->tolerant && status != KILN_E_NOMEM))
            skip_sample(slot, &source->dataset, index, status);
        else if (status < 0)
            slot->status = status;
    }
    __atomic_store_n(&slot->reading, -1, __ATOMIC_RELAXED);
    if (slot->status >= 0)
        slot->status = kiln_batch_slot_transform(slot, source, epoch, &slot->error);
}
