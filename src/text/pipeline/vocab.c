/* A hash table from tokens to ids, with linear probing. */
#include "text/pipeline/vocab.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kiln/array.h"

static size_t slot_of(const KilnVocab *vocab, const char *token, size_t n)
{
    size_t at = (size_t)XXH3_64bits(token, n) & (vocab->table_size - 1);

    for (;; at = (at + 1) & (vocab->table_size - 1)) {
        const int32_t id = vocab->table[at];

        if (id < 0 ||
            (vocab->tokens[id].length == n && memcmp(vocab->tokens[id].data, token, n) == 0))
            return at;
    }
}

static bool grow_table(KilnVocab *vocab)
{
    const size_t size = vocab->table_size == 0 ? 1024 : vocab->table_size * 2;
    int32_t *table = malloc(size * sizeof(*table)), *old = vocab->table;

    if (table == NULL)
        return false;
    memset(table, 0xff, size * sizeof(*table));
    vocab->table = table;
    const size_t old_size = vocab->table_size;
    vocab->table_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] >= 0)
            table[slot_of(vocab, vocab->tokens[old[i]].data, vocab->tokens[old[i]].length)] =
                old[i];
    free(old);
    return true;
}

bool kiln_vocab_add(KilnVocab *vocab, KilnString token, int32_t id)
{
    char *copy = malloc(token.length + 1);

    if (copy == NULL || (vocab->count * 2 >= vocab->table_size && !grow_table(vocab)) ||
        !KILN_RESERVE(vocab->tokens, vocab->capacity, (size_t)id + 1)) {
        free(copy);
        return false;
    }
    if (token.length > 0)
        memcpy(copy, token.data, token.length);
    copy[token.length] = '\0';
    if ((size_t)id >= vocab->n)
        vocab->n = (size_t)id + 1;
    vocab->count += vocab->tokens[id].data == NULL;
    free((char *)vocab->tokens[id].data);
    vocab->tokens[id] = (KilnString) { copy, token.length };
    vocab->table[slot_of(vocab, copy, token.length)] = id;
    return true;
}

int32_t kiln_vocab_find(const KilnVocab *vocab, const char *token, size_t n)
{
    return vocab->table_size == 0 ? -1 : vocab->table[slot_of(vocab, token, n)];
}

void kiln_vocab_release(KilnVocab *vocab)
{
    for (size_t i = 0; i < vocab->n; i++)
        free((char *)vocab->tokens[i].data);
    free(vocab->tokens);
    free(vocab->table);
    *vocab = (KilnVocab) { 0 };
}
