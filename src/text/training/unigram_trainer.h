/* The parts of Unigram's trainer: candidates, and segmentations of words into them. */
#ifndef KILN_TEXT_TRAINING_UNIGRAM_TRAINER_H
#define KILN_TEXT_TRAINING_UNIGRAM_TRAINER_H

#include "text/pipeline/token_model.h"
#include "text/training/vocab_trainer.h"

/* A candidate for the vocabulary and the logarithm of its probability. */
typedef struct KilnUnigramPiece {
    KilnString text; /* in KilnUnigramPieces.texts */
    double score;
} KilnUnigramPiece;

typedef struct KilnUnigramPieces {
    KilnUnigramPiece *items;
    size_t n, n_characters; /* n_characters: single characters, which come first */
    KilnText texts;
} KilnUnigramPieces;

/* The first candidates: all characters, and the substrings of words, each word counted once, of at
 * most `max_length` characters that occur twice or more and are followed by different characters
 * (or a character and the end of a word), as in Hugging Face's trainer and SentencePiece's. Those
 * with the highest product of length and number of occurrences are taken, at most `most` with the
 * characters. (unigram_seeds.c) */
KILN_NODISCARD KilnStatus kiln_unigram_seeds(const KilnWordCounts *words, int64_t max_length,
                                             size_t most, KilnUnigramPieces *ret, KilnError *err);
void kiln_unigram_pieces_release(KilnUnigramPieces *pieces);

/* Segmentations of words into pieces; the ids are indexes of the pieces, and the number of pieces
 * stands for an unknown character. (unigram_lattice.c) */
typedef struct KilnUnigramLattice {
    KilnTrie trie;
    const KilnUnigramPiece *pieces;
    size_t n, longest;     /* longest: bytes of the longest piece */
    double unknown;        /* score of an unknown character */
    double *probabilities; /* of the pieces and an unknown character */
    /* Of the places in a word: the sums over all segmentations of the text before and after it,
     * and the best segmentation that ends there. */
    double *before, *after;
    int *scale; /* of `before`, see unigram_lattice.c */
    KilnPathNode *path;
    size_t before_capacity, after_capacity, scale_capacity, path_capacity;
} KilnUnigramLattice;

/* Set the pieces, borrowed. The lattice may have been used with others before. */
KILN_NODISCARD KilnStatus kiln_unigram_lattice_set(KilnUnigramLattice *lattice,
                                                   const KilnUnigramPiece *pieces, size_t n,
                                                   KilnError *err);
void kiln_unigram_lattice_release(KilnUnigramLattice *lattice);
/* Add to expected[id] `count` times the expected number of occurrences of each piece in the word's
 * segmentations. False: memory ran out. */
KILN_NODISCARD bool kiln_unigram_expect(KilnUnigramLattice *lattice, KilnString word, double count,
                                        double *expected);
/* The best segmentation, without the piece that is the whole word if `parts`. Returns the number of
 * its nodes (0: memory ran out, or the word is empty), the last first, in lattice->path from the
 * word's end on: node = path[end] gives the id and where it starts, which is the end of the one
 * before. */
size_t kiln_unigram_best(KilnUnigramLattice *lattice, KilnString word, bool parts);

/* Learn the scores and the vocabulary of a Unigram model (Kudo 2018). */
KILN_NODISCARD KilnStatus kiln_train_unigram(const KilnWordCounts *words,
                                             const KilnUnigramTraining *training,
                                             const KilnPoll *poll, KilnLearned *ret,
                                             KilnError *err);

#endif
