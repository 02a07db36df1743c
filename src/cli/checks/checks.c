/* The table of checks. */
#include "cli/checks/checks.h"

#define KIND(name) (1u << KILN_KIND_##name)
/* Kinds that a run of `train` uses. */
#define IN_RUNS                                                                                    \
    (KIND(DATAMODULE) | KIND(MODULE) | KIND(MODEL) | KIND(LOSS) | KIND(OPTIMIZER) |                \
     KIND(SCHEDULER) | KIND(CALLBACK) | KIND(LOGGER) | KIND(METRIC) | KIND(SAMPLER) |              \
     KIND(BATCH_TRANSFORM) | KIND(STRATEGY))

/* Kinds whose config files no run has. */
#define LAUNCHED (KIND(SWEEPER) | KIND(PRUNER) | KIND(LAUNCHER))

static const KilnContractCheck checks[] = {
    { "options", kiln_contract_options, 0, KILN_NEEDS_NOTHING, KILN_NEEDS_NOTHING },
    { "building", kiln_contract_building, 0, KILN_NEEDS_NOTHING, KILN_NEEDS_INSTANCE },
    { "memory", kiln_contract_leaks, 0, KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "config files", kiln_contract_config_files, ~LAUNCHED, KILN_NEEDS_INSTANCE,
      KILN_NEEDS_NOTHING },
    { "samples", kiln_contract_samples, KIND(DATAMODULE), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "images", kiln_contract_images, KIND(TRANSFORM), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "order", kiln_contract_order, KIND(SAMPLER), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "batches", kiln_contract_batches, KIND(BATCH_TRANSFORM), KILN_NEEDS_INSTANCE,
      KILN_NEEDS_NOTHING },
    { "update", kiln_contract_update, KIND(OPTIMIZER), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "factors", kiln_contract_factors, KIND(SCHEDULER), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "values", kiln_contract_values, KIND(METRIC), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "loss", kiln_contract_loss, KIND(LOSS), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "texts", kiln_contract_texts, KIND(TOKENIZER), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "search", kiln_contract_search, KIND(SWEEPER) | KIND(PRUNER), KILN_NEEDS_INSTANCE,
      KILN_NEEDS_NOTHING },
    { "jobs", kiln_contract_jobs, KIND(LAUNCHER), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "ranks", kiln_contract_ranks, KIND(STRATEGY), KILN_NEEDS_INSTANCE, KILN_NEEDS_NOTHING },
    { "training", kiln_contract_training, IN_RUNS, KILN_NEEDS_INSTANCE, KILN_NEEDS_RUN },
    { "predicting", kiln_contract_predicting, KIND(DATAMODULE), KILN_NEEDS_RUN,
      KILN_NEEDS_NOTHING },
    { "gradients", kiln_contract_gradients, KIND(MODEL) | KIND(MODULE), KILN_NEEDS_RUN,
      KILN_NEEDS_NOTHING },
    { "same bytes", kiln_contract_same_bytes, IN_RUNS, KILN_NEEDS_RUN, KILN_NEEDS_NOTHING },
    { "two threads", kiln_contract_threads, IN_RUNS, KILN_NEEDS_RUN, KILN_NEEDS_NOTHING },
    { "resuming", kiln_contract_resuming, IN_RUNS, KILN_NEEDS_RUN, KILN_NEEDS_NOTHING },
    { "killed", kiln_contract_killed, IN_RUNS, KILN_NEEDS_RUN, KILN_NEEDS_NOTHING },
    { "memory of runs", kiln_contract_run_leaks, IN_RUNS, KILN_NEEDS_RUN, KILN_NEEDS_NOTHING },
};

const KilnContractCheck *kiln_contract_check_at(size_t i)
{
    return i < KILN_COUNT(checks) ? &checks[i] : NULL;
}
