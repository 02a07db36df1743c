/* Beam search: the most probable sequences of tokens that a model gives, found by extending the
 * best beginnings one token at a time. Hypotheses and their end are those of Hugging Face's
 * transformers (generate with num_beams, early_stopping=False): a finished sequence y has the score
 * log P(y) / length(y)^length_penalty, and a sample is done when no beam can become better than its
 * finished sequences. */
#ifndef KILN_BEAM_SEARCH_H
#define KILN_BEAM_SEARCH_H

#include "kiln/tools/row_results.h"

typedef struct KilnBeamSearch {
    int64_t beams;         /* beginnings that are kept of each sample; 1: greedy */
    int64_t n_best;        /* sequences per sample in the result, at most `beams` */
    double length_penalty; /* above 0 favours long sequences; 1: the mean log-probability */
    int64_t max_length;    /* the most tokens of a sequence, its end included */
    /* [samples] the most tokens of each sample, at least 1, where that is less. NULL: max_length */
    const int32_t *limits;
    int32_t begin, end; /* tokens before the first and after the last */
    int64_t n_ids;
    /* Record what all steps read and only the batch's inputs decide, such as an encoder's result:
     * f32 [samples, ...]. Returns their number. */
    size_t (*encode)(void *ctx, KilnStep *step, KilnTensor *ret[KILN_MODEL_MEMORIES]);
    /* Record the logits f32 [rows, 1, n_ids] of what follows `tokens` i32 [rows, 1]. Row r is of
     * sample r / beams. The step continues earlier ones (kiln_step_cache). */
    KilnTensor *(*next)(void *ctx, KilnStep *step, KilnTensor *const *memories, KilnTensor *tokens);
    void *ctx;
} KilnBeamSearch;

typedef struct KilnHypothesis {
    int32_t *ids; /* without begin and end */
    int64_t n;
    double score; /* the log-probability over length^length_penalty; the end counts */
} KilnHypothesis;

/* Search for all samples of the batch. One encoding step runs, and then one step per token, with
 * one plan for all of them. *ret is [samples * n_best], the best of each sample first; owned by the
 * caller (kiln_hypotheses_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_beam_search(KilnResults *results,
                                                    const KilnBeamSearch *search,
                                                    KilnHypothesis **ret, KilnError *err);
/* Free n hypotheses. Accepts NULL. */
KILN_API void kiln_hypotheses_free(KilnHypothesis *list, int64_t n);

#endif
