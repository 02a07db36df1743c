/* Decoding of connectionist temporal classification (Graves et al. 2006, "Connectionist temporal
 * classification: labelling unsegmented sequence data with recurrent neural networks"): from the
 * probabilities of classes at each step to a sequence of classes. Class 0 is the blank. */
#ifndef KILN_CTC_DECODE_H
#define KILN_CTC_DECODE_H

#include "kiln/base.h"

/* The log-probabilities of one sequence, [steps, classes]; borrowed. */
typedef struct KilnCtcProbs {
    const float *log_probs;
    int64_t steps, classes;
} KilnCtcProbs;

/* With 1 beam, greedy: the best class of each step, without repetitions and blanks; *ret_score is
 * the log-probability of that path.
 *
 * With more, prefix beam search (Hannun et al. 2014, "First-pass large vocabulary continuous speech
 * recognition using bi-directional recurrent DNNs", without a language model): of the sequences
 * whose beginnings were among the `beams` best at each step, the most probable one over all paths
 * that lead to it; *ret_score is the log-probability of those paths.
 *
 * Writes the classes to `ids`, which has room for `steps`, and their number to *ret_n. If the
 * log-probabilities are NaN, beam search gives no classes and -INFINITY. KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_ctc_decode(KilnCtcProbs probs, int64_t beams, int32_t *ids,
                                                   int64_t *ret_n, double *ret_score,
                                                   KilnError *err);

#endif
