/* Flat functions for components of the caller (see kiln/flat/config.h): callbacks, metrics and
 * datamodules with options tables, whose work function pointers do. They are components like any
 * other: named in configs, checked, and shown.
 *
 * All functions of a component that can fail return KilnStatus and fill `err`
 * (kiln_flat_error_set).
 */
#ifndef KILN_KILN_FLAT_COMPONENT_H
#define KILN_KILN_FLAT_COMPONENT_H

#include "kiln/embed/registry.h"
#include "kiln/flat/data.h"

typedef struct KilnFlatComponent KilnFlatComponent;

/* Make what an instance is for the caller: *ret is passed to all other functions. `path` is its
 * place in the config ("callbacks.mine"), `options` a JSON object of its options' values. */
typedef KilnStatus KilnFlatCreate(void *ctx, const char *path, const char *options, void **ret,
                                  KilnError *err);
/* It is not needed any more. */
typedef void KilnFlatDestroy(void *ctx, void *object);

/* A component of kind "callback", "metric" or "datamodule" with a name and a line for --help, both
 * copied. Owned by the caller (kiln_flat_component_free), and must outlive the registries that it
 * is added to. `ctx` goes to the two functions. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_component_new(const char *kind, const char *name,
                                                           const char *summary,
                                                           KilnFlatCreate *create,
                                                           KilnFlatDestroy *destroy, void *ctx,
                                                           KilnFlatComponent **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_flat_component_free(KilnFlatComponent *component);
/* Add an option. `type` is "bool", "int", "float" or "str"; with a ? null is allowed ("int?"), with
 * [] it is a list ("int[]"). `value` is the default as YAML, NULL: required. `choices` (of "str"):
 * the words that are allowed, NULL-terminated; NULL: any. Texts are copied. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_component_option(KilnFlatComponent *component,
                                                              const char *name, const char *type,
                                                              const char *value,
                                                              const char *const *choices,
                                                              const char *help, KilnError *err);
/* Register it; no option can be added after. Errors are those of kiln_registry_add. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_component_add(KilnFlatComponent *component,
                                                           KilnRegistry *registry, KilnError *err);

/* ---- Callbacks ------------------------------------------------------------------------------- */

/* A hook of KilnCallbackOps that gets the trainer, called by its name ("on_train_epoch_end"). */
typedef KilnStatus KilnFlatHook(void *object, const char *hook, KilnTrainer *trainer,
                                KilnError *err);
/* Save the state to a checkpoint, and load it (kiln_state_set_str, kiln_state_get_str, ...). */
typedef KilnStatus KilnFlatSave(void *object, KilnState *state, KilnError *err);
typedef KilnStatus KilnFlatLoad(void *object, const KilnState *state, KilnError *err);

/* Have a callback called in that hook. KILN_E_KEY: there is no such hook. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_callback_hook(KilnFlatComponent *component,
                                                           const char *hook, KilnFlatHook *call,
                                                           KilnError *err);
/* Say that it logs a value, and which of them are better ("min", "max", "auto": unknown), so that
 * others can monitor it. KILN_E_RANGE: another mode. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_callback_logs(KilnFlatComponent *component,
                                                           const char *name, const char *mode,
                                                           KilnError *err);
/* Have its state saved. */
KILN_API void kiln_flat_callback_state(KilnFlatComponent *component, KilnFlatSave *save,
                                       KilnFlatLoad *load);

/* ---- Metrics --------------------------------------------------------------------------------- */

/* The value of an epoch's rows: scores [rows, width]; truth is labels, i32 [rows], for metrics of
 * classes, and targets, f32 [rows, width], for those of values. It reports with
 * kiln_metric_state_report. */
typedef KilnStatus KilnFlatCompute(void *object, KilnMetricState *state, int64_t rows,
                                   int64_t width, const float *scores, const void *truth,
                                   KilnError *err);

/* What a metric takes, "classes" or "values"; and which values are better, "max", "min" or "auto".
 * Rows are kept until the end of the epoch, in checkpoints, too. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_metric_ops(KilnFlatComponent *component,
                                                        const char *takes, const char *mode,
                                                        KilnFlatCompute *compute, KilnError *err);

/* ---- Datamodules ----------------------------------------------------------------------------- */

/* Describe the data: features, classes, the samples of each split; arrays that are given must live
 * as long as the object. `stage` is "fit", "validate" or "test". */
typedef KilnStatus KilnFlatSetup(void *object, const char *stage, uint64_t seed, KilnFlatData *data,
                                 KilnError *err);
/* Write a sample of a split without arrays: to[i] has room for feature i in its own type, NULL if
 * that is not needed; lengths[i] is to be set for varying ones. Called from several threads. */
typedef KilnStatus KilnFlatGet(void *object, const char *split, int64_t index, void *const *to,
                               int64_t *lengths, KilnError *err);

/* The functions of a datamodule. Batches, samplers and buckets are options that it has like every
 * other; predictions take arrays of its features. `get` may be NULL if all splits have arrays. */
KILN_API void kiln_flat_datamodule_ops(KilnFlatComponent *component, KilnFlatSetup *setup,
                                       KilnFlatGet *get);

#endif
