/* Region allocation: many small objects, freed or reset together. Objects hold
 * no references that must be released one by one. */
#ifndef KILN_BASE_ARENA_H
#define KILN_BASE_ARENA_H

#include "kiln/base.h"

typedef struct KilnArenaChunk KilnArenaChunk;

/* A zeroed arena is ready for use. When memory runs out `failed` is set and stays set until the
 * arena is cleared or released: a function that tolerates NULL on the way checks it once. */
typedef struct KilnArena {
    KilnArenaChunk *first, *current;
    bool failed;
} KilnArena;

/* `size` zeroed bytes, aligned for any type; NULL when memory is out. */
void *kiln_arena_alloc(KilnArena *arena, size_t size);
/* Copies; NULL when memory is out. */
char *kiln_arena_strdup(KilnArena *arena, const char *text);
char *kiln_arena_strndup(KilnArena *arena, const char *text, size_t length);
char *kiln_arena_printf(KilnArena *arena, const char *format, ...) KILN_PRINTF(2, 3);
/* Bytes that the arena holds. */
size_t kiln_arena_bytes(const KilnArena *arena);
/* Forget all objects but keep the memory for the next ones. */
void kiln_arena_clear(KilnArena *arena);
/* Return the memory. The arena is ready for use again. */
void kiln_arena_release(KilnArena *arena);

#endif
