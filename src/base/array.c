/* Growing arrays, allocated or in an arena. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 16 };

/* The next capacity for `count` items of `size` bytes; 0: too many to address. */
static size_t next_capacity(size_t capacity, size_t count, size_t size)
{
    size_t next = capacity > 0 ? capacity : FIRST;
    while (next < count && next <= SIZE_MAX / 2)
        next *= 2;
    return next >= count && next <= SIZE_MAX / size ? next : 0;
}

bool kiln_array_reserve(void *items, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return true;
    const size_t next = next_capacity(*capacity, count, size);
    char *old;
    memcpy(&old, items, sizeof(old)); /* *items is a pointer to any type */
    char *grown = next > 0 ? realloc(old, next * size) : NULL;
    if (grown == NULL)
        return false;
    memset(grown + *capacity * size, 0, (next - *capacity) * size);
    memcpy(items, &grown, sizeof(grown));
    *capacity = next;
    return true;
}

bool kiln_arena_reserve(KilnArena *arena, void *items, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return true;
    const size_t next = next_capacity(*capacity, count, size);
    char *grown = next > 0 ? kiln_arena_alloc(arena, next * size) : NULL;
    arena->failed |= grown == NULL;
    if (grown == NULL)
        return false;
    char *old;
    memcpy(&old, items, sizeof(old));
    if (*capacity > 0)
        memcpy(grown, old, *capacity * size);
    memcpy(items, &grown, sizeof(grown));
    *capacity = next;
    return true;
}
