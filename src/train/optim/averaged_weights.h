/* A running average of the weights (EMA, SWA), beside the weights themselves. Callbacks create and
 * update it: the rest of its functions are in kiln/trainer.h. */
#ifndef KILN_TRAIN_OPTIM_AVERAGED_WEIGHTS_H
#define KILN_TRAIN_OPTIM_AVERAGED_WEIGHTS_H

#include "graph/buffer.h"
#include "kiln/trainer.h"

/* Copy the weights into the average. */
void kiln_averaged_copy(KilnAveragedWeights *averaged);
/* Replace the weights by the average, to evaluate with it; and restore them. Both accept NULL. */
void kiln_averaged_swap_in(KilnAveragedWeights *averaged);
void kiln_averaged_swap_out(KilnAveragedWeights *averaged);
/* The type of the average: f64 for weights of f64, else f32. */
KilnDType kiln_averaged_dtype(const KilnAveragedWeights *averaged);
/* Where the average of a parameter or buffer is; nowhere when it has none (i64), and when the
 * average is not in use. Accepts NULL. */
KilnLocation kiln_averaged_location(const KilnAveragedWeights *averaged, const KilnParam *param);
/* Accepts NULL. */
void kiln_averaged_free(KilnAveragedWeights *averaged);
/* Bytes that the average of a store takes. */
int64_t kiln_averaged_bytes(const KilnParams *params);

#endif
