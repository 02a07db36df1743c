/* Building tries. */
#include "text/pipeline/trie.h"

#include <stdlib.h>

#include "kiln/array.h"

/* The child of `node` (0: the root) for a byte, which is made if there is none; 0: memory ran out.
 */
static int32_t child_of(KilnTrie *trie, int32_t node, uint8_t byte)
{
    int32_t first = node == 0 ? trie->first[byte] : trie->nodes[node].child;
    int32_t child = node == 0 ? first : kiln_trie_sibling(trie, first, byte);

    if (child > 0)
        return child;
    if (!KILN_RESERVE(trie->nodes, trie->capacity, trie->n + 2))
        return 0;
    child = (int32_t)++trie->n;
    trie->nodes[child] = (KilnTrieNode) { .sibling = first, .id = -1, .byte = byte };
    *(node == 0 ? &trie->first[byte] : &trie->nodes[node].child) = child;
    return child;
}

bool kiln_trie_add(KilnTrie *trie, KilnString text, int32_t id)
{
    int32_t node = 0;

    for (size_t i = 0; i < text.length; i++) {
        node = child_of(trie, node, (uint8_t)text.data[i]);
        if (node == 0)
            return false;
    }
    if (node > 0)
        trie->nodes[node].id = id;
    return true;
}

void kiln_trie_release(KilnTrie *trie)
{
    free(trie->nodes);
    *trie = (KilnTrie) { 0 };
}
