/* The current batch as hooks see it: its samples and the step's outputs. */
#include "train/step/row_results_state.h"
#include "train/trainer.h"

const int64_t *kiln_trainer_batch_samples(const KilnTrainer *trainer, int64_t *ret_n)
{
    const KilnBatch *batch = &trainer->step.batch;

    *ret_n = batch->samples != NULL ? batch->size : 0;
    return batch->samples;
}

const KilnDataset *kiln_trainer_dataset(const KilnTrainer *trainer)
{
    const KilnSplit split = trainer->phase == KILN_PHASE_FIT
                                ? KILN_TRAIN
                                : kiln_trainer_eval_split(trainer, trainer->phase);

    return &trainer->data.sets[split].list[trainer->eval.set].dataset;
}

const char *kiln_trainer_sample_name(const KilnTrainer *trainer, int64_t sample)
{
    const KilnDataset *dataset = kiln_trainer_dataset(trainer);

    return dataset->name != NULL && sample >= 0 && sample < dataset->count
               ? dataset->name(dataset->ctx, sample)
               : NULL;
}

const char *kiln_trainer_text(const KilnTrainer *trainer, const char *name, int64_t row)
{
    const KilnFeature *feature = kiln_spec_feature(&trainer->data.spec, name);
    const KilnBatch *batch = &trainer->step.batch;

    if (feature == NULL || feature->content != KILN_TEXT || batch->features == NULL || row < 0 ||
        row >= batch->size)
        return NULL;
    char *const *texts = batch->features[feature - trainer->data.spec.features].data;
    return texts != NULL ? texts[row] : NULL;
}

int64_t kiln_trainer_row_label(const KilnTrainer *trainer, int64_t row)
{
    const KilnFeature *feature = kiln_spec_feature(&trainer->data.spec, "label");
    int64_t n = 0;

    if (feature == NULL || feature->dtype != KILN_I32 || feature->shape.rank != 0)
        return -1;
    const int32_t *labels = kiln_trainer_feature(trainer, "label", &n);
    return labels != NULL && row >= 0 && row < n && labels[row] >= 0 &&
                   labels[row] < trainer->data.spec.n_classes
               ? labels[row]
               : -1;
}

size_t kiln_trainer_outputs(const KilnTrainer *trainer, KilnOutputView ret[KILN_STEP_OUTPUTS])
{
    const KilnStep *step = &trainer->step;

    if (!step->has_run)
        return 0;
    for (size_t i = 0; i < step->n_outputs; i++)
        ret[i] = (KilnOutputView) {
            .name = step->outputs[i].name,
            .shape = *kiln_tensor_shape(step->outputs[i].value),
            .data = kiln_tensor_data(step->outputs[i].value),
        };
    return step->n_outputs;
}

const char *kiln_trainer_result_name(const KilnTrainer *trainer, size_t i)
{
    const KilnRowResult *list;

    return i < kiln_step_results(&trainer->step, &list) ? list[i].name : NULL;
}

const char *kiln_trainer_result(const KilnTrainer *trainer, size_t i, int64_t row)
{
    const KilnRowResult *list;

    return i < kiln_step_results(&trainer->step, &list) && row >= 0 &&
                   row < trainer->step.batch.size
               ? list[i].values[row]
               : NULL;
}

size_t kiln_trainer_unread(const KilnTrainer *trainer, const KilnUnreadSample **ret)
{
    *ret = trainer->predict.unread;
    return trainer->predict.n_unread;
}
