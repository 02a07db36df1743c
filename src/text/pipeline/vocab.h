/* Tokens and their ids. */
#ifndef KILN_TEXT_PIPELINE_VOCAB_H
#define KILN_TEXT_PIPELINE_VOCAB_H

#include "kiln/tokenizer.h"

typedef struct KilnVocab {
    KilnString *tokens; /* by id; data NULL: the id has no token */
    size_t n, capacity; /* ids */
    size_t count;       /* tokens */
    int32_t *table;     /* open addressing; -1: empty */
    size_t table_size;  /* a power of two; 0: empty */
} KilnVocab;

/* Add a token with an id, replacing one that has this id. False: memory ran out. */
KILN_NODISCARD bool kiln_vocab_add(KilnVocab *vocab, KilnString token, int32_t id);
/* -1: there is none. */
int32_t kiln_vocab_find(const KilnVocab *vocab, const char *token, size_t n);
void kiln_vocab_release(KilnVocab *vocab);

#endif
