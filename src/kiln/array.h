/* Growing arrays: `items`, a capacity that doubles, and the caller's own count. */
#ifndef KILN_ARRAY_H
#define KILN_ARRAY_H

#include "kiln/base.h"

/* Make room for `count` items of `size` bytes in the allocated array at *items (NULL: none yet),
 * which may move; new bytes are zero. False when memory runs out; the array is then as before.
 * Freed with free(). */
KILN_API KILN_NODISCARD bool kiln_array_reserve(void *items, size_t *capacity, size_t count,
                                                size_t size);
/* Room for `count` items: if (!KILN_RESERVE(list->items, list->capacity, list->count + 1)) ... */
#define KILN_RESERVE(items, capacity, count)                                                       \
    kiln_array_reserve(&(items), &(capacity), count, sizeof(*(items)))

#endif
