/* Manual optimization: what a module's manual_step can do with a training batch. Each update is
 * a step of its own: recorded from kiln_manual_begin on, planned once, then run by
 * kiln_manual_update. */
#ifndef KILN_MANUAL_H
#define KILN_MANUAL_H

#include "kiln/module.h"

/* For kiln_manual_begin: no optimizer, nothing is trained. */
#define KILN_NO_OPTIMIZER ((size_t)-1)

/* Begin to record a step for the optimizer of that number in KilnOptimizers: its parameters
 * alone get gradients, all others are constants. Tensors of the step before are gone. */
KILN_API KilnStep *kiln_manual_begin(KilnManual *manual, size_t optimizer);
/* Clip the gradients of the update that is recorded now: their norm together (2-norm), or each
 * element, is at most `limit`. */
KILN_API void kiln_manual_clip_norm(KilnManual *manual, double limit);
KILN_API void kiln_manual_clip_value(KilnManual *manual, double limit);
/* Record the gradients of the scalar `loss` and the update, and run the step; what it logged
 * and counted is added to the metrics. A loss that is not finite is KILN_E_NUMERIC. */
KILN_API KILN_NODISCARD KilnStatus kiln_manual_update(KilnManual *manual, KilnTensor *loss,
                                                      KilnError *err);
/* Run what is recorded without an update. The bytes of the n tensors can be read (kiln_tensor_data)
 * until the next kiln_manual_begin; there are none while kiln_manual_planning. */
KILN_API KILN_NODISCARD KilnStatus kiln_manual_run(KilnManual *manual, KilnTensor *const *tensors,
                                                   size_t n, KilnError *err);
/* True while the batch has no bytes: nothing is computed, and no state may change. */
KILN_API bool kiln_manual_planning(const KilnManual *manual);
/* Samples of the batch, and the bytes of one of its features, [batch, ...]; NULL while planning,
 * and when there is no such feature. */
KILN_API int64_t kiln_manual_batch_size(const KilnManual *manual);
KILN_API const void *kiln_manual_feature(const KilnManual *manual, const char *name);
/* Random numbers of this batch, the same whenever it is trained: keyed by the seed, batches
 * since the start, and `purpose`, KILN_RNG_USER or above. */
KILN_API void kiln_manual_rng(const KilnManual *manual, uint32_t purpose, KilnRng *ret);
/* Log a number of this batch; as kiln_step_log in training. */
KILN_API void kiln_manual_log(KilnManual *manual, const char *name, double value, unsigned flags);

#endif
