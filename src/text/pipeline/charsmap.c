/* SentencePiece's precompiled_charsmap: the size of the trie, a double array (as in Darts-clone),
 * then the replacements. */
#include <stdlib.h>
#include <string.h>

#include "text/pipeline/pipeline_steps.h"
#include "text/unicode/characters.h"

static uint32_t read_u32(const unsigned char *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

bool kiln_charsmap_read(const unsigned char *data, size_t n, KilnCharsmap *ret)
{
    if (n < 4 || read_u32(data) > n - 4)
        return false;
    const size_t units = read_u32(data) / 4, rest = n - 4 - units * 4;
    const unsigned char *texts = data + 4 + units * 4;

    if (kiln_utf8_invalid((const char *)texts, rest) < rest)
        return false;
    ret->units = malloc(units * sizeof(*ret->units) + 1);
    ret->texts = malloc(rest + 1);
    if (ret->units == NULL || ret->texts == NULL)
        return false;
    for (size_t i = 0; i < units; i++)
        ret->units[i] = read_u32(data + 4 + 4 * i);
    memcpy(ret->texts, texts, rest);
    ret->texts[rest] = '\0';
    ret->n_units = units;
    ret->n_texts = rest;
    return true;
}

/* A unit of the array; 0 outside of it, which has no children. */
static uint32_t unit_at(const KilnCharsmap *map, size_t at)
{
    return at < map->n_units ? map->units[at] : 0;
}

static size_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

const char *kiln_charsmap_find(const KilnCharsmap *map, const char *text, size_t n)
{
    size_t at = unit_offset(unit_at(map, 0));

    for (size_t i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)text[i];

        if (byte == 0)
            break;
        at ^= byte;
        const uint32_t unit = unit_at(map, at);
        if ((unit & ((1u << 31) | 0xff)) != byte)
            break;
        at ^= unit_offset(unit);
        if (unit >> 8 & 1) { /* the shortest key that matches */
            const size_t where = unit_at(map, at) & ((1u << 31) - 1);

            return where < map->n_texts ? map->texts + where : NULL;
        }
    }
    return NULL;
}
