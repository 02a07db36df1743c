/* Growing arrays in an arena; kiln/array.h has those that are allocated. */
#ifndef KILN_BASE_ARRAY_H
#define KILN_BASE_ARRAY_H

#include "base/arena.h"
#include "kiln/array.h"

/* As kiln_array_reserve, but the array lives in the arena: what it outgrows stays there until the
 * arena is freed. */
KILN_NODISCARD bool kiln_arena_reserve(KilnArena *arena, void *items, size_t *capacity,
                                       size_t count, size_t size);
#define KILN_ARENA_RESERVE(arena, items, capacity, count)                                          \
    kiln_arena_reserve(arena, &(items), &(capacity), count, sizeof(*(items)))

#endif
