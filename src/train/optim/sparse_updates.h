/* Embeddings of which an optimizer updates only the rows that a step used (the option `sparse`),
 * each as a parameter of its own beside the flat update of the others. */
#ifndef KILN_TRAIN_OPTIM_SPARSE_UPDATES_H
#define KILN_TRAIN_OPTIM_SPARSE_UPDATES_H

#include "train/optim/optimizers.h"

/* Checks that the run can update rows, and allocates the rates of the flat update; nothing if the
 * optimizer has no `sparse`. The segments are one per parameter. */
KILN_NODISCARD KilnStatus kiln_sparse_updates_set_up(const KilnTrainer *trainer,
                                                     KilnOptimizerState *optimizer, KilnError *err);
/* Whether the optimizer updates the parameter by rows. */
bool kiln_sparse_updates_has(const KilnOptimizerState *optimizer, const KilnParam *param);
/* Whether any optimizer of the run does. */
bool kiln_sparse_updates_any(const KilnTrainer *trainer, const KilnParam *param);
/* Leaves: the parameter's gradient [V, ...], and the list of its rows. */
KilnTensor *kiln_sparse_gradient(KilnTrainer *trainer, const KilnParam *param);
KilnTensor *kiln_sparse_rows(KilnTrainer *trainer, const KilnParam *param);
/* The rates [k, 2] of the flat update: the segments', but 0 for embeddings. Valid until the next
 * call. */
const float *kiln_sparse_updates_flat_rates(const KilnTrainer *trainer,
                                            KilnOptimizerState *optimizer);
/* The inputs of one embedding's update; hyper and scale are those of the flat one. */
KilnFlat kiln_sparse_updates_flat(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                                  const KilnParam *param, const KilnFlat *flat);

#endif
