/* A user's file or folder as a dataset. */
#include "train/loader/input.h"

#include "base/call.h"

static KilnStatus input_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                            KilnError *err)
{
    const KilnInput *input = ctx;
    const KilnRawSet *set = &input->raw.set;
    KilnRawSample raw = { 0 };
    KilnStatus status = set->get(set->ctx, index, &raw, err);

    (void)rng;
    if (status < 0)
        return status;
    status = kiln_preprocess(&input->preprocessor, &raw, sample, err);
    if (set->done != NULL)
        set->done(set->ctx, &raw);
    return status;
}

static const char *input_name(void *ctx, int64_t index)
{
    const KilnRawSet *set = &((const KilnInput *)ctx)->raw.set;

    return set->name(set->ctx, index);
}

static KilnStatus open_raw(KilnInput *input, const char *path, const KilnPoll *poll, KilnError *err)
{
    const KilnPreprocessor *preprocessor = &input->preprocessor;
    KilnInstance *datamodule = preprocessor->datamodule;
    const KilnDataModuleOps *ops = kiln_instance_component(datamodule)->ops.datamodule;

    if (ops->open_input == NULL)
        return kiln_raw_input_open(path, preprocessor->fields, preprocessor->n_fields, poll,
                                   &input->raw, err);
    return KILN_CALLED(datamodule, "open_input",
                       ops->open_input(datamodule, path, &input->raw.set, err), err);
}

KilnStatus kiln_input_open(KilnInput *input, KilnInstance *datamodule, const KilnDataSpec *spec,
                           const char *path, const KilnPoll *poll, KilnDataset *ret, KilnError *err)
{
    *input = (KilnInput) { 0 };
    KilnStatus status = kiln_preprocessor_init(&input->preprocessor, datamodule, spec, err);

    if (status >= 0)
        status = open_raw(input, path, poll, err);
    if (status < 0)
        return status;
    *ret = (KilnDataset) {
        .count = input->raw.set.count,
        .ctx = input,
        .get = input_get,
        .name = input->raw.set.name != NULL ? input_name : NULL,
        .absent = input->preprocessor.absent,
    };
    return KILN_OK;
}

void kiln_input_close(KilnInput *input)
{
    kiln_raw_input_release(&input->raw);
    kiln_preprocessor_release(&input->preprocessor);
}
