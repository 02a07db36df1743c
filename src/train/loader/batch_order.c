/* Computes the order of an epoch's samples and divides it into batches, by length if wanted. */
#include "train/loader/batch_order.h"

#include "base/call.h"
#include "base/min.h"
#include "base/system/machine.h"
#include "kiln/tools/clock.h"

#include <stdlib.h>
#include <string.h>

enum { POLL_EVERY = 1 << 12 };                          /* lengths */
static const char *const ordering = "ordering samples"; /* for polls */

static const KilnSamplerOps *ops_of(const KilnInstance *sampler)
{
    return kiln_instance_component(sampler)->ops.sampler;
}

static KilnSampling sampling_of(const KilnLoaderSpec *spec, const KilnDataset *dataset)
{
    return (KilnSampling) {
        .dataset = dataset,
        .n_classes = spec->data->n_classes,
        .class_names = spec->data->class_names,
        .seed = spec->seed,
        .poll = spec->poll,
    };
}

/* Refuse a sampler that needs more memory than there is: it allocates before the run's memory
 * estimate. */
static KilnStatus check_memory(const KilnLoaderSpec *spec, const KilnSampling *sampling,
                               KilnError *err)
{
    const KilnSamplerOps *ops = ops_of(spec->sampler);
    char count[KILN_UNIT_TEXT], need[KILN_UNIT_TEXT], have[KILN_UNIT_TEXT];
    KilnMemory memory;

    if (ops->memory == NULL || !kiln_memory_read("", &memory))
        return KILN_OK;
    kiln_call_enter(spec->sampler, "memory");
    const int64_t needed = ops->memory(spec->sampler, sampling);
    kiln_call_leave();
    if (needed <= memory.available)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_NOMEM,
        "sampler %s needs %s of memory for %s samples, and %s are available; use fewer training "
        "samples, or sampler shuffle",
        kiln_instance_name(spec->sampler), kiln_bytes_text((double)needed, need),
        kiln_commas_text(spec->dataset.count, count),
        kiln_bytes_text((double)memory.available, have));
}

KilnStatus kiln_sampler_setup(const KilnLoaderSpec *spec, KilnError *err)
{
    KilnSampling sampling = sampling_of(spec, &spec->dataset);

    if (spec->by_length && spec->dataset.lengths == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "datamodule.buckets group training samples by length, and this "
                              "datamodule does not know lengths before it reads samples "
                              "(KilnDataset.lengths): set datamodule.buckets=[]");
    if (spec->sampler == NULL)
        return KILN_OK;
    if (spec->by_length && ops_of(spec->sampler)->draws)
        return kiln_error_set(err, KILN_E_RANGE,
                              "datamodule.buckets need a sampler that takes the same samples in "
                              "every epoch, so that all epochs have the same number of batches; "
                              "%s draws different ones: use shuffle",
                              kiln_instance_name(spec->sampler));
    KilnStatus status = check_memory(spec, &sampling, err);
    if (status < 0 || ops_of(spec->sampler)->setup == NULL)
        return status;
    return KILN_CALLED(spec->sampler, "setup",
                       ops_of(spec->sampler)->setup(spec->sampler, &sampling, err), err);
}

/* ---- Sizes ---------------------------------------------------------------------- */

static int64_t samples_of(const KilnLoaderSpec *spec)
{
    KilnSampling sampling = sampling_of(spec, &spec->dataset);

    if (spec->dataset.count < 1 || spec->sampler == NULL || ops_of(spec->sampler)->count == NULL)
        return spec->dataset.count;
    kiln_call_enter(spec->sampler, "count");
    const int64_t count = ops_of(spec->sampler)->count(spec->sampler, &sampling);
    kiln_call_leave();
    return count;
}

/* The most elements that a varying feature can have. */
static int64_t longest_of(const KilnLoaderSpec *spec)
{
    int64_t longest = 1;

    for (size_t f = 0; f < spec->data->n_features; f++) {
        const KilnFeature *feature = &spec->data->features[f];

        if (feature->varies && feature->shape.dim[0] > longest)
            longest = feature->shape.dim[0];
    }
    return longest;
}

int64_t kiln_loader_spec_bucket_size(const KilnLoaderSpec *spec, size_t b)
{
    const int64_t longest = longest_of(spec);
    const int64_t padded = b < spec->n_buckets && spec->buckets[b] < longest ? spec->buckets[b]
                                                                             : longest;
    const int64_t fit = spec->max_tokens / padded;

    if (spec->max_tokens == 0 || fit >= spec->batch_size)
        return spec->batch_size;
    return fit > 0 ? fit : 1;
}

/* Samples per batch where lengths do not matter: those of the longest bucket fit whatever comes. */
static int64_t plain_size(const KilnLoaderSpec *spec)
{
    return kiln_loader_spec_bucket_size(spec, spec->by_length ? 0 : spec->n_buckets);
}

int64_t kiln_loader_spec_batch_size(const KilnLoaderSpec *spec)
{
    const int64_t count = samples_of(spec);
    const int64_t size = spec->whole > 0 ? count : plain_size(spec);

    return size < count || spec->drop_last ? size : count > 0 ? count : 1;
}

size_t kiln_bucket_of(const int64_t *buckets, size_t n, int64_t length)
{
    size_t i = 0;

    while (i < n && buckets[i] < length)
        i++;
    return i;
}

/* The length of sample `index`: that of its longest varying feature. `lengths` has room for those
 * of all n features. */
static int64_t length_of(const KilnDataset *dataset, int64_t index, int64_t *lengths, size_t n)
{
    int64_t most = 0;

    memset(lengths, 0, n * sizeof(*lengths));
    dataset->lengths(dataset->ctx, index, lengths);
    for (size_t f = 0; f < n; f++)
        most = lengths[f] > most ? lengths[f] : most;
    return most;
}

static int64_t batches_of(const KilnLoaderSpec *spec, int64_t samples, int64_t size)
{
    return (samples + (spec->drop_last ? 0 : size - 1)) / size;
}

/* Count batches by the samples of epoch 0: samplers that do not draw take the same in every epoch.
 * -1: memory ran out, or the user wants to stop. */
static int64_t batches_by_length(const KilnLoaderSpec *spec)
{
    const KilnDataset *dataset = &spec->dataset;
    const size_t n = spec->data->n_features;
    int64_t count = samples_of(spec), batches = 0;
    int64_t *counts = calloc(spec->n_buckets + 1, sizeof(*counts));
    int64_t *lengths = calloc(n + 1, sizeof(*lengths));
    KilnBatchOrder order = {
        .sampler = spec->sampler,
        .sampling = sampling_of(spec, dataset),
        .count = count,
        .samples = spec->sampler != NULL ? malloc((size_t)count * sizeof(uint32_t) + 1) : NULL,
    };
    bool good = counts != NULL && lengths != NULL &&
                (spec->sampler == NULL || order.samples != NULL) &&
                kiln_batch_order_begin(&order, 0, NULL) >= 0;

    for (int64_t i = 0; i < count && good; i++) {
        good = i % POLL_EVERY != 0 || !kiln_poll(spec->poll, "reading lengths", i, count);
        const int64_t length = length_of(dataset, kiln_batch_order_sample(&order, i), lengths, n);

        counts[kiln_bucket_of(spec->buckets, spec->n_buckets, length)]++;
    }
    for (size_t b = 0; b <= spec->n_buckets && good; b++)
        batches += batches_of(spec, counts[b], kiln_loader_spec_bucket_size(spec, b));
    free(counts);
    free(lengths);
    free(order.samples);
    return good ? batches : -1;
}

int64_t kiln_loader_spec_order_bytes(const KilnLoaderSpec *spec)
{
    const int64_t orders = spec->by_length ? 2 : spec->sampler != NULL ? 1 : 0;

    return orders * samples_of(spec) * (int64_t)sizeof(uint32_t);
}

int64_t kiln_loader_spec_batches(const KilnLoaderSpec *spec)
{
    int64_t batches = spec->whole > 0 ? (spec->dataset.count > 0 ? spec->whole : 0)
                      : spec->by_length
                          ? batches_by_length(spec)
                          : batches_of(spec, samples_of(spec), kiln_loader_spec_batch_size(spec));

    return spec->limit >= 0 && batches > spec->limit ? spec->limit : batches;
}

/* ---- An epoch's order ------------------------------------------------------------- */

static KilnStatus init_buckets(KilnBatchOrder *order, const KilnLoaderSpec *spec, KilnError *err)
{
    const size_t open = (spec->n_buckets + 1) * (size_t)order->batch_size;

    order->buckets = spec->buckets;
    order->n_buckets = spec->n_buckets;
    for (size_t b = 0; b <= spec->n_buckets; b++)
        order->sizes[b] = kiln_min_i64(kiln_loader_spec_bucket_size(spec, b), order->batch_size);
    if (order->n_batches < 0 &&
        kiln_poll_check(spec->poll, "reading lengths", 0, order->count, err) < 0)
        return KILN_E_INTERRUPTED;
    if (order->n_batches < 0)
        return kiln_error_nomem(err, (size_t)order->count * sizeof(*order->drawn));
    order->drawn = malloc((size_t)order->count * sizeof(*order->drawn) + 1);
    order->starts = calloc((size_t)order->n_batches + 1, sizeof(*order->starts));
    order->open = malloc(open * sizeof(*order->open));
    order->n_features = spec->data->n_features;
    order->lengths = calloc(order->n_features + 1, sizeof(*order->lengths));
    return order->drawn != NULL && order->starts != NULL && order->open != NULL &&
                   order->lengths != NULL
               ? KILN_OK
               : kiln_error_nomem(err, open * sizeof(*order->open));
}

KilnStatus kiln_batch_order_init(KilnBatchOrder *order, const KilnLoaderSpec *spec,
                                 const KilnDataset *dataset, KilnError *err)
{
    *order = (KilnBatchOrder) {
        .sampler = spec->sampler,
        .sampling = sampling_of(spec, dataset),
        .count = samples_of(spec),
        .batch_size = kiln_loader_spec_batch_size(spec),
        .n_batches = kiln_loader_spec_batches(spec),
    };
    const size_t bytes = (size_t)order->count * sizeof(*order->samples);
    if (spec->sampler != NULL || spec->by_length)
        order->samples = malloc(bytes + 1);
    if ((spec->sampler != NULL || spec->by_length) && order->samples == NULL)
        return kiln_error_nomem(err, bytes);
    return spec->by_length ? init_buckets(order, spec, err) : KILN_OK;
}

void kiln_batch_order_release(KilnBatchOrder *order)
{
    free(order->drawn);
    free(order->starts);
    free(order->open);
    free(order->lengths);
    free(order->samples);
    *order = (KilnBatchOrder) { 0 };
}

/* Append an open batch to the order, unless the limit of batches is reached. */
static void append_batch(KilnBatchOrder *order, int64_t *batches, const uint32_t *open,
                         int64_t size)
{
    if (*batches >= order->n_batches)
        return;
    memcpy(order->samples + order->starts[*batches], open, (size_t)size * sizeof(*open));
    order->starts[*batches + 1] = order->starts[*batches] + size;
    ++*batches;
}

/* Distribute the sampler's order to buckets; a bucket's batch is appended when it is full. Batches
 * that are not full come last, short samples first; n_batches excludes them with drop_last. */
static void group_by_length(KilnBatchOrder *order, int64_t *sizes)
{
    const KilnDataset *dataset = order->sampling.dataset;
    int64_t batches = 0;

    for (int64_t i = 0; i < order->count; i++) {
        if (i % POLL_EVERY == 0 && kiln_poll(order->sampling.poll, ordering, i, order->count))
            return;
        const int64_t length = length_of(dataset, order->drawn[i], order->lengths,
                                         order->n_features);
        const size_t b = kiln_bucket_of(order->buckets, order->n_buckets, length);
        uint32_t *open = order->open + b * (size_t)order->batch_size;

        open[sizes[b]++] = order->drawn[i];
        if (sizes[b] == order->sizes[b]) {
            append_batch(order, &batches, open, sizes[b]);
            sizes[b] = 0;
        }
    }
    for (size_t b = 0; b <= order->n_buckets; b++)
        if (sizes[b] > 0)
            append_batch(order, &batches, order->open + b * (size_t)order->batch_size, sizes[b]);
}

KilnStatus kiln_batch_order_begin(KilnBatchOrder *order, int64_t epoch, KilnError *err)
{
    uint32_t *drawn = order->drawn != NULL ? order->drawn : order->samples;
    int64_t sizes[KILN_MAX_BUCKETS + 1] = { 0 };

    if (order->sampler != NULL && order->count > 0) {
        kiln_call_enter(order->sampler, "order");
        ops_of(order->sampler)->order(order->sampler, &order->sampling, epoch, order->count, drawn);
        kiln_call_leave();
    } else if (order->drawn != NULL)
        for (int64_t i = 0; i < order->count; i++)
            drawn[i] = (uint32_t)i;
    /* A sampler that was stopped has left the order incomplete. */
    KilnStatus status = kiln_poll_check(order->sampling.poll, ordering, order->count, order->count,
                                        err);
    if (status < 0 || order->drawn == NULL)
        return status;
    group_by_length(order, sizes);
    return kiln_poll_check(order->sampling.poll, ordering, order->count, order->count, err);
}

void kiln_batch_order_batch(const KilnBatchOrder *order, int64_t batch, int64_t *ret_first,
                            int64_t *ret_size)
{
    if (order->starts != NULL) {
        *ret_first = order->starts[batch];
        *ret_size = order->starts[batch + 1] - order->starts[batch];
        return;
    }
    int64_t first = batch * order->batch_size, left = order->count - first;

    *ret_first = first;
    *ret_size = left < order->batch_size ? left : order->batch_size;
}

int64_t kiln_batch_order_sample(const KilnBatchOrder *order, int64_t i)
{
    return order->samples != NULL ? (int64_t)order->samples[i] : i;
}
