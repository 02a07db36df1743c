/* Models of whole sequences of tags. Part of kiln/ops.h. */
#ifndef KILN_OPS_SEQUENCE_H
#define KILN_OPS_SEQUENCE_H

#include "kiln/tensor.h"

/* A linear-chain conditional random field (Lafferty et al. 2001) scores a sequence of tags by the
 * emissions of its tags, start[first tag], transitions[from][to] for each pair of neighbours, and
 * end[last tag]. Names and values are those of the package pytorch-crf with batch_first.
 *
 * emissions float [B, T, K], lengths i32 [B] from 1 to T, start and end float [K], transitions
 * float [K, K]. What comes after the end of a sequence has no influence. An infinite transition
 * forbids a pair: -INFINITY. */

/* -log of the probability of the given tags, i32 [B, T], among all sequences: [B]. It has gradients
 * by all that are float. A length or tag out of range: NaN, and no gradient. */
KILN_API KilnTensor *kiln_crf_loss(KilnTensor *emissions, KilnTensor *tags, KilnTensor *lengths,
                                   KilnTensor *start, KilnTensor *end, KilnTensor *transitions);
/* The tags of the largest score (Viterbi), i32 [B, T]: 0 after the end of a sequence, and in all
 * of one whose length is out of range. Of equal scores, the lower tag wins, from the last one back.
 * No gradient. */
KILN_API KilnTensor *kiln_crf_decode(KilnTensor *emissions, KilnTensor *lengths, KilnTensor *start,
                                     KilnTensor *end, KilnTensor *transitions);

#endif
