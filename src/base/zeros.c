/* calloc knows which pages are fresh, but not about alignment. */
#include "base/zeros.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

void *kiln_zeros(size_t bytes)
{
    /* Room to move up to the next multiple with the start before it, and behind the
     * end for loops that read whole vectors. */
    size_t more = 3 * (size_t)ALIGN;
    char *block = bytes <= SIZE_MAX - more ? calloc(1, bytes + more) : NULL;

    if (block == NULL)
        return NULL;
    char *zeros = block + (ALIGN + ALIGN - (uintptr_t)block % ALIGN);
    memcpy(zeros - sizeof(block), &block, sizeof(block));
    return zeros;
}

void kiln_zeros_free(void *zeros)
{
    char *block;

    if (zeros == NULL)
        return;
    memcpy(&block, (char *)zeros - sizeof(block), sizeof(block));
    free(block);
}
