/* Results that no recorded step can give: sequences that are decoded token by token, texts, metrics
 * of them. A module makes them in finish_step (kiln/module.h), from the batch of the step that has
 * just run, with further steps of its own. */
#ifndef KILN_ROW_RESULTS_H
#define KILN_ROW_RESULTS_H

#include "kiln/metric.h"
#include "kiln/module.h"

/* ---- The step that has run ---------------------------------------------------------------------
 */

/* "validate", "test" or "predict". */
KILN_API const char *kiln_results_phase(const KilnResults *results);
/* Samples of the batch. */
KILN_API int64_t kiln_results_size(const KilnResults *results);
/* The index of row `row` in its set of samples. */
KILN_API int64_t kiln_results_sample(const KilnResults *results, int64_t row);
/* The lengths of a varying feature, [size]; NULL: the batch does not have it. */
KILN_API const int32_t *kiln_results_lengths(const KilnResults *results, const char *name);
/* A row's text feature; NULL: it has none. */
KILN_API const char *kiln_results_text(const KilnResults *results, const char *name, int64_t row);
/* The values of a numeric feature, [size, ...] in *ret as they are padded; NULL: the batch does not
 * have it. Valid until finish_step returns. */
KILN_API const void *kiln_results_values(const KilnResults *results, const char *name,
                                         KilnShape *ret);
/* While a step is recorded: keep what it computes as `value`, of any type and shape, for
 * finish_step; f64 is rounded to f32. `name` is static. Unlike an output, it is no part of
 * predictions. */
KILN_API void kiln_step_keep(KilnStep *step, const char *name, KilnTensor *value);
/* What the step kept under `name`, with its shape; NULL: nothing. Valid until finish_step returns.
 */
KILN_API const void *kiln_results_kept(const KilnResults *results, const char *name,
                                       KilnShape *ret);
/* The datamodule's tokenizer (KilnDataModuleOps.tokenizer); NULL: it has none. */
KILN_API const KilnInstance *kiln_results_tokenizer(const KilnResults *results);

/* ---- Further steps -----------------------------------------------------------------------------
 */

/* Begin to record a step without training over the same batch, in f32 (in f64 if the run computes
 * in it); tensors of earlier ones become invalid. kiln_results_run must follow. With several
 * threads, one at a time is between the two. */
KILN_API KilnStep *kiln_results_begin(KilnResults *results);
/* Compute tensors of that step. */
KILN_API KILN_NODISCARD KilnStatus kiln_results_run(KilnResults *results,
                                                    KilnTensor *const *tensors, size_t n,
                                                    KilnError *err);

/* ---- What they lead to -------------------------------------------------------------------------
 */

/* Give row `row` the result `name`, a JSON value as text ("\"Hallo\"", "-0.25", "[1, 2]").
 * Predictions have it beside the step's outputs. `name` is static; the value is copied. */
KILN_API KILN_NODISCARD KilnStatus kiln_results_set(KilnResults *results, const char *name,
                                                    int64_t row, const char *json, KilnError *err);

/* In a step of evaluation: declare that finish_step adds rows to `metric`, of sequences, rankings
 * or detections, which is logged as kiln_step_metric logs others. */
KILN_API void kiln_step_sequence_metric(KilnStep *step, KilnInstance *metric, unsigned flags);
/* Add rows to it. Nothing happens in predictions. */
KILN_API KILN_NODISCARD KilnStatus kiln_results_metric(KilnResults *results, KilnInstance *metric,
                                                       const KilnMetricRows *rows, KilnError *err);

#endif
