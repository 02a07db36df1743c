/* The order of samples, and its division into batches. */
#include "train/loader_order.h"

#include <stdlib.h>

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
    };
}

KilnStatus kiln_sampler_setup(const KilnLoaderSpec *spec, KilnError *err)
{
    KilnSampling sampling = sampling_of(spec, &spec->dataset);

    if (spec->sampler == NULL || ops_of(spec->sampler)->setup == NULL)
        return KILN_OK;
    return ops_of(spec->sampler)->setup(spec->sampler, &sampling, err);
}

/* ---- Sizes ---------------------------------------------------------------------- */

static int64_t samples_of(const KilnLoaderSpec *spec)
{
    KilnSampling sampling = sampling_of(spec, &spec->dataset);

    if (spec->dataset.count < 1 || spec->sampler == NULL || ops_of(spec->sampler)->count == NULL)
        return spec->dataset.count;
    return ops_of(spec->sampler)->count(spec->sampler, &sampling);
}

int64_t kiln_loader_spec_batch(const KilnLoaderSpec *spec)
{
    int64_t count = samples_of(spec);

    return spec->batch_size < count || spec->drop_last ? spec->batch_size : count > 0 ? count : 1;
}

int64_t kiln_loader_spec_batches(const KilnLoaderSpec *spec)
{
    int64_t size = kiln_loader_spec_batch(spec);
    int64_t batches = (samples_of(spec) + (spec->drop_last ? 0 : size - 1)) / size;

    return spec->limit >= 0 && batches > spec->limit ? spec->limit : batches;
}

/* ---- An epoch's order ------------------------------------------------------------- */

KilnStatus kiln_loader_order_init(KilnLoaderOrder *order, const KilnLoaderSpec *spec,
                                  const KilnDataset *dataset, KilnError *err)
{
    *order = (KilnLoaderOrder) {
        .sampler = spec->sampler,
        .sampling = sampling_of(spec, dataset),
        .count = samples_of(spec),
        .batch_size = kiln_loader_spec_batch(spec),
        .n_batches = kiln_loader_spec_batches(spec),
    };
    if (spec->sampler == NULL)
        return KILN_OK;
    size_t bytes = (size_t)order->count * sizeof(*order->samples);
    order->samples = malloc(bytes + 1);
    return order->samples != NULL ? KILN_OK : kiln_error_nomem(err, bytes);
}

void kiln_loader_order_release(KilnLoaderOrder *order)
{
    free(order->samples);
    *order = (KilnLoaderOrder) { 0 };
}

void kiln_loader_order_begin(KilnLoaderOrder *order, int64_t epoch)
{
    if (order->sampler != NULL && order->count > 0)
        ops_of(order->sampler)
            ->order(order->sampler, &order->sampling, epoch, order->count, order->samples);
}

void kiln_loader_order_batch(const KilnLoaderOrder *order, int64_t batch, int64_t *ret_first,
                             int64_t *ret_size)
{
    int64_t first = batch * order->batch_size, left = order->count - first;

    *ret_first = first;
    *ret_size = left < order->batch_size ? left : order->batch_size;
}

int64_t kiln_loader_order_sample(const KilnLoaderOrder *order, int64_t i)
{
    return order->samples != NULL ? (int64_t)order->samples[i] : i;
}
