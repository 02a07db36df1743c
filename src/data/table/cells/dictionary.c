/* The different texts of a column, found by a hash table with open addressing. */
#include "data/table/cells/cells.h"

#include <stdlib.h>

#include "kiln/array.h"
#include "kiln/files/cache.h"

enum { FIRST_SLOTS = 16 };

static bool is_at(const KilnDictionary *dictionary, size_t code, KilnString text, uint64_t hash)
{
    const KilnString *other = &dictionary->texts[code];

    return dictionary->hashes[code] == hash && other->length == text.length &&
           memcmp(other->data, text.data, text.length) == 0;
}

/* The slot of the text, or the empty one where it belongs. */
static size_t find_slot(const KilnDictionary *dictionary, KilnString text, uint64_t hash)
{
    size_t slot = hash & (dictionary->n_slots - 1);

    while (dictionary->slots[slot] != 0 &&
           !is_at(dictionary, dictionary->slots[slot] - 1, text, hash))
        slot = (slot + 1) & (dictionary->n_slots - 1);
    return slot;
}

static bool grow(KilnDictionary *dictionary)
{
    const size_t n = dictionary->n_slots > 0 ? dictionary->n_slots * 2 : FIRST_SLOTS;
    uint32_t *slots = calloc(n, sizeof(*slots));

    if (slots == NULL)
        return false;
    free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->n_slots = n;
    for (size_t code = 0; code < dictionary->n; code++) {
        size_t slot = dictionary->hashes[code] & (n - 1);

        while (slots[slot] != 0)
            slot = (slot + 1) & (n - 1);
        slots[slot] = (uint32_t)code + 1;
    }
    return true;
}

int32_t kiln_dictionary_find(const KilnDictionary *dictionary, KilnString text)
{
    if (dictionary->n == 0)
        return -1;
    const uint64_t hash = kiln_hash(text.data, text.length, 0);

    return (int32_t)dictionary->slots[find_slot(dictionary, text, hash)] - 1;
}

int32_t kiln_dictionary_add(KilnDictionary *dictionary, KilnString text)
{
    const uint64_t hash = kiln_hash(text.data, text.length, 0);
    const size_t n = dictionary->n;

    if (n * 2 >= dictionary->n_slots && !grow(dictionary))
        return -1;
    const size_t slot = find_slot(dictionary, text, hash);
    if (dictionary->slots[slot] != 0)
        return (int32_t)dictionary->slots[slot] - 1;
    if (n >= INT32_MAX - 1 || !KILN_RESERVE(dictionary->texts, dictionary->texts_capacity, n + 1) ||
        !KILN_RESERVE(dictionary->hashes, dictionary->hashes_capacity, n + 1))
        return -1;
    const char *copy = kiln_arena_strndup(&dictionary->arena, text.data, text.length);
    if (copy == NULL)
        return -1;
    dictionary->texts[n] = (KilnString) { copy, text.length };
    dictionary->hashes[n] = hash;
    dictionary->slots[slot] = (uint32_t)n + 1;
    dictionary->n = n + 1;
    return (int32_t)n;
}

void kiln_dictionary_release(KilnDictionary *dictionary)
{
    free(dictionary->texts);
    free(dictionary->hashes);
    free(dictionary->slots);
    kiln_arena_release(&dictionary->arena);
    *dictionary = (KilnDictionary) { 0 };
}

bool kiln_cell_of_text(const KilnCellRules *rules, bool as_text, KilnDictionary *dictionary,
                       KilnString text, KilnCell *ret)
{
    const KilnCellValue value = kiln_cell_value(rules, text, as_text);

    if (value.kind != KILN_VALUE_TEXT) {
        *ret = value.kind == KILN_VALUE_NUMBER ? kiln_cell_of_number(value.number)
                                               : KILN_CELL_MISSING;
        return true;
    }
    const int32_t code = kiln_dictionary_add(dictionary, value.text);
    *ret = KILN_CELL_TEXT | (uint32_t)code;
    return code >= 0;
}
