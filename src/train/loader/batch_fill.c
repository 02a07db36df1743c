/* Fills one batch: its memory, its samples, padding, and skipped samples. */
#include "train/loader/batch_fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/min.h"
#include "base/system/zeros.h"
#include "base/text.h"
#include "kiln/tools/clock.h"
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

/* Absent features must be features, and not labels that transforms blend. */
static KilnStatus check_absent(const KilnBatchSource *source, KilnError *err)
{
    const char *const *absent = source->dataset.absent;

    for (size_t i = 0; absent != NULL && absent[i] != NULL; i++)
        if (kiln_spec_feature(&source->spec, absent[i]) == NULL)
            return kiln_error_set(err, KILN_E_MISSING,
                                  "the datamodule says that samples lack \"%s\", which is no "
                                  "feature (KilnDataset.absent)",
                                  absent[i]);
    if (source->soft < source->spec.n_features && !kiln_dataset_has(&source->dataset, "label"))
        return kiln_error_set(err, KILN_E_MISSING,
                              "batch_transforms blend labels, but the training samples have none");
    return KILN_OK;
}

/* Varying features need the length of the longest sample. */
static KilnStatus check_lengths(KilnBatchSource *source, KilnError *err)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];

        if (!feature->varies || !kiln_dataset_has(&source->dataset, feature->name))
            continue;
        source->varies = true;
        if (feature->shape.rank < 1 || feature->shape.dim[0] < 1)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "feature %s varies: its first axis needs the length of the "
                                  "longest sample",
                                  feature->name);
    }
    source->measures = source->varies && source->dataset.lengths == NULL;
    return KILN_OK;
}

/* Of a varying feature, the most elements that a batch can have. */
static size_t most_elements(const KilnBatchSource *source, const KilnLoaderSpec *spec, size_t f)
{
    const int64_t longest = source->spec.features[f].shape.dim[0];
    int64_t most = 0;

    if (!spec->by_length || source->measures)
        return (size_t)(longest * source->batch_size);
    for (size_t b = 0; b <= spec->n_buckets; b++) {
        const int64_t size = kiln_loader_spec_bucket_size(spec, b);
        const int64_t padded = b < spec->n_buckets ? spec->buckets[b] : longest;
        const int64_t elements = kiln_min_i64(size, source->batch_size) *
                                 kiln_min_i64(padded, longest);

        most = elements > most ? elements : most;
    }
    return (size_t)most;
}

static KilnStatus find_bytes(KilnBatchSource *source, const KilnLoaderSpec *spec, KilnError *err)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];
        int64_t count = kiln_shape_count(&feature->shape);

        if (count < 0 || count > INT64_MAX / 64 / source->batch_size)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "feature %s is too large for batches of %lld samples",
                                  feature->name, (long long)source->batch_size);
        if (!kiln_dataset_has(&source->dataset, feature->name))
            continue;
        source->bytes[f] = feature->content == KILN_TEXT
                               ? sizeof(char *)
                               : (size_t)count * kiln_dtype_size(feature->dtype);
        source->slot_bytes[f] = feature->varies ? source->bytes[f] / (size_t)feature->shape.dim[0] *
                                                      most_elements(source, spec, f)
                                                : source->bytes[f] * (size_t)source->batch_size;
    }
    return KILN_OK;
}

void kiln_batch_source_release(KilnBatchSource *source)
{
    free(source->features);
    free(source->bytes);
    free(source->slot_bytes);
    source->features = NULL;
    source->bytes = source->slot_bytes = NULL;
}

/* Set the features of batches, and which of them is the label. */
static KilnStatus set_features(KilnBatchSource *source, const KilnLoaderSpec *spec, KilnError *err)
{
    const KilnFeature *label = kiln_spec_label(spec->data);
    const size_t n = spec->data->n_features;
    KilnStatus status = kiln_loader_spec_features(spec, source->features, &source->spec, err);

    source->label = label != NULL ? (size_t)(label - spec->data->features) : n;
    source->soft = n;
    for (size_t f = 0; f < n && status >= 0; f++)
        if (source->spec.features[f].dtype != spec->data->features[f].dtype)
            source->soft = f;
    return status;
}

KilnStatus kiln_batch_source_init(KilnBatchSource *source, const KilnLoaderSpec *spec,
                                  KilnError *err)
{
    const size_t n = spec->data->n_features;

    *source = (KilnBatchSource) {
        .dataset = spec->dataset,
        .datamodule = spec->datamodule,
        .split = spec->split,
        .buckets = spec->buckets,
        .n_buckets = spec->n_buckets,
        .transforms = spec->batch_transforms,
        .n_transforms = spec->n_batch_transforms,
        .seed = spec->seed,
        .tolerant = spec->tolerant,
        .features = calloc(n + 1, sizeof(*source->features)),
        .bytes = calloc(n + 1, sizeof(*source->bytes)),
        .slot_bytes = calloc(n + 1, sizeof(*source->slot_bytes)),
    };
    KilnStatus status = source->features != NULL && source->bytes != NULL &&
                                source->slot_bytes != NULL
                            ? check_sizes(spec, err)
                            : kiln_error_nomem(err, n * sizeof(*source->features));
    if (status >= 0)
        status = set_features(source, spec, err);
    if (status >= 0) {
        source->batch_size = kiln_loader_spec_batch_size(spec);
        status = check_absent(source, err);
    }
    if (status >= 0)
        status = check_lengths(source, err);
    if (status >= 0)
        status = find_bytes(source, spec, err);
    if (status < 0)
        kiln_batch_source_release(source);
    return status;
}

int64_t kiln_batch_source_slot_bytes(const KilnBatchSource *source)
{
    size_t bytes = 0, row = sizeof(KilnSkip) + sizeof(int64_t) + sizeof(int32_t);

    for (size_t f = 0; f < source->spec.n_features; f++) {
        bytes += source->slot_bytes[f];
        row += source->spec.features[f].varies ? sizeof(int32_t) : 0;
    }
    return (int64_t)(bytes + row * (size_t)source->batch_size);
}

static KilnStatus allocate_feature(KilnBatchFeature *feature, const KilnBatchSource *source,
                                   size_t f, KilnError *err)
{
    const size_t size = (size_t)source->batch_size;
    const size_t rounded = (source->slot_bytes[f] + 64) / 64 * 64;

    if (!kiln_dataset_has(&source->dataset, source->spec.features[f].name))
        return KILN_OK;
    feature->data = kiln_zeros(rounded);
    if (feature->data == NULL)
        return kiln_error_nomem(err, rounded);
    if (!source->spec.features[f].varies)
        return KILN_OK;
    feature->lengths = calloc(size, sizeof(*feature->lengths));
    return feature->lengths != NULL ? KILN_OK
                                    : kiln_error_nomem(err, size * sizeof(*feature->lengths));
}

KilnStatus kiln_batch_slot_init(KilnBatchSlot *slot, const KilnBatchSource *source, KilnError *err)
{
    const size_t size = (size_t)source->batch_size, n = source->spec.n_features;
    KilnStatus status = KILN_OK;

    slot->reading = -1;
    slot->samples = calloc(size, sizeof(*slot->samples));
    slot->skips = calloc(size, sizeof(*slot->skips));
    slot->labels = calloc(size, sizeof(*slot->labels));
    slot->features = calloc(n + 1, sizeof(*slot->features));
    slot->data = calloc(n + 1, sizeof(*slot->data));
    slot->lengths_of_sample = calloc(n + 1, sizeof(*slot->lengths_of_sample));
    slot->shapes = calloc(n + 1, sizeof(*slot->shapes));
    if (slot->samples == NULL || slot->skips == NULL || slot->labels == NULL ||
        slot->features == NULL || slot->data == NULL || slot->lengths_of_sample == NULL ||
        slot->shapes == NULL)
        return kiln_error_nomem(err, size * sizeof(*slot->skips) + n * sizeof(*slot->shapes));
    for (size_t f = 0; f < n && status >= 0; f++)
        status = allocate_feature(&slot->features[f], source, f, err);
    return status;
}

void kiln_batch_slot_clear_skips(KilnBatchSlot *slot)
{
    for (size_t i = 0; i < slot->n_skips; i++) {
        free(slot->skips[i].name);
        free(slot->skips[i].message);
    }
    slot->n_skips = 0;
}

/* Free the text that feature f has in a row, if it is one. */
static void clear_text(const KilnBatchSlot *slot, const KilnBatchSource *source, size_t f,
                       int64_t row)
{
    char **texts = slot->features[f].data;

    if (source->spec.features[f].content != KILN_TEXT || texts == NULL)
        return;
    free(texts[row]);
    texts[row] = NULL;
}

void kiln_batch_slot_release(KilnBatchSlot *slot, const KilnBatchSource *source)
{
    kiln_batch_slot_clear_skips(slot);
    for (size_t f = 0; slot->features != NULL && f < source->spec.n_features; f++) {
        for (int64_t row = 0; row < source->batch_size; row++)
            clear_text(slot, source, f, row);
        kiln_zeros_free(slot->features[f].data);
        free(slot->features[f].lengths);
    }
    free(slot->features);
    free(slot->data);
    free(slot->lengths_of_sample);
    free(slot->shapes);
    free(slot->samples);
    free(slot->skips);
    free(slot->labels);
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
    const size_t length = name != NULL ? strlen(name) : 0;
    KilnText text = { 0 };

    /* The message usually begins with the file's name already. */
    if (name != NULL && strstr(slot->error.text, name) == NULL)
        kiln_text_printf(&text, "%s: ", name);
    kiln_text_append(&text, slot->error.text);
    const bool named = name != NULL && text.data != NULL && text.length > length + 2 &&
                       strncmp(text.data, name, length) == 0 &&
                       strncmp(text.data + length, ": ", 2) == 0;
    slot->skips[slot->n_skips++] = (KilnSkip) { .sample = sample,
                                                .status = status,
                                                .name = name != NULL ? kiln_strdup(name) : NULL,
                                                .message = kiln_text_take(&text),
                                                .reason = named ? length + 2 : 0 };
}

/* Bytes of `length` elements of a varying feature's first axis. */
static size_t bytes_of(const KilnBatchSource *source, size_t f, int64_t length)
{
    return source->bytes[f] / (size_t)source->spec.features[f].shape.dim[0] * (size_t)length;
}

/* Bytes of a feature per sample in this batch. */
static size_t row_bytes(const KilnBatchSlot *slot, const KilnBatchSource *source, size_t f)
{
    return source->spec.features[f].varies ? bytes_of(source, f, slot->features[f].padded)
                                           : source->bytes[f];
}

/* Where sample number `row` of the batch has feature f; NULL: it is absent. */
static void *row_of(const KilnBatchSlot *slot, const KilnBatchSource *source, size_t f, int64_t row)
{
    char *rows = slot->features[f].data;

    return rows != NULL ? rows + (size_t)row * row_bytes(slot, source, f) : NULL;
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

/* Pad the varying features of the sample in `row`, and note their lengths. */
static void pad(KilnBatchSlot *slot, const KilnBatchSource *source, int64_t row)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];
        const int64_t length = slot->lengths_of_sample[f];

        if (slot->features[f].lengths == NULL)
            continue;
        const size_t whole = row_bytes(slot, source, f), used = bytes_of(source, f, length);
        put_value((char *)row_of(slot, source, f, row) + used, feature->dtype, feature->pad,
                  (whole - used) / kiln_dtype_size(feature->dtype));
        slot->features[f].lengths[row] = (int32_t)length;
    }
}

/* Refuse a class that the data don't have: the loss would be NaN or an unused output trained. */
static KilnStatus check_label(const KilnBatchSource *source, int64_t index,
                              const KilnSample *sample, KilnError *err)
{
    char text[256];

    if (source->label == source->spec.n_features || sample->data[source->label] == NULL)
        return KILN_OK;
    const int32_t label = *(const int32_t *)sample->data[source->label];
    if (label < source->spec.n_classes)
        return KILN_OK;
    kiln_sample_text(&source->dataset, index, text, sizeof(text));
    return kiln_error_set(err, KILN_E_RANGE,
                          "%s has label %d, but the data have %lld classes: 0 to %lld", text, label,
                          (long long)source->spec.n_classes, (long long)source->spec.n_classes - 1);
}

/* Ask for the lengths of a sample's varying features; 0 where only reading it sets them. */
static void read_lengths(KilnBatchSlot *slot, const KilnBatchSource *source, int64_t index)
{
    memset(slot->lengths_of_sample, 0, source->spec.n_features * sizeof(int64_t));
    if (!source->measures)
        source->dataset.lengths(source->dataset.ctx, index, slot->lengths_of_sample);
}

/* The lengths of a sample must be those that the spec allows. */
static KilnStatus check_sample_lengths(KilnBatchSlot *slot, const KilnBatchSource *source,
                                       int64_t index)
{
    char sample[256];

    for (size_t f = 0; f < source->spec.n_features; f++) {
        const KilnFeature *feature = &source->spec.features[f];
        const int64_t length = slot->lengths_of_sample[f];

        if (slot->features[f].lengths == NULL || (length >= 0 && length <= feature->shape.dim[0]))
            continue;
        kiln_sample_text(&source->dataset, index, sample, sizeof(sample));
        return kiln_error_set(&slot->error, KILN_E_RANGE,
                              "%s: feature %s has length %lld; the datamodule declares 0 to %lld",
                              sample, feature->name, (long long)length,
                              (long long)feature->shape.dim[0]);
    }
    return KILN_OK;
}

/* Say which sample a component could not read, unless its message names the sample's file. */
static KilnStatus place_error(const KilnBatchSource *source, int64_t index, KilnStatus status,
                              KilnError *err)
{
    const KilnDataset *dataset = &source->dataset;
    const char *name = dataset->name != NULL ? dataset->name(dataset->ctx, index) : NULL;
    char sample[512];

    kiln_sample_text(dataset, index, sample, sizeof(sample));
    if (source->datamodule != NULL && source->split != NULL && strstr(err->text, sample) == NULL &&
        (name == NULL || strstr(err->text, name) == NULL))
        (void)kiln_error_prefix(err,
                                "datamodule/%s: %s of %s: ", kiln_instance_name(source->datamodule),
                                sample, source->split);
    return status;
}

/* Read a sample into the slot's next row. */
static KilnStatus add_sample(KilnBatchSlot *slot, const KilnBatchSource *source, int64_t epoch,
                             int64_t index)
{
    const KilnDataset *dataset = &source->dataset;
    KilnSample sample = { .data = slot->data, .lengths = slot->lengths_of_sample };
    KilnRng rng;

    for (size_t f = 0; f < source->spec.n_features; f++) {
        clear_text(slot, source, f, slot->size); /* of the batch before, or a skipped sample */
        slot->data[f] = f == source->soft ? &slot->labels[slot->size]
                                          : row_of(slot, source, f, slot->size);
    }
    if (source->varies)
        read_lengths(slot, source, index);
    kiln_rng_init(&rng, source->seed, KILN_RNG_AUGMENT, (uint32_t)epoch, (uint64_t)index);
    slot->error.text[0] = '\0';
    KilnStatus status = KILN_CALLED(source->datamodule, "dataset.get",
                                    dataset->get(dataset->ctx, index, &rng, &sample, &slot->error),
                                    &slot->error);
    if (status >= 0 && source->measures)
        status = check_sample_lengths(slot, source, index);
    if (status >= 0)
        status = check_label(source, index, &sample, &slot->error);
    if (status < 0)
        return status;
    pad(slot, source, slot->size);
    slot->samples[slot->size++] = index;
    return status;
}

/* Make room in the batch for the lengths of sample `index`. */
static KilnStatus fit_sample(KilnBatchSlot *slot, const KilnBatchSource *source, int64_t index)
{
    read_lengths(slot, source, index);
    for (size_t f = 0; f < source->spec.n_features; f++) {
        KilnBatchFeature *in_batch = &slot->features[f];

        if (in_batch->lengths != NULL && slot->lengths_of_sample[f] > in_batch->padded)
            in_batch->padded = slot->lengths_of_sample[f];
    }
    return check_sample_lengths(slot, source, index);
}

/* The length that samples are padded to when the longest has `length`: the smallest bucket that
 * fits it. */
static int64_t padded_length(const KilnBatchSource *source, size_t f, int64_t length)
{
    const int64_t most = source->spec.features[f].shape.dim[0];
    const size_t bucket = kiln_bucket_of(source->buckets, source->n_buckets, length);

    return bucket < source->n_buckets && source->buckets[bucket] < most ? source->buckets[bucket]
                                                                        : most;
}

/* Set the lengths that n samples from `first` on are padded to; the longest possible where only
 * reading them shows how long they are. */
static KilnStatus find_lengths(KilnBatchSlot *slot, const KilnBatchSource *source,
                               const KilnBatchOrder *order, int64_t first, int64_t n)
{
    const size_t n_features = source->spec.n_features;
    KilnStatus status = KILN_OK;

    for (size_t f = 0; f < n_features; f++)
        slot->features[f].padded = 0;
    for (int64_t i = first; source->varies && !source->measures && i < first + n && status >= 0;
         i++)
        status = fit_sample(slot, source, kiln_batch_order_sample(order, i));
    for (size_t f = 0; f < n_features; f++)
        if (source->spec.features[f].varies)
            slot->features[f].padded = source->measures
                                           ? source->spec.features[f].shape.dim[0]
                                           : padded_length(source, f, slot->features[f].padded);
    return status;
}

/* Shorten the rows of varying features to the lengths that the samples turned out to have. */
static void shorten(KilnBatchSlot *slot, const KilnBatchSource *source)
{
    for (size_t f = 0; f < source->spec.n_features; f++) {
        KilnBatchFeature *feature = &slot->features[f];
        int64_t longest = 0;

        for (int64_t row = 0; feature->lengths != NULL && row < slot->size; row++)
            longest = feature->lengths[row] > longest ? feature->lengths[row] : longest;
        if (feature->lengths == NULL)
            continue;
        const size_t before = row_bytes(slot, source, f);
        feature->padded = padded_length(source, f, longest);
        const size_t after = row_bytes(slot, source, f);
        for (int64_t row = 1; row < slot->size && after < before; row++)
            memmove((char *)feature->data + (size_t)row * after,
                    (char *)feature->data + (size_t)row * before, after);
    }
}

void kiln_batch_slot_fill(KilnBatchSlot *slot, const KilnBatchSource *source,
                          const KilnBatchOrder *order, int64_t epoch)
{
    int64_t first, size;

    slot->size = 0;
    kiln_batch_order_batch(order, slot->batch, &first, &size);
    slot->status = find_lengths(slot, source, order, first, size);
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
            slot->status = place_error(source, index, status, &slot->error);
    }
    __atomic_store_n(&slot->reading, -1, __ATOMIC_RELAXED);
    if (slot->status >= 0 && source->measures)
        shorten(slot, source);
    const double start = kiln_clock();
    if (slot->status >= 0)
        slot->status = kiln_batch_slot_transform(slot, source, epoch, &slot->error);
    slot->transform_s = kiln_clock() - start;
}
