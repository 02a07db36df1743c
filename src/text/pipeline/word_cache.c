/* A hash table that is emptied when it is half full. */
#include "text/pipeline/word_cache.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kiln/array.h"

enum { SLOTS = 1 << 16, MOST_TOKENS = 1 << 20 };

bool kiln_word_cache_claim(KilnWordCache *cache, uint64_t owner)
{
    if (cache->slots == NULL)
        cache->slots = calloc(SLOTS, sizeof(*cache->slots));
    if (cache->slots == NULL)
        return false;
    if (cache->owner != owner && cache->n_words > 0) {
        memset(cache->slots, 0, SLOTS * sizeof(*cache->slots));
        cache->n_words = cache->n_keys = cache->n_tokens = 0;
    }
    cache->owner = owner;
    return true;
}

const KilnPieceToken *kiln_word_cache_find(const KilnWordCache *cache, const char *word, size_t n,
                                           size_t *ret_n, uint64_t *ret_hash)
{
    const uint64_t hash = XXH3_64bits(word, n);
    size_t at = hash & (SLOTS - 1);

    *ret_hash = hash;
    for (; cache->slots[at].length > 0; at = (at + 1) & (SLOTS - 1)) {
        const KilnCachedWord *slot = &cache->slots[at];

        if (slot->hash == hash && slot->length == n &&
            memcmp(cache->keys + slot->key, word, n) == 0) {
            *ret_n = slot->n;
            return cache->tokens + slot->tokens;
        }
    }
    return NULL;
}

void kiln_word_cache_add(KilnWordCache *cache, const char *word, size_t n, uint64_t hash,
                         const KilnPieceToken *tokens, size_t n_tokens)
{
    if (n_tokens > UINT16_MAX)
        return;
    if (cache->n_words >= SLOTS / 2 || cache->n_tokens + n_tokens > MOST_TOKENS) {
        memset(cache->slots, 0, SLOTS * sizeof(*cache->slots));
        cache->n_words = cache->n_keys = cache->n_tokens = 0;
    }
    if (!KILN_RESERVE(cache->keys, cache->keys_capacity, cache->n_keys + n) ||
        !KILN_RESERVE(cache->tokens, cache->tokens_capacity, cache->n_tokens + n_tokens + 1))
        return; /* not kept */
    size_t at = hash & (SLOTS - 1);

    while (cache->slots[at].length > 0)
        at = (at + 1) & (SLOTS - 1);
    cache->slots[at] = (KilnCachedWord) {
        .hash = hash,
        .key = (uint32_t)cache->n_keys,
        .tokens = (uint32_t)cache->n_tokens,
        .length = (uint16_t)n,
        .n = (uint16_t)n_tokens,
    };
    memcpy(cache->keys + cache->n_keys, word, n);
    memcpy(cache->tokens + cache->n_tokens, tokens, n_tokens * sizeof(*tokens));
    cache->n_keys += n;
    cache->n_tokens += n_tokens;
    cache->n_words++;
}

void kiln_word_cache_release(KilnWordCache *cache)
{
    free(cache->slots);
    free(cache->keys);
    free(cache->tokens);
    *cache = (KilnWordCache) { 0 };
}
