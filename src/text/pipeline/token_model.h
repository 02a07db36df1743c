/* Models: from a piece of text to tokens. */
#ifndef KILN_TEXT_PIPELINE_TOKEN_MODEL_H
#define KILN_TEXT_PIPELINE_TOKEN_MODEL_H

#include "text/pipeline/trie.h"
#include "text/pipeline/vocab.h"

typedef enum KilnModelType {
    KILN_MODEL_BPE,
    KILN_MODEL_WORDPIECE,
    KILN_MODEL_UNIGRAM,
    KILN_MODEL_WORDLEVEL
} KilnModelType;

/* A token of a piece, with its bytes in it. */
typedef struct KilnPieceToken {
    int32_t id;
    uint32_t begin, end;
} KilnPieceToken;

/* Two symbols that merge to one. */
typedef struct KilnMerge {
    int32_t left, right; /* left -1: an empty slot of the table */
    int32_t rank, id;
} KilnMerge;

/* How much lower than the lowest score of a Unigram's tokens that of an unknown character is. */
#define KILN_UNIGRAM_UNK_PENALTY 10.0

typedef struct KilnTokenModel {
    KilnModelType type;
    KilnVocab vocab;
    int32_t unk;           /* -1: none */
    char *unk_token;       /* NULL: none */
    char *prefix, *suffix; /* continuing_subword_prefix, end_of_word_suffix; NULL or "": none */
    bool byte_fallback;
    int32_t byte_ids[256]; /* of <0x00> to <0xFF>; -1: none */

    /* BPE */
    bool fuse_unk, ignore_merges;
    bool raw_bytes;           /* pieces are bytes that ByteLevel has not written as characters */
    int32_t alphabet[256];    /* raw_bytes: the ids of single bytes; -1: none */
    KilnMerge *merges;        /* a hash table */
    size_t merges_size;       /* a power of two */
    int32_t (*merge_list)[2]; /* by rank */
    size_t n_merges, merge_list_capacity;

    size_t max_chars; /* WordPiece: longer words are unknown */

    /* Unigram */
    double *scores;
    double unk_score;
    KilnTrie trie; /* of all tokens */
} KilnTokenModel;

typedef struct KilnSymbol {
    int32_t id, previous, next; /* previous, next: -1: none */
    uint32_t length;            /* bytes; 0: merged into the one before */
} KilnSymbol;

typedef struct KilnHeapMerge {
    int32_t rank, at, id;
} KilnHeapMerge;

typedef struct KilnPathNode {
    double score;
    int32_t start, id; /* start -1: nothing ends here */
} KilnPathNode;

/* Working memory of one thread. */
typedef struct KilnModelWork {
    KilnPieceToken *tokens;
    size_t n_tokens, tokens_capacity;
    KilnSymbol *symbols;
    size_t symbols_capacity;
    KilnHeapMerge *heap;
    size_t n_heap, heap_capacity;
    KilnPathNode *path;
    size_t path_capacity;
    char *text;
    size_t text_capacity;
    bool failed; /* memory ran out */
} KilnModelWork;

void kiln_model_work_release(KilnModelWork *work);
void kiln_model_release(KilnTokenModel *model);
/* Build the merges' table from merge_list. *ret_bad: the index of a merge whose result the
 * vocabulary lacks, with KILN_E_FORMAT. */
KILN_NODISCARD KilnStatus kiln_bpe_prepare(KilnTokenModel *model, size_t *ret_bad, KilnError *err);
/* Build the trie. */
KILN_NODISCARD KilnStatus kiln_unigram_prepare(KilnTokenModel *model, KilnError *err);

/* Append the tokens of a piece to work->tokens. KILN_E_MISSING: it needs a token for unknown ones,
 * which the model lacks. */
KILN_NODISCARD KilnStatus kiln_model_tokenize(const KilnTokenModel *model, KilnModelWork *work,
                                              const char *text, size_t n, KilnError *err);
KILN_NODISCARD KilnStatus kiln_bpe_tokenize(const KilnTokenModel *model, KilnModelWork *work,
                                            const char *text, size_t n, KilnError *err);
KILN_NODISCARD KilnStatus kiln_unigram_tokenize(const KilnTokenModel *model, KilnModelWork *work,
                                                const char *text, size_t n, KilnError *err);
void kiln_model_put(KilnModelWork *work, int32_t id, size_t begin, size_t end);
/* "%s is not in the vocabulary and the model has no unknown token". */
KilnStatus kiln_model_no_unk(const KilnTokenModel *model, KilnError *err);

/* ---- ByteLevel's alphabet -------------------------------------------------------------------- */

/* The character that stands for a byte, 2 bytes at most; returns their number. */
size_t kiln_byte_char(uint8_t byte, char ret[4]);
/* The byte that a character stands for; -1: none. */
int kiln_char_byte(uint32_t character);

#endif
