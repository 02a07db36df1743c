/* A trie of texts by bytes: finds all tokens that begin at a place. */
#ifndef KILN_TEXT_PIPELINE_TRIE_H
#define KILN_TEXT_PIPELINE_TRIE_H

#include "kiln/tokenizer.h"

/* A node; its children are a list. */
typedef struct KilnTrieNode {
    int32_t child, sibling; /* 0: none */
    int32_t id;             /* of the text that ends here; -1: none */
    uint8_t byte;
} KilnTrieNode;

/* A zeroed one is empty. */
typedef struct KilnTrie {
    KilnTrieNode *nodes; /* node 0 means none */
    int32_t first[256];  /* children of the root */
    size_t n, capacity;
} KilnTrie;

/* Add a text with an id, replacing the id of the same text. False: memory ran out. */
KILN_NODISCARD bool kiln_trie_add(KilnTrie *trie, KilnString text, int32_t id);
void kiln_trie_release(KilnTrie *trie);

/* The node with that byte in the list that begins with `child`; 0: there is none. */
static inline int32_t kiln_trie_sibling(const KilnTrie *trie, int32_t child, uint8_t byte)
{
    while (child > 0 && trie->nodes[child].byte != byte)
        child = trie->nodes[child].sibling;
    return child;
}

#endif
