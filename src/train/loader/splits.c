/* The data of a run: the sets of samples of its splits, their limits and their loaders. */
#include "train/loader/splits.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "registry/instance.h"
#include "train/loader/prepare_data.h"
#include "train/step/manual.h"
#include "train/step/module_data.h"
#include "train/trainer.h"

static const KilnDataModuleOps *data_ops(const KilnTrainer *trainer)
{
    return kiln_instance_component(trainer->datamodule)->ops.datamodule;
}

/* ---- Sets ------------------------------------------------------------------------------ */

/* A set's name becomes part of metric names (val/loss/night). */
static KilnStatus check_name(const KilnTrainer *trainer, const KilnSplitSets *sets, size_t set,
                             KilnSplit split, KilnError *err)
{
    const char *name = sets->list[set].name;
    bool taken = false;

    for (size_t i = 0; i < set; i++)
        taken = taken || strcmp(sets->list[i].name, name) == 0;
    if (!taken && (set == 0 || name[0] != '\0') && strpbrk(name, "/ \t\n") == NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "datamodule %s: %s set %zu is named \"%s\": expected a unique name "
                          "without slashes and blanks, as it becomes part of metric names",
                          kiln_instance_name(trainer->datamodule), kiln_split_name(split), set + 1,
                          name);
}

static KilnStatus check_sets(const KilnTrainer *trainer, KilnSplit split, size_t n, KilnError *err)
{
    const size_t max = split == KILN_TRAIN ? 1 : KILN_MAX_SETS;

    if (n >= 1 && n <= max)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "datamodule %s has %zu sets of %s samples; 1 to %zu are possible",
                          kiln_instance_name(trainer->datamodule), n, kiln_split_name(split), max);
}

/* Ask the datamodule for the number of a split's sets and their names. */
static KilnStatus name_sets(KilnTrainer *trainer, KilnSplit split, KilnError *err)
{
    const KilnDataModuleOps *ops = data_ops(trainer);
    KilnSplitSets *sets = &trainer->data.sets[split];
    const char *const *names = NULL;
    kiln_call_enter(trainer->datamodule, "sets");
    const size_t n = ops->sets != NULL ? ops->sets(trainer->datamodule, split, &names) : 1;
    kiln_call_leave();
    KilnStatus status = check_sets(trainer, split, n, err);

    for (size_t i = 0; status >= 0 && i < n; i++) {
        sets->list[i].name = names != NULL ? names[i] : "";
        if (split == KILN_TRAIN && trainer->stage == KILN_STAGE_VALIDATE)
            sets->list[i].name = "train"; /* its metrics are not the validation set's */
        status = check_name(trainer, sets, i, split, err);
        sets->n = i + 1;
    }
    return status;
}

static KilnQuantity limit_of(const KilnTrainer *trainer, KilnSplit split)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    return trainer->stage == KILN_STAGE_PREDICT ? options->limit_predict_batches
           : split == KILN_TRAIN                ? options->limit_train_batches
           : split == KILN_VAL                  ? options->limit_val_batches
                                                : options->limit_test_batches;
}

/* A split that is limited to nothing stays closed. */
KilnStatus kiln_trainer_open_split(KilnTrainer *trainer, KilnSplit split, KilnError *err)
{
    const KilnDataModuleOps *ops = data_ops(trainer);
    KilnSplitSets *sets = &trainer->data.sets[split];
    const bool wanted = split == KILN_TRAIN || limit_of(trainer, split).value > 0.0;
    KilnStatus status = KILN_OK;

    if (sets->opened || !wanted)
        return KILN_OK;
    for (size_t i = 0; i < sets->n && status >= 0; i++)
        status = KILN_CALLED(
            trainer->datamodule, "dataset",
            ops->dataset(trainer->datamodule, split, i, &sets->list[i].dataset, err), err);
    sets->opened = status >= 0;
    return status;
}

int64_t kiln_trainer_train_samples(const KilnTrainer *trainer)
{
    return trainer->data.sets[KILN_TRAIN].list[0].dataset.count;
}

/* Read all samples of a set into a table. */
static KilnStatus make_table(KilnTrainer *trainer, KilnSplit split, size_t set,
                             const KilnTable **ret, KilnError *err)
{
    KilnTable **made = &trainer->data.sets[split].list[set].made;
    KilnStatus status = KILN_OK;

    if (*made == NULL)
        status = KILN_CALLED(trainer->datamodule, "get",
                             kiln_table_new(&trainer->data.spec,
                                            &trainer->data.sets[split].list[set].dataset, made,
                                            err),
                             err);
    if (status >= 0)
        *ret = *made;
    return status;
}

KilnStatus kiln_trainer_table(KilnTrainer *trainer, KilnSplit split, size_t set,
                              const KilnTable **ret, KilnError *err)
{
    const KilnDataModuleOps *ops = data_ops(trainer);

    if (set >= trainer->data.sets[split].n)
        return kiln_error_set(err, KILN_E_MISSING, "datamodule %s has no %s set %zu",
                              kiln_instance_name(trainer->datamodule), kiln_split_name(split), set);
    if (ops->table == NULL)
        return make_table(trainer, split, set, ret, err);
    KilnTable *table = &trainer->data.sets[split].list[set].table;
    *table = (KilnTable) { .n_rows = 0 };
    KilnStatus status = KILN_CALLED(trainer->datamodule, "table",
                                    ops->table(trainer->datamodule, split, set, table, err), err);
    if (status >= 0)
        *ret = table;
    return status;
}

/* ---- Batches --------------------------------------------------------------------------- */

KilnSplit kiln_trainer_eval_split(const KilnTrainer *trainer, KilnPhase phase)
{
    if (trainer->stage != KILN_STAGE_FIT)
        return trainer->split;
    return phase == KILN_PHASE_TEST ? KILN_TEST : KILN_VAL;
}

/* Batches without data that a set has in an epoch, of a module that reads whole sets; 0: batches
 * have data. */
static int64_t whole_batches(const KilnTrainer *trainer, KilnSplit split)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;

    if (ops->whole_sets == NULL || trainer->stage == KILN_STAGE_PREDICT)
        return 0;
    if (split != KILN_TRAIN || trainer->stage != KILN_STAGE_FIT)
        return 1;
    kiln_call_enter(trainer->module, "whole_sets");
    const int64_t n = ops->whole_sets(trainer->module);
    kiln_call_leave();
    return n;
}

/* Refuse what would change the samples of a module that reads whole sets. */
static KilnStatus check_whole(const KilnTrainer *trainer, KilnError *err)
{
    const KilnLoading *loading = &trainer->data.loading;
    const KilnTrainerOptions *options = trainer->options.trainer;
    const KilnSamplerOps *sampler = loading->sampler != NULL
                                        ? kiln_instance_component(loading->sampler)->ops.sampler
                                        : NULL;
    const char *option = sampler != NULL && sampler->count != NULL ? "datamodule.sampler"
                         : loading->batch_transforms_count > 0     ? "datamodule.batch_transforms"
                         : options->overfit_batches.value > 0.0    ? "trainer.overfit_batches"
                         : options->reload_dataloaders_every_n_epochs > 0
                             ? "trainer.reload_dataloaders_every_n_epochs"
                         : kiln_trainer_world(trainer) > 1 ? "trainer.strategy"
                                                           : NULL;

    if (whole_batches(trainer, KILN_TRAIN) == 0 || option == NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "%s: task %s reads the whole training set at once, in one process; "
                          "remove the option",
                          option, kiln_instance_name(trainer->module));
}

/* The spec of a set's loader, without a limit. Evaluation takes all samples in order. */
static KilnLoaderSpec set_spec(const KilnTrainer *trainer, KilnSplit split, size_t set)
{
    const bool overfits = trainer->options.trainer->overfit_batches.value > 0.0;
    const bool trains = split == KILN_TRAIN && trainer->stage == KILN_STAGE_FIT;
    const int64_t whole = whole_batches(trainer, split);

    if (whole > 0)
        return (KilnLoaderSpec) {
            .data = &trainer->data.spec,
            .dataset = trainer->data.sets[split].list[set].dataset,
            .datamodule = trainer->datamodule,
            .batch_size = 1,
            .limit = -1,
            .whole = whole,
        };
    return (KilnLoaderSpec) {
        .data = &trainer->data.spec,
        .dataset = trainer->data.sets[split].list[set].dataset,
        .datamodule = trainer->datamodule,
        .split = kiln_split_name(split),
        .batch_size = trainer->data.batch_size,
        .limit = -1,
        .seed = (uint64_t)trainer->options.root->seed,
        .drop_last = trains && trainer->data.loading.drop_last,
        .sampler = trains && !overfits ? trainer->data.loading.sampler : NULL,
        .batch_transforms = trainer->data.loading.batch_transforms,
        .n_batch_transforms = trains ? trainer->data.loading.batch_transforms_count : 0,
        .buckets = trainer->data.loading.buckets,
        .n_buckets = trainer->data.loading.buckets_count,
        .max_tokens = trainer->data.loading.max_tokens,
        .by_length = trains && trainer->data.loading.buckets_count > 0,
        .workers = (int)trainer->options.trainer->num_workers,
        /* Ranks stop together, between rounds. */
        .stop = kiln_ranks_several(&trainer->ranks) ? NULL : trainer->env->stop,
        .pause = trainer->env->save,
        .poll = &trainer->poll,
    };
}

static int64_t all_batches(const KilnTrainer *trainer, KilnSplit split, size_t set)
{
    KilnLoaderSpec spec = set_spec(trainer, split, set);

    return kiln_loader_spec_batches(&spec);
}

/* A module that drives its own steps must do so on all ranks at once. */
static bool needs_whole_rounds(const KilnTrainer *trainer, KilnSplit split)
{
    return split == KILN_TRAIN && trainer->stage == KILN_STAGE_FIT &&
           kiln_trainer_is_manual(trainer);
}

int64_t kiln_trainer_set_batches(const KilnTrainer *trainer, KilnSplit split, size_t set)
{
    const KilnLoader *loader = trainer->data.sets[split].list[set].loader;

    if (loader != NULL)
        return kiln_loader_batches(loader);
    const int64_t n = kiln_quantity_of(limit_of(trainer, split), all_batches(trainer, split, set));
    return needs_whole_rounds(trainer, split) ? n - n % kiln_trainer_world(trainer) : n;
}

int64_t kiln_trainer_split_batches(const KilnTrainer *trainer, KilnSplit split)
{
    int64_t sum = 0;

    for (size_t set = 0; set < trainer->data.sets[split].n; set++)
        sum += kiln_trainer_set_batches(trainer, split, set);
    return sum;
}

int64_t kiln_trainer_set_samples(const KilnTrainer *trainer, KilnSplit split, size_t set)
{
    const int64_t batches = kiln_trainer_set_batches(trainer, split, set);
    const int64_t most = batches * trainer->data.batch_size;
    const int64_t all = trainer->data.sets[split].list[set].dataset.count;

    return most < all && (batches == 0 || whole_batches(trainer, split) == 0) ? most : all;
}

KilnBatch kiln_trainer_shape_batch(const KilnTrainer *trainer, KilnSplit split, size_t set)
{
    KilnLoaderSpec spec = set_spec(trainer, split, set);

    spec.by_length = false; /* the longest samples */
    return (KilnBatch) {
        .dataset = &trainer->data.sets[split].list[set].dataset,
        .size = spec.dataset.count > 0 ? kiln_loader_spec_batch_size(&spec)
                                       : trainer->data.batch_size,
    };
}

KilnStatus kiln_trainer_check_limit(const KilnTrainer *trainer, KilnSplit split, size_t set,
                                    KilnError *err)
{
    static const char *const names[] = { "limit_train_batches", "limit_val_batches",
                                         "limit_test_batches" };
    const bool overfits = trainer->options.trainer->overfit_batches.value > 0.0;
    const char *name = trainer->stage == KILN_STAGE_PREDICT ? "limit_predict_batches"
                       : overfits && split != KILN_TEST     ? "overfit_batches"
                                                            : names[split];
    int64_t n = 0;

    return kiln_loop_limit_batches(name, limit_of(trainer, split), all_batches(trainer, split, set),
                                   &n, err);
}

/* ---- Loaders ---------------------------------------------------------------------------- */

/* Count a sample that can't be read, and warn of the first for each reason. */
static void count_skipped(void *ctx, const KilnSkip *skip)
{
    KilnTrainer *trainer = ctx;
    KilnLeftOut *skipped = &trainer->data.skipped;
    const size_t before = skipped->n;
    char number[32];

    skipped->arena = &trainer->data.skipped_memory;
    snprintf(number, sizeof(number), "number %lld", (long long)skip->sample);
    const bool counted = kiln_left_out_add(skipped, "samples", skip->message + skip->reason, NULL,
                                           skip->name != NULL ? skip->name : number);
    if (!counted || skipped->n > before)
        kiln_output_print(&trainer->output,
                          "warning: sample left out: %s (others with this error are counted)",
                          skip->message);
}

KilnLoaderSpec kiln_trainer_loader_spec(KilnTrainer *trainer, KilnSplit split, size_t set)
{
    KilnLoaderSpec spec = set_spec(trainer, split, set);

    spec.limit = kiln_trainer_set_batches(trainer, split, set);
    spec.on_skip = count_skipped;
    spec.ctx = trainer;
    return spec;
}

KilnStatus kiln_trainer_loader(KilnTrainer *trainer, KilnSplit split, size_t set, KilnLoader **ret,
                               KilnError *err)
{
    KilnLoader **loader = &trainer->data.sets[split].list[set].loader;
    KilnStatus status = *loader == NULL ? kiln_trainer_check_limit(trainer, split, set, err)
                                        : KILN_OK;

    if (status >= 0 && *loader == NULL && kiln_trainer_set_batches(trainer, split, set) > 0) {
        KilnLoaderSpec spec = kiln_trainer_loader_spec(trainer, split, set);

        spec.rank = trainer->ranks.rank;
        spec.world = trainer->ranks.world;
        status = kiln_loader_new(&spec, loader, err);
    }
    if (status >= 0)
        *ret = *loader;
    return status;
}

/* ---- Set-up ---------------------------------------------------------------------------- */

/* Read the accumulation of batches that a callback schedules (gradient_accumulation_scheduler). */
static KilnStatus set_accumulation(KilnTrainer *trainer, KilnError *err)
{
    const KilnInstance *from = NULL;

    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        const KilnInstance *callback = trainer->callbacks[i];
        const KilnCallbackOps *ops = kiln_instance_component(callback)->ops.callback;

        if (ops->accumulation == NULL)
            continue;
        if (from != NULL || trainer->schedule.accumulate != 1 || kiln_trainer_is_manual(trainer))
            return kiln_error_set(err, KILN_E_RANGE, "%s sets how many batches make a step, %s",
                                  kiln_instance_path(callback),
                                  from != NULL ? "and so does another callback: remove one of them"
                                  : kiln_trainer_is_manual(trainer)
                                      ? "but the task drives its own steps (manual optimization)"
                                      : "and so does trainer.accumulate_grad_batches: remove one "
                                        "of them");
        from = callback;
        kiln_call_enter(callback, "accumulation");
        trainer->schedule.n_changes = ops->accumulation(callback, &trainer->schedule.changes);
        kiln_call_leave();
    }
    return KILN_OK;
}

/* Make the loop's schedule from the number of batches. */
static KilnStatus set_schedule(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_trainer_check_limit(trainer, KILN_TRAIN, 0, err);

    for (size_t set = 0; set < trainer->data.sets[KILN_VAL].n && status >= 0; set++)
        status = kiln_trainer_check_limit(trainer, KILN_VAL, set, err);
    if (status >= 0)
        status = kiln_loop_schedule_make(trainer->options.trainer,
                                         kiln_trainer_split_batches(trainer, KILN_TRAIN),
                                         kiln_trainer_split_batches(trainer, KILN_VAL),
                                         kiln_trainer_world(trainer), &trainer->schedule, err);
    return status >= 0 ? set_accumulation(trainer, err) : status;
}

static KilnStatus set_train_features(KilnTrainer *trainer, const KilnLoaderSpec *spec,
                                     KilnError *err)
{
    const size_t bytes = (trainer->data.spec.n_features + 1) * sizeof(KilnFeature);

    free(trainer->data.train_features);
    trainer->data.train_features = malloc(bytes);
    if (trainer->data.train_features == NULL)
        return kiln_error_nomem(err, bytes);
    return kiln_loader_spec_features(spec, trainer->data.train_features, &trainer->data.train_spec,
                                     err);
}

/* Set up the sampler and the features of training batches. */
static KilnStatus set_up_batches(KilnTrainer *trainer, KilnError *err)
{
    KilnLoaderSpec spec = set_spec(trainer, KILN_TRAIN, 0);
    KilnStatus status = check_whole(trainer, err);

    if (status >= 0)
        status = kiln_sampler_setup(&spec, err);

    if (status >= 0)
        status = set_train_features(trainer, &spec, err);
    if (status >= 0 && kiln_loader_spec_batches(&spec) < 1)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "datamodule.drop_last leaves no batch to train on: an epoch has "
                                "%lld samples, a batch %lld; lower datamodule.batch_size",
                                (long long)spec.dataset.count, (long long)trainer->data.batch_size);
    if (status >= 0 && needs_whole_rounds(trainer, KILN_TRAIN) &&
        kiln_loader_spec_batches(&spec) < kiln_trainer_world(trainer))
        status = kiln_error_set(err, KILN_E_RANGE,
                                "an epoch has %lld batches for %d ranks, and manual optimization "
                                "needs one for each; lower datamodule.batch_size",
                                (long long)kiln_loader_spec_batches(&spec),
                                kiln_trainer_world(trainer));
    return status;
}

/* Open the splits of a fit and set up training on them. */
static KilnStatus set_up_fit(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_trainer_open_split(trainer, KILN_TRAIN, err);

    if (status >= 0)
        status = kiln_trainer_open_split(trainer, KILN_VAL, err);
    if (status >= 0 && trainer->options.root->test)
        status = kiln_trainer_open_split(trainer, KILN_TEST, err);
    if (status >= 0 && kiln_trainer_train_samples(trainer) < 1)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "datamodule %s has no training samples; check its options",
                                kiln_instance_name(trainer->datamodule));
    if (status >= 0)
        status = set_up_batches(trainer, err);
    return status >= 0 ? set_schedule(trainer, err) : status;
}

static KilnStatus check_reload(const KilnTrainer *trainer, KilnError *err)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    if (options->reload_dataloaders_every_n_epochs == 0 || data_ops(trainer)->reload != NULL)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "trainer.reload_dataloaders_every_n_epochs=%lld: datamodule %s can't "
                          "reload its data",
                          (long long)options->reload_dataloaders_every_n_epochs,
                          kiln_instance_name(trainer->datamodule));
}

/* The stage that the datamodule prepares for: predicting a split reads it as evaluation does. */
static KilnStage data_stage(const KilnTrainer *trainer, const KilnDataSpec *remembered)
{
    if (trainer->stage != KILN_STAGE_PREDICT || remembered != NULL)
        return trainer->stage;
    return trainer->split == KILN_TEST ? KILN_STAGE_TEST : KILN_STAGE_VALIDATE;
}

static KilnStatus set_up_class_counts(KilnTrainer *trainer, KilnError *err)
{
    KilnClassCounts *counts = calloc(1, sizeof(*counts));

    if (counts == NULL)
        return kiln_error_nomem(err, sizeof(*counts));
    counts->spec = &trainer->data.spec;
    if (trainer->stage == KILN_STAGE_FIT)
        counts->train = &trainer->data.sets[KILN_TRAIN].list[0].dataset;
    kiln_class_counts_read(counts, trainer->saved_class_counts);
    trainer->data.class_counts = counts;
    return KILN_OK;
}

KilnStatus kiln_splits_set_up(KilnTrainer *trainer, const KilnDataSpec *remembered, KilnError *err)
{
    const KilnStage stage = data_stage(trainer, remembered);
    KilnDataContext context = {
        .stage = stage,
        .seed = (uint64_t)trainer->options.root->seed,
        .remembered = remembered,
        .poll = &trainer->poll,
        .fitted = trainer->fitted,
        .data = trainer->env->data,
    };
    KilnStatus status = KILN_OK;

    kiln_call_enter(trainer->datamodule, "loading");
    data_ops(trainer)->loading(trainer->datamodule, &trainer->data.loading);
    kiln_call_leave();
    trainer->data.batch_size = trainer->data.loading.batch_size;
    if (trainer->data.batch_size < 1)
        return kiln_error_set(err, KILN_E_RANGE,
                              "datamodule/%s: its `loading` gives batches of %lld samples; fill "
                              "*ret with KILN_LOADING(opts)",
                              kiln_instance_name(trainer->datamodule),
                              (long long)trainer->data.batch_size);
    if (!trainer->data.taken)
        status = kiln_data_set_up(trainer, &context, err);
    if (status < 0)
        return status;
    status = KILN_CALLED(trainer->datamodule, "spec",
                         data_ops(trainer)->spec(trainer->datamodule, &trainer->data.spec, err),
                         err);
    if (status >= 0)
        status = kiln_spec_check(&trainer->data.spec, err);
    if (status >= 0)
        status = kiln_datamodule_check_spec(trainer->datamodule, &trainer->data.spec, err);
    if (status < 0)
        return kiln_instance_error(trainer->config, trainer->datamodule, err);
    status = set_up_class_counts(trainer, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && stage != KILN_STAGE_PREDICT && status >= 0;
         split++)
        status = name_sets(trainer, (KilnSplit)split, err);
    if (status >= 0 && stage == KILN_STAGE_FIT)
        status = check_reload(trainer, err);
    return status >= 0 && stage == KILN_STAGE_FIT ? set_up_fit(trainer, err) : status;
}

/* Free all loaders and forget the datasets. */
static void close_splits(KilnTrainer *trainer)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        for (size_t set = 0; set < trainer->data.sets[split].n; set++) {
            kiln_loader_free(trainer->data.sets[split].list[set].loader);
            kiln_table_free(trainer->data.sets[split].list[set].made);
        }
        trainer->data.sets[split] = (KilnSplitSets) { 0 };
    }
}

static void forget_skipped(KilnTrainer *trainer)
{
    trainer->data.skipped = (KilnLeftOut) { 0 };
    kiln_arena_release(&trainer->data.skipped_memory);
}

KilnStatus kiln_splits_reload(KilnTrainer *trainer, KilnError *err)
{
    const int64_t n = trainer->options.trainer->reload_dataloaders_every_n_epochs;
    const int64_t due = n > 0 ? trainer->at.epoch - trainer->at.epoch % n : 0;
    KilnStatus status = KILN_OK;

    if (due == trainer->data.loaded_epoch)
        return KILN_OK;
    close_splits(trainer);
    forget_skipped(trainer);
    status = KILN_CALLED(trainer->datamodule, "reload",
                         data_ops(trainer)->reload(trainer->datamodule, due, err), err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = name_sets(trainer, (KilnSplit)split, err);
    if (status >= 0)
        status = set_up_fit(trainer, err);
    trainer->data.loaded_epoch = due;
    kiln_preparation_end(trainer);
    return status < 0 ? kiln_error_prefix(err, "reloading data for epoch %lld: ", (long long)due)
                      : KILN_OK;
}

void kiln_splits_release(KilnTrainer *trainer)
{
    close_splits(trainer);
    forget_skipped(trainer);
    kiln_input_close(&trainer->data.input);
    free(trainer->data.train_features);
    if (trainer->data.class_counts != NULL)
        kiln_class_counts_release(trainer->data.class_counts);
    free(trainer->data.class_counts);
}
