/* The tokens of words that were seen before, for one thread. */
#ifndef KILN_TEXT_PIPELINE_WORD_CACHE_H
#define KILN_TEXT_PIPELINE_WORD_CACHE_H

#include "text/pipeline/token_model.h"

typedef struct KilnCachedWord {
    uint64_t hash;
    uint32_t key, tokens; /* where they begin in the pools */
    uint16_t length;      /* of the word; 0: an empty slot */
    uint16_t n;           /* tokens */
} KilnCachedWord;

typedef struct KilnWordCache {
    uint64_t owner; /* fingerprint of the pipeline whose words these are */
    KilnCachedWord *slots;
    size_t n_words;
    char *keys;
    size_t n_keys, keys_capacity;
    KilnPieceToken *tokens;
    size_t n_tokens, tokens_capacity;
} KilnWordCache;

/* Longer words are not kept. */
enum { KILN_CACHED_WORD_LENGTH = 256 };

/* Forget the words of another pipeline. False: memory ran out. */
KILN_NODISCARD bool kiln_word_cache_claim(KilnWordCache *cache, uint64_t owner);
/* The tokens of a word of at most KILN_CACHED_WORD_LENGTH bytes; NULL: not known. Its hash is for
 * kiln_word_cache_add. */
const KilnPieceToken *kiln_word_cache_find(const KilnWordCache *cache, const char *word, size_t n,
                                           size_t *ret_n, uint64_t *ret_hash);
void kiln_word_cache_add(KilnWordCache *cache, const char *word, size_t n, uint64_t hash,
                         const KilnPieceToken *tokens, size_t n_tokens);
void kiln_word_cache_release(KilnWordCache *cache);

#endif
