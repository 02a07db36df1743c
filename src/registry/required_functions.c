/* Checks a component's table for functions that kiln calls without asking whether they are there.
 */
#include "registry/required_functions.h"

#include <string.h>

#include "kiln_embed.h"

typedef void Function(void);

/* A function of a kind, or one of two. */
typedef struct Required {
    KilnKind kind;
    const char *name, *other; /* `other` NULL: only `name` will do */
    size_t offset, other_offset;
} Required;

#define NEEDS(K, T, member)                                                                        \
    {                                                                                              \
        KILN_KIND_##K, #member, NULL, offsetof(T, member), 0                                       \
    }
#define NEEDS_ONE(K, T, a, b)                                                                      \
    {                                                                                              \
        KILN_KIND_##K, #a, #b, offsetof(T, a), offsetof(T, b)                                      \
    }

static const Required required[] = {
    NEEDS(DATAMODULE, KilnDataModuleOps, setup),
    NEEDS(DATAMODULE, KilnDataModuleOps, spec),
    NEEDS(DATAMODULE, KilnDataModuleOps, dataset),
    NEEDS(DATAMODULE, KilnDataModuleOps, loading),
    NEEDS(MODULE, KilnModuleOps, setup),
    NEEDS_ONE(MODULE, KilnModuleOps, training_step, manual_step),
    NEEDS(MODEL, KilnModelOps, setup),
    NEEDS(MODEL, KilnModelOps, forward),
    NEEDS(LOSS, KilnLossOps, loss),
    NEEDS(OPTIMIZER, KilnOptimizerOps, update),
    NEEDS(SCHEDULER, KilnSchedulerOps, factor),
    NEEDS(LOGGER, KilnLoggerOps, open),
    NEEDS(LOGGER, KilnLoggerOps, log_metrics),
    NEEDS(METRIC, KilnMetricOps, update),
    NEEDS(METRIC, KilnMetricOps, compute),
    NEEDS_ONE(TRANSFORM, KilnTransformOps, apply, window),
    NEEDS(SAMPLER, KilnSamplerOps, order),
    NEEDS(BATCH_TRANSFORM, KilnBatchTransformOps, apply),
    NEEDS(SWEEPER, KilnSweeperOps, ask),
    NEEDS(PRUNER, KilnPrunerOps, prune),
    NEEDS(LAUNCHER, KilnLauncherOps, launch),
    NEEDS(TOKENIZER, KilnTokenizerOps, train),
    NEEDS(TOKENIZER, KilnTokenizerOps, open),
    NEEDS(TOKENIZER, KilnTokenizerOps, save),
    NEEDS(TOKENIZER, KilnTokenizerOps, encode),
    NEEDS(TOKENIZER, KilnTokenizerOps, decode),
    NEEDS(TOKENIZER, KilnTokenizerOps, size),
    NEEDS(TOKENIZER, KilnTokenizerOps, token),
    NEEDS(TOKENIZER, KilnTokenizerOps, id),
    NEEDS(TOKENIZER, KilnTokenizerOps, special),
};

static bool has(const KilnComponent *component, size_t offset)
{
    Function *function;

    memcpy(&function, (const char *)component->ops.callback + offset, sizeof(function));
    return function != NULL;
}

KilnStatus kiln_required_functions_check(const KilnComponent *component, KilnError *err)
{
    for (size_t i = 0; i < KILN_COUNT(required); i++) {
        const Required *need = &required[i];

        if (need->kind != component->kind || has(component, need->offset) ||
            (need->other != NULL && has(component, need->other_offset)))
            continue;
        return kiln_error_set(err, KILN_E_PLUGIN, "its table (ops.%s) lacks the function %s%s%s",
                              kiln_kind_name(component->kind), need->name,
                              need->other != NULL ? " or " : "",
                              need->other != NULL ? need->other : "");
    }
    return KILN_OK;
}
