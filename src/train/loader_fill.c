/* One batch: memory for it, its samples, and those that are left out. */
#include "train/loader_fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* ---- Memory ----------------------------------------------------------------------- */

KilnStatus kiln_filling_init(KilnFilling *filling, const KilnLoaderSpec *spec, KilnError *err)
{
    *filling = (KilnFilling) {
        .dataset = spec->dataset,
        .n_features = spec->data->n_features,
        .seed = spec->seed,
        .tolerant = spec->tolerant,
    };
    if (spec->batch_size < 1)
        return kiln_error_set(err, KILN_E_RANGE, "batch_size is %lld; it must be at least 1",
                              (long long)spec->batch_size);
    if (spec->dataset.count < 0 || spec->dataset.count > (int64_t)UINT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "a data set of %lld samples; at most %lld are possible",
                              (long long)spec->dataset.count, (long long)UINT32_MAX);
    filling->batch_size = kiln_loader_spec_batch(spec);
    for (size_t f = 0; f < filling->n_features; f++) {
        const KilnFeature *feature = &spec->data->features[f];
        int64_t count = kiln_shape_count(&feature->shape);

        if (count < 0 || count > INT64_MAX / 64 / filling->batch_size)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "feature %s is too large for batches of %lld samples",
                                  feature->name, (long long)filling->batch_size);
        filling->bytes[f] = (size_t)count * kiln_dtype_size(feature->dtype);
    }
    return KILN_OK;
}

int64_t kiln_slot_sample_bytes(const KilnLoaderSpec *spec)
{
    int64_t bytes = (int64_t)(sizeof(KilnSkip) + sizeof(int64_t));

    for (size_t f = 0; f < spec->data->n_features; f++)
        bytes += kiln_shape_count(&spec->data->features[f].shape) *
                 (int64_t)kiln_dtype_size(spec->data->features[f].dtype);
    return bytes;
}

KilnStatus kiln_slot_init(KilnSlot *slot, const KilnFilling *filling, KilnError *err)
{
    const size_t size = (size_t)filling->batch_size;

    slot->reading = -1;
    slot->samples = calloc(size, sizeof(*slot->samples));
    slot->skips = calloc(size, sizeof(*slot->skips));
    if (slot->samples == NULL || slot->skips == NULL)
        return kiln_error_nomem(err, size * sizeof(*slot->skips));
    for (size_t f = 0; f < filling->n_features; f++) {
        size_t rounded = (filling->bytes[f] * size + 64) / 64 * 64;

        slot->data[f] = aligned_alloc(64, rounded);
        if (slot->data[f] == NULL)
            return kiln_error_nomem(err, rounded);
        memset(slot->data[f], 0, rounded);
    }
    return KILN_OK;
}

void kiln_slot_forget_skips(KilnSlot *slot)
{
    for (size_t i = 0; i < slot->n_skips; i++)
        free(slot->skips[i].message);
    slot->n_skips = 0;
}

void kiln_slot_release(KilnSlot *slot)
{
    kiln_slot_forget_skips(slot);
    free(slot->samples);
    free(slot->skips);
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

static void skip_sample(KilnSlot *slot, const KilnDataset *dataset, int64_t sample,
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

/* Read a sample behind those of the slot. */
static KilnStatus add_sample(KilnSlot *slot, const KilnFilling *filling, int64_t epoch,
                             int64_t index)
{
    KilnSample sample = { { NULL } };
    KilnRng rng;

    for (size_t f = 0; f < filling->n_features; f++)
        sample.data[f] = (char *)slot->data[f] + (size_t)slot->size * filling->bytes[f];
    kiln_rng_init(&rng, filling->seed, KILN_RNG_AUGMENT, (uint32_t)epoch, (uint64_t)index);
    slot->error.text[0] = '\0';
    KilnStatus status = filling->dataset.get(filling->dataset.ctx, index, &rng, &sample,
                                             &slot->error);
    if (status >= 0)
        slot->samples[slot->size++] = index;
    return status;
}

void kiln_slot_fill(KilnSlot *slot, const KilnFilling *filling, const KilnLoaderOrder *order,
                    int64_t epoch)
{
    int64_t first, size;

    slot->size = 0;
    slot->status = KILN_OK;
    kiln_loader_order_batch(order, slot->batch, &first, &size);
    for (int64_t i = first; i < first + size && slot->status >= 0; i++) {
        int64_t index = kiln_loader_order_sample(order, i);

        __atomic_store_n(&slot->reading, index, __ATOMIC_RELAXED);
        KilnStatus status = add_sample(slot, filling, epoch, index);
        if (status == KILN_E_SKIP || (status < 0 && filling->tolerant && status != KILN_E_NOMEM))
            skip_sample(slot, &filling->dataset, index, status);
        else if (status < 0)
            slot->status = status;
    }
    __atomic_store_n(&slot->reading, -1, __ATOMIC_RELAXED);
}
