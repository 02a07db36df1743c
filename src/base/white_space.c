/* White space in UTF-8. */
#include <stdint.h>

#include "kiln/tools/text.h"

size_t kiln_space_at(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;

    if (n >= 1 && ((u[0] >= 0x09 && u[0] <= 0x0d) || (u[0] >= 0x1c && u[0] <= 0x20)))
        return 1;
    if (n >= 2 && u[0] == 0xc2 && (u[1] == 0x85 || u[1] == 0xa0))
        return 2;
    if (n < 3)
        return 0;
    const uint32_t c = (uint32_t)u[0] << 16 | (uint32_t)u[1] << 8 | u[2];
    const bool space = c == 0xe19a80 || (c >= 0xe28080 && c <= 0xe2808a) || c == 0xe280a8 ||
                       c == 0xe280a9 || c == 0xe280af || c == 0xe2819f || c == 0xe38080;
    return space ? 3 : 0;
}
