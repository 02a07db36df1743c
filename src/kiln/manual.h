/* Manual optimization: what a module's manual_step can do with a training batch. Each update is a
 * step: recorded from kiln_manual_begin on, planned once, and run by kiln_manual_update. */
#ifndef KILN_MANUAL_H
#define KILN_MANUAL_H

#include "kiln/module.h"

/* For kiln_manual_begin: no optimizer, no gradients. */
#define KILN_NO_OPTIMIZER ((size_t)-1)

/* Begin to record a step for that optimizer (its number in KilnOptimizers): only its parameters get
 * gradients. Tensors of the previous step become invalid. */
KILN_API KilnStep *kiln_manual_begin(KilnManual *manual, size_t optimizer);
/* Clip the gradients of the current update to `limit`: their common 2-norm, or each element. */
KILN_API void kiln_manual_clip_norm(KilnManual *manual, double limit);
KILN_API void kiln_manual_clip_value(KilnManual *manual, double limit);
/* Record the gradients of the scalar `loss` and the update, run the step, and add its logged values
 * to the metrics. KILN_E_NUMERIC for a loss that is not finite. */
KILN_API KILN_NODISCARD KilnStatus kiln_manual_update(KilnManual *manual, KilnTensor *loss,
                                                      KilnError *err);
/* Run the recorded step without an update. The n tensors can be read (kiln_tensor_data) until the
 * next kiln_manual_begin; while kiln_manual_planning they have no data. */
KILN_API KILN_NODISCARD KilnStatus kiln_manual_run(KilnManual *manual, KilnTensor *const *tensors,
                                                   size_t n, KilnError *err);
/* Whether this is the dry build: the batch has no data, nothing is computed, and no state may
 * change. */
KILN_API bool kiln_manual_planning(const KilnManual *manual);
/* The batch's number of samples, and the data of a feature, [batch, ...]; NULL while planning, or
 * if there is no such feature. */
KILN_API int64_t kiln_manual_batch_size(const KilnManual *manual);
KILN_API const void *kiln_manual_feature(const KilnManual *manual, const char *name);
/* The batch's random stream, keyed by seed, batches since the start, and `purpose` (KILN_RNG_USER
 * or above), so it is the same whenever the batch is trained. */
KILN_API void kiln_manual_rng(const KilnManual *manual, uint32_t purpose, KilnRng *ret);
/* Log a number of this batch; as kiln_step_log in training. */
KILN_API void kiln_manual_log(KilnManual *manual, const char *name, double value, unsigned flags);

#endif
