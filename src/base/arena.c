/* Region allocation in chunks that double up to a limit. */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct KilnArenaChunk {
    KilnArenaChunk *next;
    size_t size, used;
    max_align_t data[];
};

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

static KilnArenaChunk *chunk_new(size_t size)
{
    KilnArenaChunk *chunk = malloc(sizeof(*chunk) + size);

    if (chunk == NULL)
        return NULL;
    *chunk = (KilnArenaChunk) { .size = size };
    return chunk;
}

/* The next chunk with room for `size`, made when none of those kept fits. */
static KilnArenaChunk *chunk_next(KilnArena *arena, size_t size)
{
    KilnArenaChunk *last = arena->current;
    size_t want = FIRST_CHUNK;

    while (last != NULL && last->next != NULL) {
        last = last->next;
        last->used = 0;
        if (last->size >= size)
            return last;
    }
    if (last != NULL && last->size < LARGEST_CHUNK)
        want = last->size * 2;
    else if (last != NULL)
        want = LARGEST_CHUNK;
    KilnArenaChunk *fresh = chunk_new(size > want ? size : want);
    if (fresh == NULL)
        return NULL;
    if (last == NULL)
        arena->first = fresh;
    else
        last->next = fresh;
    return fresh;
}

void *kiln_arena_alloc(KilnArena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);

    if (size > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    size = (size + align - 1) / align * align;
    if (arena->current == NULL || arena->current->size - arena->current->used < size) {
        KilnArenaChunk *chunk = chunk_next(arena, size);

        if (chunk == NULL) {
            arena->failed = true;
            return NULL;
        }
        arena->current = chunk;
    }
    void *p = (char *)arena->current->data + arena->current->used;
    arena->current->used += size;
    return memset(p, 0, size);
}

char *kiln_arena_strndup(KilnArena *arena, const char *text, size_t length)
{
    char *copy = kiln_arena_alloc(arena, length + 1);

    if (copy != NULL)
        memcpy(copy, text, length);
    return copy;
}

char *kiln_arena_strdup(KilnArena *arena, const char *text)
{
    return kiln_arena_strndup(arena, text, strlen(text));
}

char *kiln_arena_printf(KilnArena *arena, const char *format, ...)
{
    va_list args, again;
    char *text = NULL, shorts[256]; /* most are short: format those once */

    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(shorts, sizeof(shorts), format, args);
    va_end(args);
    if (length >= 0)
        text = kiln_arena_alloc(arena, (size_t)length + 1);
    if (text != NULL && (size_t)length < sizeof(shorts))
        memcpy(text, shorts, (size_t)length + 1);
    else if (text != NULL)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

size_t kiln_arena_bytes(const KilnArena *arena)
{
    size_t bytes = 0;

    for (const KilnArenaChunk *chunk = arena->first; chunk != NULL; chunk = chunk->next)
        bytes += sizeof(*chunk) + chunk->size;
    return bytes;
}

void kiln_arena_clear(KilnArena *arena)
{
    arena->current = arena->first;
    arena->failed = false;
    if (arena->first != NULL)
        arena->first->used = 0;
}

void kiln_arena_release(KilnArena *arena)
{
    KilnArenaChunk *chunk = arena->first;

    while (chunk != NULL) {
        KilnArenaChunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    *arena = (KilnArena) { 0 };
}
