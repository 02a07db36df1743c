/* Learning vocabularies. All trainers start from words and how often each occurs. */
#ifndef KILN_TEXT_TRAINING_VOCAB_TRAINER_H
#define KILN_TEXT_TRAINING_VOCAB_TRAINER_H

#include "text/pipeline/pipeline.h"

/* Words by number, in the order in which they first occur. */
typedef struct KilnWordCounts {
    KilnVocab words;
    int64_t *counts;
    size_t capacity;
} KilnWordCounts;

/* Count the pieces that the pipeline makes of the texts. KILN_E_MISSING: there are none. */
KILN_NODISCARD KilnStatus kiln_word_counts_read(const KilnTokenPipeline *pipeline,
                                                const KilnTexts *texts, const KilnPoll *poll,
                                                KilnWordCounts *ret, KilnError *err);
void kiln_word_counts_release(KilnWordCounts *counts);

/* What was learned. */
typedef struct KilnLearned {
    KilnVocab vocab;
    int32_t (*merges)[2]; /* by rank; BPE */
    size_t n_merges, merges_capacity;
    double *scores; /* by id; Unigram */
    size_t scores_capacity;
} KilnLearned;

void kiln_learned_release(KilnLearned *learned);
/* Add a token with the next id, unless it has one; returns its id, or -1 when memory ran out. */
int32_t kiln_learned_add(KilnLearned *learned, const char *token, size_t n);

/* Add merges, the most frequent pair first (of equal ones that with the lower ids), as Hugging
 * Face's BpeTrainer and WordPieceTrainer do. `prefix`, `suffix`: of the model, "" for none. */
KILN_NODISCARD KilnStatus kiln_train_bpe(const KilnWordCounts *words,
                                         const KilnTokenTraining *training, const char *prefix,
                                         const char *suffix, const KilnPoll *poll, KilnLearned *ret,
                                         KilnError *err);
/* Keep the most frequent words, of equal ones the first in the order of bytes. */
KILN_NODISCARD KilnStatus kiln_train_words(const KilnWordCounts *words,
                                           const KilnTokenTraining *training, KilnLearned *ret,
                                           KilnError *err);

#endif
