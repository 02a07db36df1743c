/* calloc knows which pages are fresh, but not about alignment. */
#define _DEFAULT_SOURCE /* madvise */

#include "base/system/zeros.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = 2 << 20 };

/* Large blocks ask for huge pages: every step walks over all of them, and with small
 * pages a good part of its time goes into finding them. */
static void ask_for_huge_pages(void *zeros, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(zeros, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)zeros, (void)bytes;
#endif
}

void *kiln_zeros(size_t bytes)
{
    const bool large = bytes >= 2 * (size_t)HUGE_PAGE;
    const size_t align = large ? HUGE_PAGE : ALIGN;
    /* Room to align the start up to the next multiple with the pointer before it, and after the
     * end for loops that read whole vectors. */
    const size_t more = align + 2 * (size_t)ALIGN;
    char *block = bytes <= SIZE_MAX - more ? calloc(1, bytes + more) : NULL;

    if (block == NULL)
        return NULL;
    char *zeros = block + sizeof(block);
    zeros += align - (uintptr_t)zeros % align;
    memcpy(zeros - sizeof(block), &block, sizeof(block));
    if (large)
        ask_for_huge_pages(zeros, bytes);
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
